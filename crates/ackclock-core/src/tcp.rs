//! Parts of TCP that several crates use: the simulator, the analysis of captures, controllers in QUIC stacks.

pub mod ack_trace;
pub mod delivery_rate;
pub mod seq;
