//! QUIC endpoints in virtual time.
//!
//! The state machines are those of a stack that is in use, noq-proto (a fork of quinn): packet numbers, loss detection,
//! congestion control, pacing, flow control, handshake, path MTU discovery (RFC 9000, RFC 9002). An [`Endpoint`] gives
//! it what it must not take from the operating system: the time, as an argument of each call, and all its random
//! numbers, from a seed.
//!
//! ```text
//!   Application ──streams──▶ noq-proto ──datagrams──▶ network
//!                              │    ▲
//!       crypto (null) ◀────────┘    └── Observed controller ──▶ Transport (cwnd, in flight, losses)
//!                                        │
//!                                        └── the stack's own, or EngineController
//! ```
//!
//! - [`crypto`]: a TLS 1.3 handshake by size alone, and packet protection of the right length.
//! - [`Endpoint`]: one end of one connection.
//! - [`Transport`]: what its congestion controller shows.
//! - [`UserStackEndpoint`]: one end of a connection of a user's stack, in a process of its own.
//!
//! Deviations from a deployed endpoint: nothing is encrypted, and an endpoint costs no processing time. An application
//! writes as much as the stack takes, and reads at once.

mod application;
mod clock;
mod config;
mod controller;
pub mod crypto;
mod endpoint;
mod engine_controller;
mod log;
mod seeds;
mod user_stack;

#[cfg(test)]
mod tests;

pub use controller::{Change, Transport};
pub use endpoint::{ConnectionEnd, Datagram, Endpoint, Role};
pub use engine_controller::{ControllerError, EngineController};
pub use noq_proto::EcnCodepoint;
pub use user_stack::{Stack, StackFailure, UserStackEndpoint};
