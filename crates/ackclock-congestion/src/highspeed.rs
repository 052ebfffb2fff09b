//! HighSpeed TCP: the larger the window, the larger the increase and the smaller the decrease.
//!
//! RFC 3649 (S. Floyd, 2003), as Linux 6.1 behaves (`tcp_highspeed.c`). The response function is to be
//! w = 0.12 / p^0.835 above 38 segments and Reno's below (section 5). That takes
//!
//! ```text
//!   a(w) = w² p(w) 2 b(w) / (2 − b(w))                  segments more per round trip
//!   b(w) = 0.5 − 0.4 log(w / 38) / log(83,000 / 38)     share given up at a loss
//!   p(w) = 1 / (12.8 w^1.2)                             p, from the response function
//! ```
//!
//! Appendix B tabulates both where a(w) has grown by one: the rows are made here as its program makes them.
//!
//! Where Linux departs from the RFC, and this file with it:
//! - a and b are those of the next row at or above the window: a(39) is 2, what the RFC reaches at 118.
//! - b counts in 1/256, rounded down. The last row is that of a = 72 (w = 89,053).
//! - Each ACK, and not each acknowledged segment, adds a(w)/w: delayed ACKs halve the growth. An ACK
//!   raises the window by one segment at most.
//! - The row is found when congestion avoidance grows the window. A loss gives up the share of the row found last:
//!   the first one, out of slow start, a half.
//! - What slow start leaves over when it reaches ssthresh is not counted.
//!
//! The parameter `whole_segments` = false gives the RFC's form: a(w) and b(w) as above, for each
//! acknowledged segment, and a fractional window.
//!
//! Deviation: RFC 3742's limited slow start is not part of it.

mod fractional;

use std::sync::LazyLock;

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use fractional::Fractional;

use super::slow_start::SlowStart;
use super::window::{delegate_to_window, Window};
use super::{Ack, Controller, Loss, Made};

/// Up to this window HighSpeed TCP is Reno (`Low_Window`, section 5: p = 10⁻³ for Reno).
const LOW_WINDOW: f64 = 38.0;
/// Window at which the decrease is [`HIGH_DECREASE`] (`High_Window`: 10 Gb/s, 1,500 B, 100 ms).
const HIGH_WINDOW: f64 = 83_000.0;
/// Reno's decrease, up to [`LOW_WINDOW`].
const LOW_DECREASE: f64 = 0.5;
/// Decrease at [`HIGH_WINDOW`] (`High_Decrease`).
const HIGH_DECREASE: f64 = 0.1;
/// p(w) = 1 / (12.8 w^1.2), through p = 10⁻³ at 38 and 10⁻⁷ at 83,000 segments (appendix B).
const INVERSE_LOSS: (f64, f64) = (12.8, 1.2);
/// Rows that Linux has of the table.
const ROWS: usize = 72;
/// Linux counts b in parts of this.
const DECREASE_SCALE: u32 = 256;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// True if the window is whole segments and a, b are the table's, as in Linux.
    whole_segments: bool,
    slow_start: SlowStart,
}

/// Up to `window`, `decrease_256`/256 are given up at a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    window: u32,
    decrease_256: u32,
}

/// A HighSpeed sender's window.
#[derive(Clone, Debug)]
struct HighSpeed {
    window: Window,
    /// Appendix B; the row of number n has a = n + 1.
    table: &'static [Row],
    /// The row found last.
    row: usize,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let slow_start = parameters.slow_start;
    Ok(if parameters.whole_segments {
        slow_start.control(HighSpeed::new(initial_window))
    } else {
        slow_start.control(Fractional::new(initial_window))
    })
}

/// b(w): the share that is given up at a loss (section 5).
fn b(w: f64) -> f64 {
    let height = (w.max(LOW_WINDOW) / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln();
    (LOW_DECREASE - (LOW_DECREASE - HIGH_DECREASE) * height).max(0.0)
}

/// p(w): the loss rate at which the average window is w (appendix B).
fn p(w: f64) -> f64 {
    let (factor, exponent) = INVERSE_LOSS;
    1.0 / (factor * w.powf(exponent))
}

/// a(w): segments more per round trip (section 5).
fn a(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        1.0
    } else {
        w * w * p(w) * 2.0 * b(w) / (2.0 - b(w))
    }
}

/// The windows at which appendix B's program prints a row: a(w) is above the last row's by more than one.
fn row_windows() -> impl Iterator<Item = u32> {
    let low = LOW_WINDOW as u32;
    let higher = (low + 1..).scan(1.0, |last, w| {
        let grown = a(f64::from(w)) > *last + 1.0;
        if grown {
            *last = a(f64::from(w));
        }
        Some(grown.then_some(w))
    });
    std::iter::once(low).chain(higher.flatten())
}

/// The table, made once: its rows are looked for among all windows up to the last one.
static TABLE: LazyLock<Vec<Row>> = LazyLock::new(table);

fn table() -> Vec<Row> {
    row_windows()
        .take(ROWS)
        .map(|window| Row {
            window,
            decrease_256: (b(f64::from(window)) * f64::from(DECREASE_SCALE)) as u32,
        })
        .collect()
}

impl HighSpeed {
    fn new(initial_window: f64) -> HighSpeed {
        HighSpeed {
            window: Window::new(initial_window),
            table: &TABLE,
            row: 0,
        }
    }

    /// The first row whose window is not below the present one; the last row for windows beyond it.
    fn find_row(&self) -> usize {
        let cwnd = self.window.cwnd();
        let above = self.table.partition_point(|row| row.window < cwnd);
        above.min(self.table.len() - 1)
    }

    /// a(w) / w for an ACK: a segment once the credit has come to a window.
    fn grow(&mut self) {
        let increase = self.row as u32 + 1;
        self.window.earn(increase);
        let cwnd = self.window.cwnd();
        if self.window.credit() >= cwnd {
            self.window.buy(1, cwnd);
        }
    }

    fn reduced(&self) -> u32 {
        let cwnd = u64::from(self.window.cwnd());
        let given_up = cwnd * u64::from(self.table[self.row].decrease_256);
        (cwnd - given_up / u64::from(DECREASE_SCALE)) as u32
    }
}

impl Controller for HighSpeed {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.on_ack(ack) {
            return;
        }
        if self.window.in_slow_start() {
            let _ = self.window.slow_start(ack.newly_acked);
        } else {
            self.row = self.find_row();
            self.grow();
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.reduced());
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.reduced());
    }

    delegate_to_window!();
}

#[cfg(test)]
mod tests;
