//! BIC: a binary search for the window at which losses begin.
//!
//! L. Xu, K. Harfoush, I. Rhee: Binary increase CCA (BIC) for fast long-distance networks,
//! INFOCOM 2004, as Linux 6.1 behaves (`tcp_bic.c`). After a loss at the window `w_max` the window comes
//! down to β `w_max` and goes back, in segments per round trip, by
//!
//! ```text
//!   max_increment                 while a quarter of the distance to w_max is longer than that;
//!   (w_max − cwnd) / 4            then: the binary search;
//!   4 / smooth_part               where that is at most 1, and until w_max + 4: the plateau;
//!   (cwnd − w_max) / 3            beyond: the search for a new maximum,
//!   max_increment                 once it has gone max_increment × 3 beyond.
//! ```
//!
//! At windows of `low_window` and less, BIC is Reno.
//!
//! Where Linux departs from the paper, and this file with it:
//! - The search steps to a quarter of the distance; the paper's aims at the middle.
//! - Increments are whole segments, each bought with `per_increment` acknowledged ones (the window
//!   divided by the amounts above). `per_increment` is computed when the window has changed, or after
//!   1/32 s.
//! - `per_increment` is divided by the mean number of segments per ACK, although it is segments
//!   that are counted and not ACKs: with a receiver that acknowledges every other segment the window grows
//!   twice as fast as above. The mean is a moving one in whole sixteenths that stays at 31/16 even where
//!   each segment is acknowledged. The first SACK of a hole counts as an ACK of no segment, those that follow do not
//!   count, nor does the ACK that fills the hole. The parameter `ack_ratio` = false leaves all of that out.
//! - Before the first loss and after a timeout there is no `w_max`; the window grows by at least 5 % per
//!   round trip (`per_increment` ≤ 20). The paper has slow start there.
//! - The plateau is given by its length (`smooth_part` round trips for four segments), where the paper
//!   has a smallest increment `S_min`.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{require, Ack, Controller, Loss, Made};

/// The search steps to this part of the distance; the plateau has this height, in segments.
const SEARCH_PART: u32 = 4;
/// Time after which Linux computes the increment again though the window is the same: 1/32 s.
const STALE: Time = Time::from_microseconds(31_250);
/// Most acknowledged segments per increment while no maximum is known: 5 % per round trip.
const MAX_PER_INCREMENT_UNKNOWN: u32 = 20;
/// Linux counts β in parts of this.
const BETA_SCALE: u32 = 1024;
/// Linux counts segments per ACK in parts of this, and weighs the newest ACK with the inverse.
const RATIO_SCALE: u32 = 16;
/// Segments per ACK to begin with: a receiver with delayed ACKs.
const INITIAL_RATIO: u32 = 2 * RATIO_SCALE;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// β: the share of the window that is kept at a loss.
    beta: f64,
    /// Most segments more per round trip (`S_max`).
    max_increment: u32,
    /// Windows up to this are Reno's.
    low_window: u32,
    /// Round trips that the four segments at the maximum take.
    smooth_part: u32,
    /// True if a loss below `w_max` lowers `w_max` further, to make room for new flows.
    fast_convergence: bool,
    /// True if increments are multiplied by the segments per ACK.
    ack_ratio: bool,
    slow_start: SlowStart,
}

/// A BIC sender's window.
#[derive(Clone, Copy, Debug)]
struct Bic {
    parameters: Parameters,
    /// β in 1/1024.
    beta_1024: u32,
    window: Window,
    /// Window at the last loss, or less by fast convergence; 0 if none is known.
    w_max: u32,
    /// Segments per ACK, in 1/16: a moving average.
    ratio_16: u32,
    /// The last ACK left holes: what follows is no measure of segments per ACK.
    disordered: bool,
    /// Acknowledged segments per increment.
    per_increment: u32,
    /// Window and time of the last update.
    updated: Option<(u32, Time)>,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, β outside (0, 1), or an increment or a plateau of 0.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    // Linux's 819 for 0.8 is rounded down.
    let beta_1024 = (parameters.beta * f64::from(BETA_SCALE)) as u32;
    require(
        (1..BETA_SCALE).contains(&beta_1024),
        "beta, the share of the window that is kept, must be between 0 and 1",
    )?;
    require(
        parameters.max_increment > 0 && parameters.smooth_part > 0,
        "max_increment and smooth_part must be at least 1",
    )?;
    Ok(parameters.slow_start.control(Bic {
        parameters,
        beta_1024,
        window: Window::new(initial_window),
        w_max: 0,
        ratio_16: INITIAL_RATIO,
        disordered: false,
        per_increment: 1,
        updated: None,
    }))
}

impl Bic {
    /// Track the number of segments per ACK, while all is in order and nothing is being repaired.
    fn observe_ratio(&mut self, ack: &Ack) {
        let counts = self.window.is_open() && !self.disordered;
        self.disordered = ack.has_sack;
        if counts {
            let kept = self.ratio_16 - self.ratio_16 / RATIO_SCALE;
            self.ratio_16 = kept.saturating_add(ack.cumulatively_acked);
        }
    }

    /// Find how many acknowledged segments the next increment takes.
    fn update(&mut self, now: Time) {
        let cwnd = self.window.cwnd();
        let recent = |(looked_cwnd, at)| looked_cwnd == cwnd && now.since(at) <= STALE;
        if self.updated.is_some_and(recent) {
            return;
        }
        self.updated = Some((cwnd, now));
        self.per_increment = if cwnd <= self.parameters.low_window {
            cwnd
        } else {
            self.corrected(self.search(cwnd))
        };
    }

    /// Acknowledged segments per increment of the search.
    fn search(&self, cwnd: u32) -> u32 {
        let per_increment = if cwnd < self.w_max {
            self.towards_the_maximum(cwnd, self.w_max - cwnd)
        } else {
            self.max_probing(cwnd, cwnd - self.w_max)
        };
        if self.w_max == 0 {
            per_increment.min(MAX_PER_INCREMENT_UNKNOWN)
        } else {
            per_increment
        }
    }

    fn towards_the_maximum(&self, cwnd: u32, distance: u32) -> u32 {
        let step = distance / SEARCH_PART;
        if step > self.parameters.max_increment {
            self.fastest(cwnd)
        } else if step <= 1 {
            self.plateau(cwnd)
        } else {
            cwnd / step
        }
    }

    fn max_probing(&self, cwnd: u32, distance: u32) -> u32 {
        let accelerating = self
            .parameters
            .max_increment
            .saturating_mul(SEARCH_PART - 1);
        if distance < SEARCH_PART {
            self.plateau(cwnd)
        } else if distance < accelerating {
            cwnd.saturating_mul(SEARCH_PART - 1) / distance
        } else {
            self.fastest(cwnd)
        }
    }

    fn fastest(&self, cwnd: u32) -> u32 {
        cwnd / self.parameters.max_increment
    }

    fn plateau(&self, cwnd: u32) -> u32 {
        cwnd.saturating_mul(self.parameters.smooth_part) / SEARCH_PART
    }

    /// Divided by the segments per ACK; at least 1.
    fn corrected(&self, per_increment: u32) -> u32 {
        let corrected = if self.parameters.ack_ratio {
            let scaled = u64::from(per_increment) * u64::from(RATIO_SCALE);
            (scaled / u64::from(self.ratio_16.max(1))) as u32
        } else {
            per_increment
        };
        corrected.max(1)
    }

    /// The window that a loss leaves: half of a small one, else β.
    fn reduced(&self) -> u32 {
        let cwnd = self.window.cwnd();
        if cwnd <= self.parameters.low_window {
            cwnd / 2
        } else {
            scaled(cwnd, self.beta_1024)
        }
    }

    /// `w_max` after a loss at the present window, with fast convergence.
    fn next_w_max(&self) -> u32 {
        let cwnd = self.window.cwnd();
        if self.parameters.fast_convergence && cwnd < self.w_max {
            scaled(cwnd, BETA_SCALE + self.beta_1024) / 2
        } else {
            cwnd
        }
    }
}

/// `window` × `share_1024` / 1024.
fn scaled(window: u32, share_1024: u32) -> u32 {
    (u64::from(window) * u64::from(share_1024) / u64::from(BETA_SCALE)) as u32
}

impl Controller for Bic {
    fn on_ack(&mut self, ack: &Ack) {
        self.observe_ratio(ack);
        if !self.window.on_ack(ack) {
            return;
        }
        let left = self.window.slow_start(ack.newly_acked);
        if left > 0 {
            self.update(ack.now);
            self.window.additive_increase(self.per_increment, left);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.w_max = self.next_w_max();
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.reduced());
        self.w_max = 0;
        self.ratio_16 = INITIAL_RATIO;
        self.updated = None;
    }

    delegate_to_window!();
}

#[cfg(test)]
mod response_tests;
#[cfg(test)]
mod tests;
