//! Real-time media: a video over RTP whose rate follows a congestion control algorithm.
//!
//! ```text
//!   encoder ──frames──▶ pacer ──RTP packets──▶ network ──▶ receiver ──▶ frames that are displayed
//!      ▲ target rate      ▲ pacing rate                        │
//!      └── controller ────┘ ◀──────── reports, each interval ──┘
//! ```
//!
//! - [`encoder`]: sizes of frames by a statistical model (RFC 8593).
//! - [`MediaSender`]: packets, the pacer, and the memory of what was sent.
//! - [`circuit_breaker`]: the flow ends where its path is gone or congested for long (RFC 8083), if it is switched on.
//! - [`MediaReceiver`]: frames, and per-packet reports (RFC 8888).
//!
//! The controllers are in `ackclock_congestion::realtime`.
//!
//! Deviations: nothing is retransmitted, and there is no forward error correction. A frame that lacks a packet is not
//! displayed; those after it are, as if each could be decoded without the others. There is no jitter buffer: a frame is
//! displayed when it is complete.

mod circuit_breaker;
mod encoder;
mod receiver;
mod sender;

pub use receiver::MediaReceiver;
pub use sender::MediaSender;

#[cfg(test)]
mod tests;
