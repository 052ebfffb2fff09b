//! Westwood+: after a loss the window is what the path was measured to carry.
//!
//! S. Mascolo et al.: TCP Westwood: bandwidth estimation for enhanced transport over wireless links, MobiCom 2001;
//! A. Dell'Aera, L. A. Grieco, S. Mascolo: Linux 2.4 implementation of Westwood+ TCP with rate-halving, ICC 2004;
//! as Linux 6.1 behaves (`tcp_westwood.c`). The window grows like Reno's. At a loss
//!
//! ```text
//!   ssthresh = BW × RTT_min
//! ```
//!
//! where BW is a low-pass filter over what was acknowledged in each RTT (50 ms at least), in two stages of 7/8 old
//! and 1/8 new. A fast recovery comes down to half the window, as Reno's; when it ends, window and ssthresh become
//! BW × RTT_min. A timeout starts from one segment with that ssthresh, and has `RTT_min` measured anew.
//!
//! ```text
//!            loss: cwnd / 2                       timeout: 1, ssthresh = BW × RTT_min
//!   Open ────────────────────▶ Recovery   Open ──────────────────────────────────────▶ Repair
//!     ▲    cwnd = ssthresh =      │         ▲                                             │
//!     └─────  BW × RTT_min ───────┘         └─────────────────────────────────────────────┘
//! ```
//!
//! A recovery may end with the very ACK that begins the next one. The next one then halves BW × `RTT_min`, not the
//! window that had been halved before: under frequent losses this decides how fast the flow is.
//!
//! As in Linux: time and RTTs are whole ticks of the kernel's clock, a begun tick of an RTT counting, so
//! BW × `RTT_min` may be several percent above what the path holds; BW is whole bytes per tick; a loss before the
//! first sample leaves two segments; a timeout in fast recovery leaves ssthresh alone.
//!
//! The RTT of an ACK counts before the sample may be over, so an ACK that ends a recovery may end a sample that was too
//! short for the RTTs of a full queue, and the window has it (as a module of Linux 6.1.192 showed).

mod bandwidth;

use ackclock_core::jiffies::JiffyClock;
use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made};

use bandwidth::Bandwidth;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The kernel's clock.
    #[serde(rename = "tick_s")]
    tick: Time,
    slow_start: SlowStart,
}

/// A Westwood sender's window.
#[derive(Clone, Copy, Debug)]
struct Westwood {
    clock: JiffyClock,
    window: Window,
    bandwidth: Bandwidth,
    /// Last RTT in ticks; none before the first sample.
    rtt: Option<u64>,
    /// Smallest RTT in ticks since the last timeout.
    min_rtt: Option<u64>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or a tick of no length.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let westwood = Westwood::new(super::jiffy_clock(parameters.tick)?, initial_window);
    Ok(parameters.slow_start.control(westwood))
}

impl Westwood {
    fn new(clock: JiffyClock, initial_window: f64) -> Westwood {
        Westwood {
            clock,
            window: Window::new(initial_window),
            bandwidth: Bandwidth::default(),
            rtt: None,
            min_rtt: None,
        }
    }

    /// An ACK arrives, with an RTT or without: the sample may be over.
    fn advance(&mut self, now: Time, rtt: Option<Time>) {
        if let Some(rtt) = rtt {
            if self.rtt.is_none() {
                // The connection was opened when the acknowledged segments were sent.
                self.bandwidth.begin(self.clock.at(now - rtt));
            }
            self.rtt = Some(self.clock.span(rtt));
        }
        if let Some(rtt) = self.rtt {
            let shortest_window = self.clock.per_second() / 20;
            self.bandwidth
                .close_sample(self.clock.at(now), rtt.max(shortest_window));
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        }
    }

    /// Take the ACK into the bandwidth's sample.
    fn observe(&mut self, ack: &Ack) {
        self.advance(ack.now, ack.rtt);
        self.bandwidth.count(ack);
    }

    /// BW × `RTT_min` in segments.
    fn measured(&self) -> u32 {
        self.bandwidth.segments_in(self.min_rtt.unwrap_or(0))
    }
}

impl Controller for Westwood {
    fn on_ack(&mut self, ack: &Ack) {
        self.observe(ack);
        if self.window.on_ack(ack) {
            self.window.grow_as_reno(ack.newly_acked);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.window.cwnd() / 2);
    }

    fn on_recovered(&mut self, now: Time, rtt: Option<Time>) {
        self.advance(now, rtt);
        self.window.resume_at(self.measured());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        let in_recovery = self.window.in_fast_recovery();
        self.window.restart(self.measured());
        if !in_recovery {
            self.min_rtt = None;
        }
    }

    delegate_to_window!();
}

#[cfg(test)]
mod tests;
