//! Parts of TCP that both the simulator and the analysis of captures use.

pub mod ack_trace;
pub mod seq;
