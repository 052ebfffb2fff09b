//! Steps from event to event.
//!
//! A step is Heun's (second order) and at most a tenth of the shortest RTT. It ends earlier where something
//! happens: a flow begins, ends or reduces its window, an event closes, a queue becomes full or empty or ceases to
//! be. The times of the former are known; those of the latter are found as roots of the step's own parabola.

use super::checks::PlanError;
use super::events::{Congestion, MIN_WINDOW};
use super::ledger::{Ledger, Step};
use super::network::{Network, Rates, Regime, State};
use super::plan::Plan;
use super::record::Outcome;
use super::unsynchronised::Smooth;

/// A step that ends at a root is at least this share of the longest one: where a queue hovers at a bound,
/// the run goes on.
const MIN_STEP_SHARE: f64 = 1e-3;

/// A run.
pub struct Solver {
    duration_s: f64,
    warmup_s: f64,
    step_s: f64,
    now_s: f64,
    measured_from_s: f64,
    network: Network,
    state: State,
    before: State,
    first: Rates,
    second: Rates,
    averages_p: Vec<f64>,
    congestion: Congestion,
    smooth: Smooth,
    ledger: Ledger,
}

impl Solver {
    /// A run before its first step.
    pub fn new(plan: &Plan, seed: u64) -> Result<Solver, PlanError> {
        plan.check()?;
        let network = Network::new(plan, seed)?;
        let (flows, links) = (plan.flows.len(), plan.links.len());
        let state = State {
            windows_p: vec![0.0; flows],
            backlogs_p: vec![0.0; links],
        };
        Ok(Solver {
            duration_s: plan.duration_s,
            warmup_s: plan.warmup_s,
            step_s: plan.step_s(),
            now_s: 0.0,
            measured_from_s: 0.0,
            before: state.clone(),
            state,
            first: Rates::new(flows, links),
            second: Rates::new(flows, links),
            averages_p: vec![0.0; links],
            congestion: Congestion::new(plan, seed),
            smooth: Smooth::new(flows),
            ledger: Ledger::new(plan, &network),
            network,
        })
    }

    /// Run to the end.
    pub fn run(mut self) -> Outcome {
        while self.now_s < self.duration_s {
            self.process_due_events();
            self.network
                .rates(&self.state, self.now_s, true, &mut self.first);
            self.congestion
                .open(&mut self.network, &self.state, &self.first, self.now_s);
            self.step();
        }
        self.outcome()
    }

    /// Process what is due now: flows begin, end and reduce their windows; the warm-up ends.
    fn process_due_events(&mut self) {
        for flow in 0..self.network.flows.len() {
            self.live(flow);
        }
        if self.warmup_s <= self.now_s {
            self.warmup_s = f64::INFINITY;
            self.measured_from_s = self.now_s;
            self.ledger.end_warmup(&self.network);
        }
    }

    fn live(&mut self, flow: usize) {
        let now_s = self.now_s;
        let one = &mut self.network.flows[flow];
        let is_there = one.start_s <= now_s && now_s < one.stop_s;
        if is_there != one.active {
            one.active = is_there;
            self.state.windows_p[flow] = if is_there { one.initial_p } else { 0.0 };
            one.reduces_s = f64::INFINITY;
            if is_there && !one.slow_start {
                let at = self.network.moment(flow, &self.state, now_s);
                self.network.flows[flow].law.avoid(&at);
            }
        } else if one.reduces_s <= now_s {
            let at = self.network.moment(flow, &self.state, now_s);
            self.congestion
                .reduce(flow, &mut self.network, &mut self.state, &at);
            self.ledger.recover(flow);
        }
    }

    /// Time of the next scheduled event.
    fn next_s(&self) -> f64 {
        let now_s = self.now_s;
        let of_flow = |next_s: f64, flow: &super::network::Flow| {
            let change_s = if flow.active {
                flow.stop_s.min(flow.reduces_s)
            } else if flow.start_s > now_s {
                flow.start_s
            } else {
                f64::INFINITY
            };
            next_s.min(change_s)
        };
        let flows_s = self.network.flows.iter().fold(f64::INFINITY, of_flow);
        let end_s = self.warmup_s.min(self.duration_s);
        flows_s.min(end_s).min(self.congestion.next_end_s(now_s))
    }

    /// Take a step.
    fn step(&mut self) {
        let next_s = self.next_s();
        let mut length_s = self.step_s.min(next_s - self.now_s);
        self.before.clone_from(&self.state);
        self.attempt(length_s);
        let root_s = self.root_s(length_s);
        let shorter = root_s < length_s;
        if shorter {
            length_s = root_s.max(MIN_STEP_SHARE * self.step_s).min(length_s);
            self.attempt(length_s);
        }
        let ends = self.now_s + length_s;
        let reaches = !shorter && length_s < self.step_s;
        let now_s = if reaches { next_s } else { ends };
        self.accept(length_s, now_s);
        self.now_s = now_s;
    }

    /// Heun's step: the windows and the rates at its end; backlogs as far as they go.
    fn attempt(&mut self, length_s: f64) {
        let Solver {
            before,
            state,
            first,
            second,
            network,
            ..
        } = self;
        for (flow, window_p) in state.windows_p.iter_mut().enumerate() {
            *window_p = before.windows_p[flow] + length_s * first.growth_p_s[flow];
        }
        for (link, backlog_p) in state.backlogs_p.iter_mut().enumerate() {
            let change = length_s * excess(network, first, link);
            *backlog_p = match network.regimes[link] {
                Regime::Between => (before.backlogs_p[link] + change).max(0.0),
                Regime::Empty | Regime::Full => before.backlogs_p[link],
            };
        }
        network.rates(state, self.now_s + length_s, false, second);
        for (flow, window_p) in state.windows_p.iter_mut().enumerate() {
            if network.flows[flow].active {
                let growth = first.growth_p_s[flow] + second.growth_p_s[flow];
                let grown_p = before.windows_p[flow] + length_s / 2.0 * growth;
                *window_p = grown_p.min(network.flows[flow].largest_p).max(MIN_WINDOW);
            }
        }
    }

    /// Time within the step at which the first queue leaves its regime; infinity if none does.
    fn root_s(&self, length_s: f64) -> f64 {
        let roots = (0..self.network.links.len()).map(|link| {
            let first = excess(&self.network, &self.first, link);
            let second = excess(&self.network, &self.second, link);
            let backlog_p = self.before.backlogs_p[link];
            let end_p = backlog_p + length_s / 2.0 * (first + second);
            let limit_p = self.network.links[link].limit_p;
            match self.network.regimes[link] {
                Regime::Full if second < 0.0 => length_s * first / (first - second),
                Regime::Empty if second > 0.0 => length_s * first / (first - second),
                Regime::Between if end_p > limit_p => {
                    reaches_s(limit_p - backlog_p, first, second, length_s)
                }
                Regime::Between if end_p < 0.0 => reaches_s(backlog_p, -first, -second, length_s),
                _ => f64::INFINITY,
            }
        });
        roots.fold(f64::INFINITY, f64::min)
    }

    /// Make the attempted step the run's: books, backlogs, losses, laws, samples.
    fn accept(&mut self, length_s: f64, now_s: f64) {
        let step = Step {
            from_s: self.now_s,
            length_s,
            first: &self.first,
            second: &self.second,
            before: &self.before,
        };
        for link in 0..self.network.links.len() {
            let mut backlog_p = self.before.backlogs_p[link];
            let lost_p = self
                .ledger
                .count_link(link, &step, &self.network, &mut backlog_p);
            self.state.backlogs_p[link] = backlog_p;
            if lost_p > 0.0 {
                let losing_flows = self
                    .congestion
                    .losing_flows(link, &self.network, self.now_s);
                self.ledger.charge(lost_p, losing_flows, &self.first);
                self.congestion.epochs.lose(link, lost_p);
            }
        }
        self.ledger.count_flows(&step, &self.network, &self.state);
        self.ledger.sample(&step, &self.network, &self.state);
        self.congestion
            .drop_early(&mut self.network, &self.first, length_s, now_s);
        if self.congestion.synchronisation.is_smooth() {
            self.smooth
                .lose(&mut self.network, &mut self.state, length_s, now_s);
        }
        self.average(length_s);
        self.observe(length_s, now_s);
    }

    /// The queues' averages, and the early drops that follow from them.
    fn average(&mut self, length_s: f64) {
        for (link, average_p) in self.averages_p.iter_mut().enumerate() {
            let crossed = &self.network.links[link];
            let queue = &crossed.queue;
            let arrived_p = self.first.arriving_p_s[link] * length_s;
            let sendable_p = crossed.rate_p_s * length_s;
            let backlog_p = self.state.backlogs_p[link];
            *average_p = queue.averaged(*average_p, backlog_p, arrived_p, sendable_p);
            self.network.early[link] = queue.early(*average_p);
        }
    }

    /// The laws see where the step ended; some leave slow start.
    fn observe(&mut self, length_s: f64, now_s: f64) {
        for flow in 0..self.network.flows.len() {
            if !self.network.flows[flow].active {
                continue;
            }
            let at = self.network.moment(flow, &self.state, now_s);
            let one = &mut self.network.flows[flow];
            if !one.slow_start {
                one.law.observe(&at, length_s);
            } else if one.law.leaves_slow_start(&at) {
                one.slow_start = false;
                one.law.avoid(&at);
            }
        }
    }

    fn outcome(mut self) -> Outcome {
        let (flow_samples, queue_samples) = self.ledger.take_samples();
        let measured_s = self.duration_s - self.measured_from_s;
        Outcome {
            flow_samples,
            queue_samples,
            events: self.congestion.rows,
            epochs: self.congestion.epochs,
            flows: self.ledger.flows(&self.network, self.now_s),
            links: self.ledger.links(&self.state, measured_s),
        }
    }
}

/// Rate into a queue in excess of the rate out of it, packets/s.
fn excess(network: &Network, rates: &Rates, link: usize) -> f64 {
    rates.entering_p_s[link] - network.links[link].rate_p_s
}

/// Time s at which `first` s + (second − first) s²/(2 length) reaches `distance` ≥ 0; the length if rounding hides it.
fn reaches_s(distance: f64, first: f64, second: f64, length_s: f64) -> f64 {
    let bend = (second - first) / (2.0 * length_s);
    let root = (first * first + 4.0 * bend * distance).max(0.0).sqrt();
    let found_s = if first + root > 0.0 {
        2.0 * distance / (first + root)
    } else {
        (root - first) / (2.0 * bend)
    };
    if found_s.is_finite() {
        found_s.min(length_s)
    } else {
        length_s
    }
}

#[cfg(test)]
mod tests {
    use super::reaches_s;

    #[test]
    fn roots_of_the_parabola() {
        // 3 s + s² = 10 at s = 2: first 3, second 3 + 2 × 2.5 at 2.5.
        assert!((reaches_s(10.0, 3.0, 8.0, 2.5) - 2.0).abs() < 1e-12);
        // A straight line.
        assert!((reaches_s(6.0, 3.0, 3.0, 4.0) - 2.0).abs() < 1e-12);
        // First away, then towards: −s + s² = 2 at s = 2.
        assert!((reaches_s(2.0, -1.0, 5.0, 3.0) - 2.0).abs() < 1e-12);
        // From the bound itself and back to it: −s + s² = 0 at s = 1.
        assert!((reaches_s(0.0, -1.0, 3.0, 2.0) - 1.0).abs() < 1e-12);
    }
}
