//! The integration tests, in one program: the analysis is linked once, not once for each group.

mod ack_trace;
mod capture_losses;
mod fates;
mod kit;
mod limits;
mod memory;
mod observations;
mod one_direction;
mod real_hosts;
mod retransmissions;
mod robustness;
mod stalls;
mod without_sack;
