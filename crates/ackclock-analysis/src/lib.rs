//! Packet captures, and what happened in them: records ([`framing`]) of a stream of bytes ([`source`]), the TCP segments
//! in them ([`packet`]), those of several files in one order of time ([`files`]) or a choice of them ([`filter`]), the
//! connections that they belong to ([`connections`], [`flow`]), what limits their path ([`path`]), and all that is found ([`analysis`], [`tables`]).

pub mod analysis;
pub mod beside;
pub mod connections;
pub mod flow;
pub mod identify;
pub mod largest;
pub mod path;
pub mod quiet;
pub mod rows;
pub mod series;
pub mod steps;
pub mod tables;
