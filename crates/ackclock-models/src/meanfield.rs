//! The distribution of infinitely many flows through one queue, as the number of flows grows.
//!
//! S. Belhareth: Joint network and system performance for cloud computing, PhD thesis, Université Nice
//! Sophia Antipolis, 2014, chapter 3, after F. Baccelli, D. McDonald, J. Reynier: A mean-field model for
//! multiple TCP connections through a buffer implementing RED, Performance Evaluation 49, 2002. Flows send
//! at w/r; the queue drops a share k(t) of arrivals; a flow detects it a round trip later and reduces
//! with hazard k(t − r) w/r.
//!
//! Our deviations:
//! - The distribution is kept as cohorts by the time since the last loss and the window then, not on a
//!   lattice of windows: growth is exact, each cohort follows its own curve, and the average time of the
//!   last loss that (3.6) puts in the place of each flow's own is not needed.
//! - As printed, (3.2) does not conserve mass: the in-flux carries a factor (w − 1)/r too many, and
//!   δ(w_max, w/(1 − β)) loses mass on whole windows. Here each loss moves mass.
//! - A flow reduces once in a round trip at most, as TCP does; the thesis has nothing of the kind, and then
//!   an overflow cuts each flow several times. `one_reduction_per_rtt = false` is as printed.
//! - Losing takes time: a lost packet stays in its flow's window and clocks nothing out until it is detected, each
//!   loss is detected, and a window rests for the round trip of its recovery. As printed, the rate w/r goes on
//!   growing while the queue is full, and more packets are lost; k(t − r) w/r counts a loss 1/(1 − dr/dt)
//!   times while the queue moves. `recovery = false` is as printed.
//! - An empty queue may grow again, and a full one drops: see [`queue`].
//!
//! - Losses need not be uniform over packets, as behind a tail-drop queue they are not: a flow's hazard is ρ k Σx x_i^γ
//!   / Σx^γ, with its rate x_i = w/r; ρ (`loss_weight`) and γ (`loss_rate_exponent`) are 1 in the thesis, and may be
//!   fitted to packets.
//!
//! Mixtures of controls and of round-trip times, RED, CoDel, PIE, slow start and a finite number of flows go beyond the
//! thesis.

mod class;
pub mod codel;
pub mod cohorts;
pub mod field;
pub mod history;
pub mod law;
pub mod particles;
pub mod pie;
pub mod plan;
pub mod policy;
pub mod queue;
pub mod record;
pub mod undetected_loss;

use class::{Class, DetectedLoss};
use cohorts::Cohorts;
use field::Resolution;
use history::History;
use plan::{Plan, PlanError, Scaling};
use queue::{Queue, Step};
use record::{Flows, Hits, LinkBooks, Rows, Totals};

/// A run of the model.
#[derive(Clone, Debug)]
pub struct MeanField {
    plan: Plan,
    scaling: Scaling,
    step_s: f64,
    steps_per_sample: u64,
    step: u64,
    last_step: u64,
    queue: Queue,
    history: History,
    classes: Vec<Class>,
    episode: Option<Episode>,
    link: LinkBooks,
    rows: Rows,
}

/// A series of drops that is not over.
#[derive(Clone, Copy, Debug)]
struct Episode {
    start_s: f64,
    end_s: f64,
    dropped_p: f64,
}

impl MeanField {
    /// Set a run up. The seed matters to particles only.
    ///
    /// # Errors
    /// A plan that is not one.
    pub fn new(plan: &Plan, seed: u64) -> Result<MeanField, PlanError> {
        MeanField::with_resolution(plan, seed, Resolution::default())
    }

    /// Make a model with another resolution of cohorts.
    ///
    /// # Errors
    /// A plan that is not one.
    pub fn with_resolution(
        plan: &Plan,
        seed: u64,
        resolution: Resolution,
    ) -> Result<MeanField, PlanError> {
        plan.check()?;
        let scaling = plan.scaling()?;
        let plan = plan.scaled_down(scaling);
        let (steps_per_sample, step_s) = plan.steps();
        let classes = plan.classes.iter().zip(0..);
        Ok(MeanField {
            scaling,
            step_s,
            steps_per_sample,
            step: 0,
            last_step: (plan.duration_s / step_s).round() as u64,
            queue: Queue::new(plan.rate_pps, plan.buffer_p, plan.policy),
            history: History::default(),
            classes: classes
                .map(|(class, number)| Class::new(&plan, class, seed, number, resolution))
                .collect(),
            episode: None,
            link: LinkBooks::new(&plan),
            rows: Rows::default(),
            plan,
        })
    }

    /// Advance to a time, or to the end of the plan; returns the time reached.
    pub fn advance(&mut self, until_s: f64) -> f64 {
        let until = (until_s / self.scaling.time / self.step_s).round() as u64;
        while self.step < until.min(self.last_step) {
            self.go_one_step();
        }
        self.now_s() * self.scaling.time
    }

    /// Take the rows since the last call.
    pub fn drain(&mut self) -> Rows {
        std::mem::take(&mut self.rows)
    }

    /// The last sample, and what flows and link did; afterwards, drain what is left.
    pub fn finish(&mut self) -> Totals {
        self.send();
        self.sample();
        self.close_episode(true);
        let packets = self.scaling.amount * self.scaling.time;
        let mut flows = Flows::default();
        self.classes
            .iter()
            .for_each(|class| class.totals(&mut flows, packets));
        Totals {
            flows,
            links: self.link.totals(self.scaling),
        }
    }

    /// The cohorts of a class.
    pub fn cohorts(&self, class: usize) -> &Cohorts {
        self.classes[class].cohorts()
    }

    /// Packets in the queue.
    pub fn backlog_p(&self) -> f64 {
        self.queue.backlog_p() * self.scaling.amount
    }

    fn now_s(&self) -> f64 {
        self.step as f64 * self.step_s
    }

    fn go_one_step(&mut self) {
        let arriving_pps = self.send();
        self.sample();
        let (now_s, waited_s) = (self.now_s(), self.queue.delay_s());
        let measured = now_s >= self.plan.warmup_s;
        let found = self.queue.step(arriving_pps, self.step_s);
        self.link.count(
            found,
            self.step_s,
            self.queue.backlog_p(),
            waited_s,
            measured,
        );
        self.record_losses(now_s, found);
        self.watch_episode(now_s, found.dropped_p);
        if self.plan.recovery {
            self.detect_losses(now_s);
        } else {
            self.reduce(now_s);
        }
        let through = if found.arrived_p > 0.0 {
            found.departed_p / found.arrived_p
        } else {
            0.0
        };
        for class in &mut self.classes {
            class.pass(self.step_s, through, measured);
        }
        self.step += 1;
    }

    /// All windows at present; returns the rate of what is sent.
    fn send(&mut self) -> f64 {
        let (now_s, queue_s) = (self.now_s(), self.queue.delay_s());
        self.classes
            .iter_mut()
            .map(|class| class.grow(now_s, queue_s))
            .sum()
    }

    /// Record the losses of a step for later detection.
    fn record_losses(&mut self, now_s: f64, found: Step) {
        if !self.plan.recovery {
            self.history.push(self.step, found.loss_probability());
        } else if found.dropped_p > 0.0 {
            let loss_rate_exponent = self.plan.loss_rate_exponent;
            let all: f64 = self
                .classes
                .iter()
                .map(|class| class.weight(loss_rate_exponent))
                .sum();
            for class in &mut self.classes {
                class.lost(
                    now_s,
                    found.dropped_p * class.weight(loss_rate_exponent) / all,
                );
            }
        }
    }

    /// Let flows detect the losses of a round trip ago.
    fn detect_losses(&mut self, now_s: f64) {
        let at_head = self.plan.policy.drops_at_the_head();
        for class in &mut self.classes {
            let losses = self.plan.loss_weight * class.detect(now_s, at_head);
            if losses > 0.0 {
                let (hazard, by_lot) = class.hazards(losses, self.plan.loss_rate_exponent);
                let loss = DetectedLoss {
                    hazard,
                    by_lot,
                    loss_rate_exponent: self.plan.loss_rate_exponent,
                    is_limited: self.plan.one_reduction_per_rtt,
                    rests: true,
                };
                let ago_s = now_s - class.rtt_s;
                lose(
                    class,
                    now_s,
                    ago_s,
                    loss,
                    &mut self.rows.hits,
                    self.scaling.time,
                );
            }
        }
    }

    /// Reduce windows by the loss probability of a round trip ago, as printed.
    fn reduce(&mut self, now_s: f64) {
        if self.history.is_empty() {
            return;
        }
        let step_s = self.step_s;
        let counted = self.plan.loss_weight * self.rate_bias();
        for class in &mut self.classes {
            let then_s = now_s - class.rtt_s;
            let probability = self.history.at(then_s / step_s);
            if probability > 0.0 {
                let of_a_step = counted * probability * step_s;
                let loss = DetectedLoss {
                    hazard: of_a_step / class.rtt_s.powf(self.plan.loss_rate_exponent),
                    by_lot: self.plan.loss_weight * probability * step_s / class.rtt_s,
                    loss_rate_exponent: self.plan.loss_rate_exponent,
                    is_limited: self.plan.one_reduction_per_rtt,
                    rests: false,
                };
                lose(
                    class,
                    now_s,
                    then_s,
                    loss,
                    &mut self.rows.hits,
                    self.scaling.time,
                );
            }
        }
        let longest_s = self.longest_rtt_s() + self.plan.buffer_p / self.plan.rate_pps;
        self.history.forget((now_s - longest_s) / self.step_s - 2.0);
    }

    /// Normalisation of losses in proportion to a power of the rates: Σ x / Σ x^γ.
    fn rate_bias(&self) -> f64 {
        if self.plan.loss_rate_exponent == 1.0 {
            return 1.0;
        }
        let sum =
            |power: f64| -> f64 { self.classes.iter().map(|class| class.weight(power)).sum() };
        sum(1.0) / sum(self.plan.loss_rate_exponent)
    }

    fn longest_rtt_s(&self) -> f64 {
        self.classes
            .iter()
            .map(|class| class.rtt_s)
            .fold(0.0, f64::max)
    }

    fn watch_episode(&mut self, now_s: f64, dropped_p: f64) {
        if dropped_p > 0.0 {
            let open = Episode {
                start_s: now_s,
                end_s: now_s,
                dropped_p: 0.0,
            };
            let episode = self.episode.get_or_insert(open);
            episode.end_s = now_s;
            episode.dropped_p += dropped_p;
        } else if self.episode.is_some() {
            self.close_episode(false);
        }
    }

    /// End an episode when all flows have detected its last drop.
    fn close_episode(&mut self, at_once: bool) {
        let heard_s = self.now_s() - self.longest_rtt_s() - 2.0 * self.step_s;
        let Some(episode) = self
            .episode
            .take_if(|episode| at_once || episode.end_s < heard_s)
        else {
            return;
        };
        let (time, packets) = (self.scaling.time, self.scaling.amount * self.scaling.time);
        let rows = &mut self.rows.episodes;
        for (class, number) in self.classes.iter().zip(0..) {
            rows.start_s.push(episode.start_s * time);
            rows.end_s.push(episode.end_s * time);
            rows.class.push(number);
            rows.share
                .push(class.cohorts().reduced_since(episode.start_s).min(1.0));
            rows.dropped_p.push(episode.dropped_p * packets);
        }
    }

    fn sample(&mut self) {
        if self.step == 0 || !self.step.is_multiple_of(self.steps_per_sample) {
            return;
        }
        let (now_s, backlog_p) = (self.now_s(), self.queue.backlog_p());
        self.link.sample(
            &mut self.rows.queue_samples,
            now_s,
            backlog_p,
            &self.plan,
            self.scaling,
        );
        let packets = self.scaling.amount * self.scaling.time;
        let rows = &mut self.rows.flow_samples;
        for class in &self.classes {
            for (flow, window, delivered_p) in class.samples() {
                rows.time_s.push(now_s * self.scaling.time);
                rows.flow.push(flow);
                rows.cwnd.push(window * self.scaling.amount);
                rows.srtt_s.push(class.rtt_s);
                rows.delivered_p.push(delivered_p * packets);
            }
        }
    }
}

/// Let the flows of a class detect the losses of a time, and record each that reduces.
fn lose(
    class: &mut Class,
    now_s: f64,
    then_s: f64,
    loss: DetectedLoss,
    hits: &mut Hits,
    time: f64,
) {
    class.lose(now_s, loss, |flow| {
        hits.dropped_s.push(then_s * time);
        hits.reduced_s.push(now_s * time);
        hits.flow.push(flow);
    });
}
