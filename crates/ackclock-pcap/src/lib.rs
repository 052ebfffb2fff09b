//! Capture files: written as `savefile(5)` has them ([`savefile`]), and read.
//!
//! Reading (feature `reader`) goes from a stream of bytes ([`source`]) to its records ([`framing`]), the TCP segments
//! in them ([`packet`]), those of several files in one order of time ([`files`]), and a selection of them ([`filter`],
//! [`listing`]).

pub mod savefile;

#[cfg(feature = "reader")]
pub mod error;
#[cfg(feature = "reader")]
pub mod files;
#[cfg(feature = "reader")]
pub mod filter;
#[cfg(feature = "reader")]
pub mod framing;
#[cfg(feature = "reader")]
pub mod listing;
#[cfg(feature = "reader")]
pub mod packet;
#[cfg(feature = "reader")]
pub mod source;
