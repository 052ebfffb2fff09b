//! The limit of infinitely many flows: cohorts that split when some of their flows lose.
//!
//! A loss sends a share of each cohort back to age 0. Flows that reduce in the same step from windows in
//! the same cell, see `Field::cell`, become one new cohort at their mean; so a step adds at most one cohort
//! for each cell. When there are more than a limit, cohorts that lie in the same cell of the plane
//! (time of reduction, window after it) are merged, see `Field::merge`. Merging keeps the share, the
//! mean time and the mean windows; what it loses is the variance inside a cell, of second order in the
//! cell's width.

use super::cohorts::{Cohorts, Exposure};
use super::law::{Law, Start};

/// An octave of windows has 2⁷ cells, which are 0.4 to 0.8 % wide.
const OCTAVE_BITS: u32 = 7;

/// Width of a cell in time, as a share of the base RTT.
const SLOT: f64 = 0.125;

/// Cohorts with less mass than this may lie in wider cells.
const LIGHT: f64 = 1e-7;

/// Mass below which a cohort is dropped, since its means are undefined.
const NEGLIGIBLE_MASS: f64 = 1e-200;

/// Each time that cohorts remain too many, heavier ones count as light.
const HEAVIER: f64 = 4.0;

/// Resolution of the cohorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Cells are 2ⁿ times as narrow, in window and in time.
    pub finer: u32,
    /// Number of cohorts above which they are merged.
    pub max_cohorts: usize,
}

impl Default for Resolution {
    fn default() -> Resolution {
        Resolution {
            finer: 0,
            max_cohorts: 2048,
        }
    }
}

/// A class of flows in the limit.
#[derive(Clone, Debug)]
pub struct Field {
    law: Law,
    resolution: Resolution,
    slot_s: f64,
    cohorts: Cohorts,
    newborn: Newborn,
}

impl Field {
    /// Flows as they are at the beginning, of shares that are 1 together.
    pub fn new(law: Law, base_rtt_s: f64, cohorts: Cohorts, resolution: Resolution) -> Field {
        let slot_s = SLOT * base_rtt_s / f64::from(1 << resolution.finer);
        Field {
            law,
            resolution,
            slot_s,
            cohorts,
            newborn: Newborn::default(),
        }
    }

    /// The cohorts.
    pub fn cohorts(&self) -> &Cohorts {
        &self.cohorts
    }

    /// Their windows at a time; returns the mean.
    pub fn grow(&mut self, now_s: f64, rounds: f64) -> f64 {
        self.cohorts.grow(&self.law, now_s, rounds)
    }

    /// Slow start ends without a loss.
    pub fn leave_slow_start(&mut self, now_s: f64, rounds: f64, least_p: f64) {
        self.cohorts
            .leave_slow_start(&self.law, now_s, rounds, least_p);
    }

    /// Let flows lose; returns the share that reduces.
    pub fn lose(&mut self, loss: &Exposure) -> f64 {
        let mut sum = 0.0;
        let opening = self.cohorts.opening().to_vec();
        for i in 0..self.cohorts.len() {
            if self.cohorts.birth_s[i] > loss.until_s {
                continue;
            }
            let window = self.cohorts.window[i];
            let chance = if opening.contains(&i) {
                loss.chance_by_lot(window)
            } else {
                loss.chance(window)
            };
            sum += self.reduce(i, chance, loss);
        }
        self.insert_newborn();
        sum
    }

    /// A share of a cohort reduces; returns the share of the class that it is.
    fn reduce(&mut self, i: usize, chance: f64, loss: &Exposure) -> f64 {
        let leaving = self.cohorts.mass[i] * chance;
        self.cohorts.mass[i] -= leaving;
        let start = loss.start(&self.law, self.cohorts.window[i], self.cohorts.plateau[i]);
        let sum = Sum::of(leaving, loss.now_s, loss.rounds_of_growth(), start);
        let cell = 2 * self.cell(start.window) + usize::from(self.law.aims_lower(start));
        self.newborn.add(cell, sum);
        leaving
    }

    /// Insert the newborn, a cohort for each cell.
    fn insert_newborn(&mut self) {
        let mut newborn = std::mem::take(&mut self.newborn);
        newborn.drain(|sum| self.push(sum));
        self.newborn = newborn;
        if self.cohorts.len() > self.resolution.max_cohorts {
            self.merge();
        }
    }

    fn push(&mut self, sum: &Sum) {
        if sum.mass > NEGLIGIBLE_MASS {
            let start = Start {
                window: sum.start / sum.mass,
                plateau: sum.plateau / sum.mass,
                rest_s: sum.rest_s / sum.mass,
            };
            let (birth_s, rounds) = (sum.birth_s / sum.mass, sum.rounds / sum.mass);
            self.cohorts
                .push(&self.law, sum.mass, birth_s, rounds, start);
        }
    }

    /// The cell of a window of at least 1: the leading bits of the number, its exponent among them.
    fn cell(&self, window: f64) -> usize {
        let cut = f64::MANTISSA_DIGITS - 1 - OCTAVE_BITS - self.resolution.finer;
        (window.to_bits().saturating_sub(1f64.to_bits()) >> cut) as usize
    }

    /// Merge cohorts in the same cell. Cells are twice as wide for each factor of four that a cohort's
    /// mass lies below a limit, so that each merger loses about the same share of the variance. The limit
    /// rises until at most half of the allowed number is left.
    fn merge(&mut self) {
        let mut light = LIGHT;
        while self.cohorts.len() > self.resolution.max_cohorts / 2 {
            let old = std::mem::take(&mut self.cohorts);
            self.cohorts.keep_opening(&self.law, &old);
            let mut keyed: Vec<_> = (0..old.len())
                .filter(|i| !old.opening().contains(i))
                .map(|i| (self.place(&old, i, light), i))
                .collect();
            keyed.sort_unstable();
            for group in keyed.chunk_by(|(left, _), (right, _)| left == right) {
                let mut sum = Sum::default();
                for (_, i) in group {
                    sum.add(&Sum::from(&old, *i));
                }
                self.push(&sum);
            }
            light *= HEAVIER;
        }
    }

    fn place(&self, cohorts: &Cohorts, i: usize, light: f64) -> (u32, i64, usize, bool) {
        let start = cohorts.start_of(i);
        let lightness = (light / cohorts.mass[i]).log2() / 2.0;
        let level = lightness.ceil().clamp(0.0, 40.0) as u32;
        let slot = (cohorts.birth_s[i] / self.slot_s).floor() as i64;
        (
            level,
            slot >> level,
            self.cell(start.window) >> level,
            self.law.aims_lower(start),
        )
    }
}

/// Flows that reduce in this step, by the cell of their window.
#[derive(Clone, Debug, Default)]
struct Newborn {
    cells: Vec<Sum>,
    first: usize,
    end: usize,
}

impl Newborn {
    fn add(&mut self, cell: usize, sum: Sum) {
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, Sum::default());
        }
        self.first = if self.end == 0 {
            cell
        } else {
            self.first.min(cell)
        };
        self.end = self.end.max(cell + 1);
        self.cells[cell].add(&sum);
    }

    fn drain(&mut self, mut take: impl FnMut(&Sum)) {
        for sum in &mut self.cells[self.first..self.end] {
            take(sum);
            *sum = Sum::default();
        }
        (self.first, self.end) = (0, 0);
    }
}

/// Sums over flows that are to become one cohort: mass, and moments times mass.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    mass: f64,
    birth_s: f64,
    rounds: f64,
    start: f64,
    plateau: f64,
    rest_s: f64,
}

impl Sum {
    fn of(mass: f64, birth_s: f64, rounds: f64, start: Start) -> Sum {
        Sum {
            mass,
            birth_s: mass * birth_s,
            rounds: mass * rounds,
            start: mass * start.window,
            plateau: mass * start.plateau,
            rest_s: mass * start.rest_s,
        }
    }

    fn from(cohorts: &Cohorts, i: usize) -> Sum {
        Sum::of(
            cohorts.mass[i],
            cohorts.birth_s[i],
            cohorts.rounds[i],
            cohorts.start_of(i),
        )
    }

    fn add(&mut self, other: &Sum) {
        self.mass += other.mass;
        self.birth_s += other.birth_s;
        self.rounds += other.rounds;
        self.start += other.start;
        self.plateau += other.plateau;
        self.rest_s += other.rest_s;
    }
}
