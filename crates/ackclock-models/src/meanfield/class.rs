//! Flows of one control and one base RTT: in the limit or a finite number.

use super::cohorts::{Cohorts, Exposure};
use super::field::{Field, Resolution};
use super::law::Law;
use super::particles::Particles;
use super::plan::{ClassPlan, Plan};
use super::record::{whole, Flows};

/// The flows of a class.
#[derive(Clone, Debug)]
enum Population {
    Field(Field),
    Particles(Particles),
}

/// A class in a run.
#[derive(Clone, Debug)]
pub struct Class {
    flows: Vec<u32>,
    base_rtt_s: f64,
    population: Population,
    /// Round-trip time at present.
    pub rtt_s: f64,
    rounds: f64,
    mean_p: f64,
    delivered_p: Vec<f64>,
    measured_p: Vec<f64>,
    hit: Vec<usize>,
    turn: usize,
    fraction: f64,
}

/// Losses that flows hear of in a step.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Chance of a flow's packet to be lost, for a rate of one to the power `by_rate`.
    pub probability: f64,
    /// γ.
    pub by_rate: f64,
    /// Length of the step.
    pub step_s: f64,
    /// Whether a flow reduces once in a round trip at most.
    pub once: bool,
}

impl Class {
    /// A class just after its first loss; `number` sets its random numbers apart.
    pub fn new(
        plan: &Plan,
        class: &ClassPlan,
        seed: u64,
        number: u64,
        resolution: Resolution,
    ) -> Class {
        let law = Law::of(class.control);
        let start = law.from_loss_at(plan.first_loss_p(class));
        let count = class.flows.len();
        let population = if plan.particles {
            Population::Particles(Particles::new(law, count, start, seed, number))
        } else {
            Population::Field(Field::new(law, class.base_rtt_s, start, resolution))
        };
        let apart = if plan.particles { count } else { 1 };
        Class {
            flows: class.flows.clone(),
            base_rtt_s: class.base_rtt_s,
            population,
            rtt_s: class.base_rtt_s,
            rounds: 0.0,
            mean_p: 0.0,
            delivered_p: vec![0.0; apart],
            measured_p: vec![0.0; apart],
            hit: Vec::new(),
            turn: 0,
            fraction: 0.0,
        }
    }

    /// The cohorts, or the particles.
    pub fn cohorts(&self) -> &Cohorts {
        match &self.population {
            Population::Field(field) => field.cohorts(),
            Population::Particles(particles) => particles.cohorts(),
        }
    }

    /// Windows at a time, behind a queue that takes so long; returns the rate of all flows.
    pub fn grow(&mut self, now_s: f64, queue_s: f64) -> f64 {
        self.rtt_s = self.base_rtt_s + queue_s;
        self.mean_p = match &mut self.population {
            Population::Field(field) => field.grow(now_s, self.rounds),
            Population::Particles(particles) => particles.grow(now_s, self.rounds),
        };
        self.flows.len() as f64 * self.mean_p / self.rtt_s
    }

    /// Sum over the flows of their rates to a power.
    pub fn weight(&self, power: f64) -> f64 {
        let cohorts = self.cohorts();
        let of_one = |(mass, window): (&f64, &f64)| mass * (window / self.rtt_s).powf(power);
        let mean: f64 = cohorts.mass.iter().zip(&cohorts.window).map(of_one).sum();
        self.flows.len() as f64 * mean
    }

    /// Lets flows hear of a loss; calls back with the number of each flow that reduces.
    pub fn lose(&mut self, now_s: f64, heard: Heard, mut reduced: impl FnMut(u32)) {
        let rate_of_one = if heard.by_rate == 1.0 {
            self.rtt_s
        } else {
            self.rtt_s.powf(heard.by_rate)
        };
        let loss = Exposure {
            now_s,
            rounds: self.rounds,
            hazard: heard.probability * heard.step_s / rate_of_one,
            by_rate: heard.by_rate,
            until_s: if heard.once {
                now_s - self.rtt_s
            } else {
                f64::INFINITY
            },
        };
        match &mut self.population {
            Population::Particles(particles) => {
                particles.lose(&loss, &mut self.hit);
                self.hit.iter().for_each(|i| reduced(self.flows[*i]));
            }
            Population::Field(field) => {
                let share = field.lose(&loss);
                for _ in 0..whole(&mut self.fraction, share * self.flows.len() as f64) {
                    reduced(self.flows[self.turn]);
                    self.turn = (self.turn + 1) % self.flows.len();
                }
            }
        }
    }

    /// The end of a step: round trips go by, and so many packets get through for each that was sent.
    pub fn pass(&mut self, step_s: f64, through: f64, measured: bool) {
        let sent = step_s / self.rtt_s;
        self.rounds += sent;
        let single = [self.mean_p];
        let windows = match &self.population {
            Population::Field(_) => &single[..],
            Population::Particles(particles) => &particles.cohorts().window,
        };
        for ((window, delivered_p), measured_p) in windows
            .iter()
            .zip(&mut self.delivered_p)
            .zip(&mut self.measured_p)
        {
            let got = window * sent * through;
            *delivered_p += got;
            *measured_p += if measured { got } else { 0.0 };
        }
    }

    /// The window and the packets got through of each flow, in the order of their numbers.
    ///
    /// In the limit flow i of n is the i-th n-th part of the class, least windows first: its window is the mean
    /// over that part, so that the mean over the flows is the class's, and their distribution is the class's.
    pub fn samples(&self) -> impl Iterator<Item = (u32, f64, f64)> + '_ {
        let windows = match &self.population {
            Population::Field(field) => parts(field.cohorts(), self.flows.len()),
            Population::Particles(particles) => particles.cohorts().window.clone(),
        };
        let delivered = self.delivered_p.iter().cycle();
        self.flows
            .iter()
            .zip(windows)
            .zip(delivered)
            .map(|((flow, window), got)| (*flow, window, *got))
    }

    /// Adds the flows' totals, times a factor.
    pub fn totals(&self, to: &mut Flows, factor: f64) {
        let counted = self.delivered_p.iter().zip(&self.measured_p).cycle();
        for (flow, (delivered_p, measured_p)) in self.flows.iter().zip(counted) {
            to.flow.push(*flow);
            to.delivered_p.push(delivered_p * factor);
            to.measured_p.push(measured_p * factor);
        }
    }
}

/// Mean windows of the n parts of equal mass, in ascending order.
fn parts(cohorts: &Cohorts, count: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..cohorts.len()).collect();
    order.sort_unstable_by(|a, b| cohorts.window[*a].total_cmp(&cohorts.window[*b]));
    let share = cohorts.total() / count as f64;
    let (mut means, mut mass, mut sum) = (Vec::with_capacity(count), 0.0, 0.0);
    for i in order {
        let mut left = cohorts.mass[i];
        while mass + left >= share && means.len() + 1 < count {
            let taken = share - mass;
            means.push((sum + taken * cohorts.window[i]) / share);
            left -= taken;
            (mass, sum) = (0.0, 0.0);
        }
        mass += left;
        sum += left * cohorts.window[i];
    }
    means.push(if mass > 0.0 {
        sum / mass
    } else {
        means.last().copied().unwrap_or(0.0)
    });
    means
}
