//! Plan of a run, as JSON. Each field is required (`null` where a quantity is absent), an unknown one is an error.
//! That is why a variant without fields has braces: serde lets any other one have unknown fields.

use serde::Deserialize;
use serde_json::Value;

use super::checks::{between, positive, PlanError};
use super::loss_assignment::LossAssignment;
use super::queue::Queue;
use super::synchronisation::Synchronisation;

/// A run: links, flows, and the two controllers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Length of the run.
    pub duration_s: f64,
    /// The beginning that the measured totals leave out.
    pub warmup_s: f64,
    /// The longest step; `null`: a tenth of the shortest base RTT.
    #[serde(deserialize_with = "Option::deserialize")]
    pub step_s: Option<f64>,
    /// Time between samples; `null`: there are none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub interval_s: Option<f64>,
    /// True if flows begin with slow start.
    pub slow_start: bool,
    /// The queues.
    pub links: Vec<Link>,
    /// The flows.
    pub flows: Vec<Flow>,
    /// Number of flows that an event hits.
    pub synchronisation: Synchronisation,
    /// Flows that an event hits.
    pub loss_assignment: LossAssignment,
    /// Number of cuts by which an event reduces the window of a flow that it hits.
    pub cuts: Cuts,
}

/// Number of cuts by which an event reduces the window of a flow that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cuts {
    /// Once, as TCP does.
    Once,
    /// Once for each packet that the flow loses in it: W b λ with λ in packets, as Kumar, Azad and Park 2010 print it.
    Packets,
}

/// A queue and its server.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// C: packets per second.
    pub rate_p_s: f64,
    /// The queue before it.
    pub queue: Queue,
}

/// A long-lived flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Indexes of the links that it crosses, in order.
    pub path: Vec<usize>,
    /// T: its RTT without queues.
    pub base_rtt_s: f64,
    /// Start.
    pub start_s: f64,
    /// Up to so much later, drawn from the seed.
    pub start_jitter_s: f64,
    /// End, if there is one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub stop_s: Option<f64>,
    /// Packets of its first window.
    pub initial_window: f64,
    /// M: packets of its largest window.
    #[serde(deserialize_with = "Option::deserialize")]
    pub largest_window: Option<f64>,
    /// Name of its growth law.
    pub law: String,
    /// The parameters of the law's algorithm spec; those that concern packets only are ignored.
    pub parameters: Value,
}

impl Plan {
    /// Read a plan.
    ///
    /// # Errors
    /// It is not one, or has numbers without meaning.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        let plan: Plan = serde_json::from_str(text)?;
        plan.check()?;
        Ok(plan)
    }

    /// The longest step, s: well below the shortest RTT, the time in which the equations change.
    pub fn step_s(&self) -> f64 {
        let shortest = self.flows.iter().map(|flow| flow.base_rtt_s);
        let automatic = shortest.fold(f64::INFINITY, f64::min) / STEPS_PER_RTT;
        self.step_s.unwrap_or(automatic).min(self.duration_s)
    }

    /// The links in an order in which every path crosses them.
    ///
    /// # Errors
    /// There is none.
    pub fn order(&self) -> Result<Vec<usize>, PlanError> {
        let mut order: Vec<usize> = Vec::with_capacity(self.links.len());
        while order.len() < self.links.len() {
            let first = |link: usize| !order.contains(&link) && self.is_first(link, &order);
            let next = (0..self.links.len()).find(|&link| first(link));
            order.push(next.ok_or(PlanError::Circle)?);
        }
        Ok(order)
    }

    /// True if all the links before this one, on every path, are among those `done`.
    fn is_first(&self, link: usize, done: &[usize]) -> bool {
        let before = |flow: &Flow| {
            let place = flow.path.iter().position(|&other| other == link);
            flow.path[..place.unwrap_or(0)]
                .iter()
                .all(|other| done.contains(other))
        };
        self.flows.iter().all(before)
    }

    /// Reject numbers without meaning.
    ///
    /// # Errors
    /// The first such number.
    pub fn check(&self) -> Result<(), PlanError> {
        positive("duration_s", self.duration_s)?;
        between("warmup_s", self.warmup_s, 0.0, self.duration_s)?;
        for (name, value) in [("step_s", self.step_s), ("interval_s", self.interval_s)] {
            value.map_or(Ok(()), |value| positive(name, value))?;
        }
        if self.flows.is_empty() {
            return Err(PlanError::Value("flows: found none; expected one".into()));
        }
        self.links.iter().try_for_each(Link::check)?;
        let of_flow = |flow: &Flow| flow.check(self.links.len());
        self.flows.iter().try_for_each(of_flow)?;
        self.synchronisation.check()?;
        self.loss_assignment.check(self.flows.len())
    }
}

/// Steps in the shortest base RTT. The equations relax within one RTT; with a method of second order and
/// events found within a step, twice as many move no utilisation by 0.1 points.
const STEPS_PER_RTT: f64 = 10.0;

impl Link {
    fn check(&self) -> Result<(), PlanError> {
        positive("rate_p_s", self.rate_p_s)?;
        self.queue.check()
    }
}

impl Flow {
    fn check(&self, links: usize) -> Result<(), PlanError> {
        let twice = |(place, link)| self.path[..place].contains(link);
        if self.path.is_empty() || self.path.iter().any(|&link| link >= links) {
            let message = format!("path: found {:?}; expected links below {links}", self.path);
            return Err(PlanError::Value(message));
        }
        if self.path.iter().enumerate().any(twice) {
            return Err(PlanError::Circle);
        }
        positive("base_rtt_s", self.base_rtt_s)?;
        positive("initial_window", self.initial_window)?;
        between("start_s", self.start_s, 0.0, f64::MAX)?;
        between("start_jitter_s", self.start_jitter_s, 0.0, f64::MAX)?;
        self.stop_s
            .map_or(Ok(()), |stop| between("stop_s", stop, 0.0, f64::MAX))?;
        self.largest_window
            .map_or(Ok(()), |most| positive("largest_window", most))
    }
}
