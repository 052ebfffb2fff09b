//! Flows as cohorts: those that reduced at about the same time, from about the same window.
//!
//! Arrays of structs taken apart: the windows of all cohorts are computed in each step.

use super::law::{Law, Start};

/// Largest number of doublings in slow start.
const MAX_DOUBLINGS: f64 = 40.0;

/// Flows exposed to a loss: those that reduced not later than `until_s`, each with `hazard` times a power of its
/// window.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    /// Time of the loss's detection.
    pub now_s: f64,
    /// Round trips so far, ∫ dt / r.
    pub rounds: f64,
    /// Chance of a reduction in this step, for a window of one packet.
    pub hazard: f64,
    /// Power of the window that the hazard goes with.
    pub loss_rate_exponent: f64,
    /// Chance per packet, for flows in slow start.
    pub by_lot: f64,
    /// The round trip in which a window rests after a reduction; 0 if it does not.
    pub rest_s: f64,
    /// Flows that reduced after that ignore it.
    pub until_s: f64,
}

impl Exposure {
    /// Chance of a reduction of a flow with a window.
    pub fn chance(&self, window: f64) -> f64 {
        let weight = if self.loss_rate_exponent == 1.0 {
            window
        } else {
            window.powf(self.loss_rate_exponent)
        };
        -(-self.hazard * weight).exp_m1()
    }

    /// The same of one in slow start.
    pub fn chance_by_lot(&self, window: f64) -> f64 {
        -(-self.by_lot * window).exp_m1()
    }

    /// Growth that begins with a loss.
    pub fn start(&self, law: &Law, window: f64, plateau: f64) -> Start {
        Start {
            rest_s: self.rest_s,
            ..law.after_loss(window, plateau)
        }
    }

    /// The round trips that will have gone when windows grow again.
    pub fn rounds_of_growth(&self) -> f64 {
        self.rounds + if self.rest_s > 0.0 { 1.0 } else { 0.0 }
    }
}

/// Cohorts: share of the flows, and since when they have been growing from where.
#[derive(Clone, Debug, Default)]
pub struct Cohorts {
    /// Share of the class's flows.
    pub mass: Vec<f64>,
    /// Time of the last reduction.
    pub birth_s: Vec<f64>,
    /// Round trips that had gone when the window began to grow.
    pub rounds: Vec<f64>,
    /// Window after it.
    pub start: Vec<f64>,
    /// `w_max` of the curve.
    pub plateau: Vec<f64>,
    /// Initial rest of the window.
    pub rest_s: Vec<f64>,
    /// V, when the curve reaches it.
    inflection_s: Vec<f64>,
    /// Windows at the last call of [`Cohorts::grow`].
    pub window: Vec<f64>,
    /// The numbers of those in slow start.
    opening: Vec<usize>,
}

impl Cohorts {
    /// Number of cohorts.
    pub fn len(&self) -> usize {
        self.mass.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.mass.is_empty()
    }

    /// A cohort more.
    pub fn push(&mut self, law: &Law, mass: f64, birth_s: f64, rounds: f64, start: Start) {
        self.mass.push(mass);
        self.birth_s.push(birth_s);
        self.rounds.push(rounds);
        self.start.push(start.window);
        self.plateau.push(start.plateau);
        self.rest_s.push(start.rest_s);
        self.inflection_s.push(law.inflection_s(start));
        self.window.push(start.window);
    }

    /// A cohort more, which begins slow start at a time.
    pub fn open(&mut self, law: &Law, mass: f64, start_s: f64, window: f64) {
        self.opening.push(self.len());
        self.push(law, mass, start_s, 0.0, law.at_plateau(window));
    }

    /// The numbers of those in slow start.
    pub fn opening(&self) -> &[usize] {
        &self.opening
    }

    /// Growth since its last reduction.
    pub fn start_of(&self, i: usize) -> Start {
        Start {
            window: self.start[i],
            plateau: self.plateau[i],
            rest_s: self.rest_s[i],
        }
    }

    /// Take over those of others that are in slow start.
    pub fn keep_opening(&mut self, law: &Law, others: &Cohorts) {
        for i in others.opening.iter().copied() {
            self.opening.push(self.len());
            self.push(
                law,
                others.mass[i],
                others.birth_s[i],
                others.rounds[i],
                others.start_of(i),
            );
        }
    }

    /// End slow start without a loss for windows of at least `window` packets.
    pub fn leave_slow_start(&mut self, law: &Law, now_s: f64, rounds: f64, least_p: f64) {
        let opening = std::mem::take(&mut self.opening);
        let (leaving, staying) = opening
            .into_iter()
            .partition(|i| self.window[*i] >= least_p);
        self.opening = staying;
        let leaving: Vec<usize> = leaving;
        for i in leaving {
            self.begin(i, law, now_s, rounds, law.at_plateau(self.window[i]));
        }
    }

    /// Restart cohort `i` after a loss.
    pub fn restart(&mut self, i: usize, law: &Law, loss: &Exposure) {
        let start = loss.start(law, self.window[i], self.plateau[i]);
        self.begin(i, law, loss.now_s, loss.rounds_of_growth(), start);
        self.opening.retain(|other| *other != i);
    }

    fn begin(&mut self, i: usize, law: &Law, now_s: f64, rounds: f64, start: Start) {
        self.birth_s[i] = now_s;
        self.rounds[i] = rounds;
        self.start[i] = start.window;
        self.plateau[i] = start.plateau;
        self.rest_s[i] = start.rest_s;
        self.inflection_s[i] = law.inflection_s(start);
    }

    /// The windows at a time, and their mean over the flows.
    pub fn grow(&mut self, law: &Law, now_s: f64, rounds: f64) -> f64 {
        match (law.curve(), law.increase()) {
            (Some(c), Some(a)) => self.fill(
                |age, gone, start, top, v| {
                    cubic(c, age - v, top).max(start + a * rounds_since(rounds, gone))
                },
                now_s,
            ),
            (Some(c), None) => self.fill(
                |age, _, start, top, v| cubic(c, age - v, top).max(start),
                now_s,
            ),
            (None, a) => {
                let a = a.unwrap_or(0.0);
                self.fill(
                    |_, gone, start, _, _| start + a * rounds_since(rounds, gone),
                    now_s,
                );
            }
        }
        self.double(now_s, rounds);
        weighted(&self.mass, &self.window)
    }

    /// Windows in slow start double in each round trip; those that have not begun are 0.
    fn double(&mut self, now_s: f64, rounds: f64) {
        for i in self.opening.iter().copied() {
            if now_s < self.birth_s[i] {
                self.rounds[i] = rounds;
                self.window[i] = 0.0;
            } else {
                let doublings = (rounds - self.rounds[i]).min(MAX_DOUBLINGS);
                self.window[i] = self.start[i] * doublings.exp2();
            }
        }
    }

    fn fill(&mut self, window: impl Fn(f64, f64, f64, f64, f64) -> f64, now_s: f64) {
        let rest = self
            .birth_s
            .iter()
            .zip(&self.rounds)
            .zip(&self.start)
            .zip(&self.plateau)
            .zip(&self.inflection_s);
        for (value, ((((birth_s, rounds), start), plateau), v)) in self.window.iter_mut().zip(rest)
        {
            *value = window(now_s - birth_s, *rounds, *start, *plateau, *v);
        }
    }

    /// All the mass there is: 1, but for rounding.
    pub fn total(&self) -> f64 {
        self.mass.iter().sum()
    }

    /// Share of the flows that have reduced since a time.
    pub fn reduced_since(&self, time_s: f64) -> f64 {
        let born = self.mass.iter().zip(&self.birth_s);
        born.filter(|(_, birth_s)| **birth_s >= time_s)
            .map(|(mass, _)| mass)
            .sum()
    }
}

/// Sum of products, in four sums that do not wait for each other.
fn weighted(masses: &[f64], windows: &[f64]) -> f64 {
    let (fours, of_windows) = (masses.chunks_exact(4), windows.chunks_exact(4));
    let rest = fours.remainder().iter().zip(of_windows.remainder());
    let rest: f64 = rest.map(|(mass, window)| mass * window).sum();
    let mut sums = [0.0; 4];
    for (masses, windows) in fours.zip(of_windows) {
        for lane in 0..4 {
            sums[lane] += masses[lane] * windows[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn cubic(c: f64, t: f64, plateau: f64) -> f64 {
    c * t * t * t + plateau
}

fn rounds_since(rounds: f64, before: f64) -> f64 {
    (rounds - before).max(0.0)
}
