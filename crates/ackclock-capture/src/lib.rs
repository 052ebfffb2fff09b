//! Packet captures: the file that the engines write, and what comes from files of any kind: records ([`framing`]) of a
//! stream of bytes ([`source`]), the TCP segments in them ([`packet`]), and those of several files in one order of time
//! ([`files`]).

pub mod error;
pub mod files;
pub mod framing;
pub mod packet;
pub mod source;
