//! The equations: sending rate of every flow and arrival rate of every queue at one instant.

use super::checks::PlanError;
use super::growth::{self, Growth, Moment};
use super::plan::{self, Plan};
use super::queue::Queue;
use super::random;

/// Growth rate of a doubling per round trip.
const SLOW_START: f64 = std::f64::consts::LN_2;
/// A backlog counts as full from this share of the limit on: rounding.
const FULL: f64 = 1.0 - 1e-9;

/// A flow: its path, its law, and where it is in the life of a connection.
pub struct Flow {
    /// Links that it crosses, in order.
    pub path: Vec<usize>,
    /// T.
    pub base_rtt_s: f64,
    /// Start, jitter included.
    pub start_s: f64,
    /// End; infinity: not in this run.
    pub stop_s: f64,
    /// M, packets.
    pub largest_p: f64,
    /// Packets of its first window.
    pub initial_p: f64,
    /// Its growth law.
    pub law: Box<dyn Growth>,
    /// True if it has begun and not ended.
    pub active: bool,
    /// True if it is in slow start.
    pub slow_start: bool,
    /// Time of its next reduction; infinity: no loss is detected.
    pub reduces_s: f64,
    /// Number of cuts at that time.
    pub cuts: f64,
    /// Time until which losses do not count: one reduction per round trip.
    pub immune_s: f64,
}

/// A queue: its plan, and the flows that cross it.
pub struct Link {
    /// C, packets/s.
    pub rate_p_s: f64,
    /// B, packets.
    pub limit_p: f64,
    /// Its discipline.
    pub queue: Queue,
    /// The flows that cross it.
    pub members: Vec<usize>,
}

/// Continuous state.
#[derive(Clone, Default)]
pub struct State {
    /// W by flow, packets.
    pub windows_p: Vec<f64>,
    /// q by link, packets.
    pub backlogs_p: Vec<f64>,
}

/// Regime of a queue, which is constant within a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// q = 0 and AR ≤ C: everything passes.
    Empty,
    /// C leave, the rest waits.
    Between,
    /// q = B and AR > C: C leave, the rest is lost.
    Full,
}

/// The right-hand sides at one instant.
#[derive(Clone, Default)]
#[allow(clippy::struct_field_names)] // Units are in the names.
pub struct Rates {
    /// A by flow, packets/s.
    pub sent_p_s: Vec<f64>,
    /// Rate at which packets leave a flow's last queue, packets/s.
    pub delivered_p_s: Vec<f64>,
    /// R by flow.
    pub rtt_s: Vec<f64>,
    /// dW/dt by flow, packets/s.
    pub growth_p_s: Vec<f64>,
    /// AR by link, packets/s.
    pub arriving_p_s: Vec<f64>,
    /// AR less early drops, packets/s.
    pub entering_p_s: Vec<f64>,
}

impl Rates {
    /// Rates of so many flows and links, all 0.
    pub fn new(flows: usize, links: usize) -> Rates {
        Rates {
            sent_p_s: vec![0.0; flows],
            delivered_p_s: vec![0.0; flows],
            rtt_s: vec![0.0; flows],
            growth_p_s: vec![0.0; flows],
            arriving_p_s: vec![0.0; links],
            entering_p_s: vec![0.0; links],
        }
    }
}

/// Flows and links.
pub struct Network {
    /// The flows.
    pub flows: Vec<Flow>,
    /// The links.
    pub links: Vec<Link>,
    /// The links in an order in which every path crosses them.
    pub order: Vec<usize>,
    /// The regime of each queue.
    pub regimes: Vec<Regime>,
    /// The probability of early drops at each queue.
    pub early: Vec<f64>,
}

impl Network {
    /// The network of a plan; no flow has begun.
    pub fn new(plan: &Plan, seed: u64) -> Result<Network, PlanError> {
        let flow = |(index, flow)| Flow::new(flow, index, seed, plan.slow_start);
        let flows: Vec<Flow> = plan
            .flows
            .iter()
            .enumerate()
            .map(flow)
            .collect::<Result<_, _>>()?;
        let link = |(index, link): (usize, &plan::Link)| Link {
            rate_p_s: link.rate_p_s,
            limit_p: link.queue.limit_p,
            queue: link.queue,
            members: (0..flows.len())
                .filter(|&flow| flows[flow].path.contains(&index))
                .collect(),
        };
        let links: Vec<Link> = plan.links.iter().enumerate().map(link).collect();
        Ok(Network {
            order: plan.order()?,
            regimes: vec![Regime::Empty; links.len()],
            early: vec![0.0; links.len()],
            flows,
            links,
        })
    }

    /// A flow at an instant.
    pub fn moment(&self, flow: usize, state: &State, now_s: f64) -> Moment {
        Moment {
            now_s,
            window_p: state.windows_p[flow],
            rtt_s: self.rtt_s(flow, state),
            base_rtt_s: self.flows[flow].base_rtt_s,
        }
    }

    /// R = T + Σ q/C.
    pub fn rtt_s(&self, flow: usize, state: &State) -> f64 {
        let waits = |link: &usize| state.backlogs_p[*link] / self.links[*link].rate_p_s;
        let Flow {
            base_rtt_s, path, ..
        } = &self.flows[flow];
        base_rtt_s + path.iter().map(waits).sum::<f64>()
    }

    /// Compute the rates and, at the start of a step, the regimes.
    pub fn rates(&mut self, state: &State, now_s: f64, begins: bool, rates: &mut Rates) {
        for flow in 0..self.flows.len() {
            self.source(flow, state, now_s, rates);
        }
        for place in 0..self.order.len() {
            self.pass(self.order[place], state, begins, rates);
        }
    }

    /// A flow's RTT, rate and growth; what it sends arrives at its first queue.
    fn source(&self, flow: usize, state: &State, now_s: f64, rates: &mut Rates) {
        let moment = self.moment(flow, state, now_s);
        rates.rtt_s[flow] = moment.rtt_s;
        let source = &self.flows[flow];
        if !source.active {
            rates.sent_p_s[flow] = 0.0;
            rates.delivered_p_s[flow] = 0.0;
            rates.growth_p_s[flow] = 0.0;
            return;
        }
        rates.sent_p_s[flow] = moment.window_p / moment.rtt_s;
        rates.delivered_p_s[flow] = rates.sent_p_s[flow];
        let increase = if source.slow_start {
            SLOW_START * moment.window_p
        } else {
            source.law.increase(&moment)
        };
        let bounded = if moment.window_p < source.largest_p {
            increase
        } else {
            increase.min(0.0)
        };
        rates.growth_p_s[flow] = bounded / moment.rtt_s;
    }

    /// Let the flows through a queue: what leaves it is what arrives at the next.
    fn pass(&mut self, link: usize, state: &State, begins: bool, rates: &mut Rates) {
        let Link {
            rate_p_s,
            limit_p,
            ref members,
            ..
        } = self.links[link];
        let arriving: f64 = members.iter().map(|&flow| rates.delivered_p_s[flow]).sum();
        let entering = arriving * (1.0 - self.early[link]);
        rates.arriving_p_s[link] = arriving;
        rates.entering_p_s[link] = entering;
        if begins {
            let backlog_p = state.backlogs_p[link];
            self.regimes[link] = if backlog_p >= FULL * limit_p && entering > rate_p_s {
                Regime::Full
            } else if backlog_p <= 0.0 && entering <= rate_p_s {
                Regime::Empty
            } else {
                Regime::Between
            };
        }
        let share = match self.regimes[link] {
            Regime::Empty => 1.0 - self.early[link],
            _ if arriving > 0.0 => rate_p_s / arriving,
            _ => 0.0,
        };
        if share != 1.0 {
            for &flow in members {
                rates.delivered_p_s[flow] *= share;
            }
        }
    }
}

impl Flow {
    fn new(
        planned: &plan::Flow,
        index: usize,
        seed: u64,
        slow_start: bool,
    ) -> Result<Flow, PlanError> {
        let law = growth::make(&planned.law, &planned.parameters).map_err(|reason| {
            PlanError::Growth {
                flow: index,
                reason,
            }
        })?;
        Ok(Flow {
            path: planned.path.clone(),
            base_rtt_s: planned.base_rtt_s,
            start_s: planned.start_s + planned.start_jitter_s * random::uniform(seed, index as u64),
            stop_s: planned.stop_s.unwrap_or(f64::INFINITY),
            largest_p: planned.largest_window.unwrap_or(f64::INFINITY),
            initial_p: planned.initial_window,
            law,
            active: false,
            slow_start,
            reduces_s: f64::INFINITY,
            cuts: 1.0,
            immune_s: 0.0,
        })
    }
}
