//! Packet captures.

pub mod savefile;
