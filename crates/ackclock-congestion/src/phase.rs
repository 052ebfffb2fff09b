//! Whether losses are being repaired, as a window that grows with ACKs has to know it.
//!
//! ```text
//!              reduce                   restart
//!   ┌─ Open ───────────▶ Recovery ────────────────▶ Repair ◀─┐ restart
//!   │   ▲ │                  │                       │  ▲ └──┘
//!   │   │ └──────────────────┼──── restart ──────────┼──┘
//!   │   └────────────────────┴───────────────────────┘
//!   └ may grow            an ACK that finds the sender not recovering
//! ```
//!
//! The window grows in *open* and in *repair*: after a timeout the losses are repaired in slow start. It
//! does not grow in fast recovery. A timeout in fast recovery belongs to the same loss, so it does not
//! lower ssthresh again.

use super::Ack;

/// Whether losses are being repaired, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They are not.
    Open,
    /// By fast recovery.
    Recovery,
    /// After a timeout.
    Repair,
}

impl Phase {
    /// What an ACK tells of it.
    pub fn follow(&mut self, ack: &Ack) {
        match (*self, ack.recovering) {
            (Phase::Open, true) => *self = Phase::Recovery,
            (Phase::Repair, false) if ack.repairing => {}
            (_, false) => *self = Phase::Open,
            _ => {}
        }
    }
}
