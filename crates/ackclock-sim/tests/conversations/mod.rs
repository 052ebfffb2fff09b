//! Conversations of a sender and a receiver, with exact times.
//!
//! Most conversations run over a wire of 50 ms each way (an RTT of 100 ms), so the handshake ends at
//! 100 ms. A `spaced` wire passes a segment each millisecond: the ACK of segment n of the first flight
//! arrives at 200 + n ms. The transcript's form is in `kit/transcript.rs`.

mod abcc;
mod application;
mod closed_forms;
mod closing;
mod dctcp;
mod ecn;
mod ecn_feedback;
mod flow_control;
mod handshake;
mod misbehaviour;
mod nagle;
mod new_reno;
mod prr;
mod rack;
mod receiver;
mod request;
mod sack_recovery;
mod slow_start;
mod stopping;
mod tail_loss;
mod timeout;
mod undo;
