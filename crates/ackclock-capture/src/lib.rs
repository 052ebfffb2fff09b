//! Packet captures, and what happened in them: records ([`framing`]) of a stream of bytes ([`source`]), the TCP segments
//! in them ([`packet`]), those of several files in one order of time ([`files`]) or a choice of them ([`filter`]), the
//! connections that they belong to ([`connections`], [`flow`]), what limits their path ([`path`]), and all that is found ([`analysis`], [`tables`]).

pub mod analysis;
pub mod beside;
pub mod connections;
pub mod error;
pub mod files;
pub mod filter;
pub mod flow;
pub mod framing;
pub mod largest;
pub mod listing;
pub mod packet;
pub mod path;
pub mod quiet;
pub mod rows;
pub mod series;
pub mod source;
pub mod steps;
pub mod tables;
