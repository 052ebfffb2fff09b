//! Definitions that every crate of ackclock shares.
//!
//! - [`Time`] and [`Rate`] ([`units`])
//! - [`tables`] of the dataset, and the macros that declare tables and their codes
//! - [`tcp`]: 32-bit sequence arithmetic, and the states in which a sender is when an ACK arrives
//! - [`random`]: conversion of random bits
//! - [`jiffies`]: the Linux kernel's clock and its timers
//! - [`pie`]: the control law of an AQM that engines of packets and of fluids share

pub mod jiffies;
pub mod pie;
pub mod random;
pub mod tables;
pub mod tcp;
pub mod units;

pub use units::{Rate, Time, PICOSECONDS_PER_SECOND};
