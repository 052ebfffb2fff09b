//! Packet captures, and what happened in them: records ([`framing`]) of a stream of bytes ([`source`]), the TCP
//! segments in them ([`packet`]), those of several files in one order of time ([`files`]) or a choice of them
//! ([`filter`]), the connections that they belong to ([`connections`], [`flow`]), what limits their path ([`path`]),
//! and all that is found ([`analysis`], [`tables`]).

pub mod ack_trace;
pub mod analysis;
pub mod capture_gap;
pub mod connections;
pub mod flow;
pub mod identify;
pub mod output;
pub mod path;
pub mod series;
pub mod shared_bottleneck;
pub mod tables;
pub mod top_talkers;
