//! The congestion state of a connection (Linux's `tcp_ca_state`), as far as a window that grows with ACKs depends on
//! it.
//!
//! ```text
//!              reduce                   restart
//!   ┌─ Open ───────────▶ Recovery ────────────────▶ Loss ◀─┐ restart
//!   │   ▲ │                  │                       │  ▲ └─┘
//!   │   │ └──────────────────┼──── restart ──────────┼──┘
//!   │   └────────────────────┴───────────────────────┘
//!   └ may grow            an ACK that finds the sender not recovering
//! ```
//!
//! The window grows in *Open* and in *Loss*: after a timeout lost segments are retransmitted in slow start. It does not
//! grow in *Recovery*. A timeout in fast recovery belongs to the same loss, so it does not lower ssthresh again.

use super::Ack;

/// The congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaState {
    /// No loss is being recovered.
    Open,
    /// Fast recovery, or a reaction to ECN marks.
    Recovery,
    /// Slow start after a timeout.
    Loss,
}

impl CaState {
    /// Update the state with an ACK.
    pub fn on_ack(&mut self, ack: &Ack) {
        match (*self, ack.recovering) {
            (CaState::Open, true) => *self = CaState::Recovery,
            (CaState::Loss, false) if ack.in_loss => {}
            (_, false) => *self = CaState::Open,
            _ => {}
        }
    }
}
