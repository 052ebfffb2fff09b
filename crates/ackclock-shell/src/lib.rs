//! A simulated network in real time: IP packets of programs enter it from TUN devices and leave it when they have
//! crossed its links.
//!
//! ```text
//!   peer ── TUN ──▶ sender's end ══ links of the scenario ══▶ receiver's end ── TUN ──▶ program
//! ```
//!
//! Each pair of devices that can reach each other is a [`Route`], with flows of the simulation for its connections.
//!
//! A [`Relay`] at the first end carries connections with hosts outside the scenario.
//!
//! The simulation runs by the clock: its present is the time since the start. A packet enters at the time at which it
//! is read, and is written when it is due; by how much that is late is counted ([`Lateness`]). Everything else of a run
//! (links, disciplines, losses from the seed, simulated flows) is that of the packet engine.

#![cfg(target_os = "linux")]

mod bridge;
mod capture;
mod connections;
mod ip;
mod lateness;
mod outside;

pub use bridge::{Bridge, Device, Report, Shared};
pub use connections::{Connection, Counts, Route};
pub use ip::Key;
pub use lateness::Lateness;
pub use outside::{Keys, Listener, Relay};
