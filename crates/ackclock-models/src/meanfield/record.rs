//! What a run writes down, as columns.

use super::plan::{Plan, Scaling};
use super::queue::Step;

/// Windows over time.
#[derive(Clone, Debug, Default)]
pub struct FlowSamples {
    /// Time of the sample.
    pub time_s: Vec<f64>,
    /// Number of the flow.
    pub flow: Vec<u32>,
    /// Its window; in the limit the mean window of its part of the class, least windows first.
    pub cwnd: Vec<f64>,
    /// Round-trip time.
    pub srtt_s: Vec<f64>,
    /// Packets that it has got through since the run began.
    pub delivered_p: Vec<f64>,
}

/// The queue over time; counts are those since the sample before.
#[derive(Clone, Debug, Default)]
pub struct QueueSamples {
    /// Time of the sample.
    pub time_s: Vec<f64>,
    /// Packets that wait.
    pub backlog_p: Vec<f64>,
    /// How long what arrives now will wait.
    pub sojourn_s: Vec<f64>,
    /// Packets sent on.
    pub departures_p: Vec<u64>,
    /// Packets dropped.
    pub drops_p: Vec<u64>,
    /// Share of the rate that was used.
    pub utilisation: Vec<f64>,
}

/// Reductions, one by one. In the limit, a flow's turn comes whenever a whole flow's share has reduced.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// When the packet was lost.
    pub dropped_s: Vec<f64>,
    /// When the flow heard of it.
    pub reduced_s: Vec<f64>,
    /// Number of the flow.
    pub flow: Vec<u32>,
}

/// Series of drops without a pause of the longest round trip, one row for each class.
#[derive(Clone, Debug, Default)]
pub struct Episodes {
    /// First drop.
    pub start_s: Vec<f64>,
    /// Last drop.
    pub end_s: Vec<f64>,
    /// Number of the class.
    pub class: Vec<u32>,
    /// Share of its flows that reduced.
    pub share: Vec<f64>,
    /// Packets of all classes that were dropped.
    pub dropped_p: Vec<f64>,
}

/// Rows since the last call.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Windows over time.
    pub flow_samples: FlowSamples,
    /// The queue over time.
    pub queue_samples: QueueSamples,
    /// Reductions.
    pub hits: Hits,
    /// Loss episodes that are over.
    pub episodes: Episodes,
}

/// Totals of a flow.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Number of the flow.
    pub flow: Vec<u32>,
    /// Packets got through in the whole run.
    pub delivered_p: Vec<f64>,
    /// Those of the measured part.
    pub measured_p: Vec<f64>,
}

/// Totals of the link in the measured part.
#[derive(Clone, Debug, Default)]
pub struct LinkTotals {
    /// Packets that came.
    pub arrived_p: f64,
    /// Packets dropped.
    pub dropped_p: f64,
    /// Packets sent on.
    pub departed_p: f64,
    /// Time without a queue.
    pub empty_s: f64,
    /// Time measured.
    pub measured_s: f64,
    /// Mean backlog over time.
    pub backlog_mean_p: f64,
    /// Mean waiting time of what was sent on.
    pub sojourn_mean_s: f64,
    /// Upper edges of the bins of waiting times.
    pub sojourn_edges_s: Vec<f64>,
    /// Packets in each bin.
    pub sojourn_counts: Vec<u64>,
    /// Packets that came in the whole run.
    pub arrived_total_p: f64,
    /// Packets dropped in the whole run.
    pub dropped_total_p: f64,
    /// Packets sent on in the whole run.
    pub departed_total_p: f64,
}

/// Bins of waiting times between none and a full buffer.
const BINS: usize = 256;

/// Counts the link's packets; in units of what is run until [`LinkBooks::totals`].
#[derive(Clone, Debug)]
pub struct LinkBooks {
    totals: LinkTotals,
    bins: Vec<f64>,
    full_s: f64,
    backlog_ps: f64,
    sojourn_ps: f64,
    unsampled: Step,
    fractions: [f64; 2],
}

impl LinkBooks {
    /// Empty books for the queue of a plan.
    pub fn new(plan: &Plan) -> LinkBooks {
        LinkBooks {
            totals: LinkTotals::default(),
            bins: vec![0.0; BINS + 1],
            full_s: plan.buffer_p / plan.rate_pps,
            backlog_ps: 0.0,
            sojourn_ps: 0.0,
            unsampled: Step::default(),
            fractions: [0.0; 2],
        }
    }

    /// A step of the queue, in which what left had waited so long.
    pub fn count(
        &mut self,
        step: Step,
        step_s: f64,
        backlog_p: f64,
        waited_s: f64,
        measured: bool,
    ) {
        let totals = &mut self.totals;
        totals.arrived_total_p += step.arrived_p;
        totals.dropped_total_p += step.dropped_p;
        totals.departed_total_p += step.departed_p;
        self.unsampled.departed_p += step.departed_p;
        self.unsampled.dropped_p += step.dropped_p;
        if measured {
            totals.arrived_p += step.arrived_p;
            totals.dropped_p += step.dropped_p;
            totals.departed_p += step.departed_p;
            totals.measured_s += step_s;
            totals.empty_s += if backlog_p > 0.0 { 0.0 } else { step_s };
            self.backlog_ps += backlog_p * step_s;
            self.sojourn_ps += waited_s * step.departed_p;
            let bin = (waited_s / self.full_s * BINS as f64).ceil() as usize;
            self.bins[bin.min(BINS)] += step.departed_p;
        }
    }

    /// A sample of the queue.
    pub fn sample(
        &mut self,
        to: &mut QueueSamples,
        time_s: f64,
        backlog_p: f64,
        plan: &Plan,
        by: Scaling,
    ) {
        let packets = by.amount * by.time;
        let (departed_p, dropped_p) = (self.unsampled.departed_p, self.unsampled.dropped_p);
        to.time_s.push(time_s * by.time);
        to.backlog_p.push(backlog_p * by.amount);
        to.sojourn_s.push(backlog_p / plan.rate_pps);
        to.departures_p
            .push(whole(&mut self.fractions[0], departed_p * packets));
        to.drops_p
            .push(whole(&mut self.fractions[1], dropped_p * packets));
        to.utilisation
            .push((departed_p / (plan.rate_pps * plan.interval_s)).min(1.0));
        self.unsampled = Step::default();
    }

    /// What the link did.
    pub fn totals(&self, by: Scaling) -> LinkTotals {
        let found = &self.totals;
        let packets = by.amount * by.time;
        let edges = (0..=BINS).map(|bin| self.full_s * bin as f64 / BINS as f64);
        LinkTotals {
            arrived_p: found.arrived_p * packets,
            dropped_p: found.dropped_p * packets,
            departed_p: found.departed_p * packets,
            empty_s: found.empty_s * by.time,
            measured_s: found.measured_s * by.time,
            backlog_mean_p: self.backlog_ps / found.measured_s * by.amount,
            sojourn_mean_s: self.sojourn_ps / found.departed_p,
            sojourn_edges_s: edges.collect(),
            sojourn_counts: self
                .bins
                .iter()
                .map(|count| (count * packets).round() as u64)
                .collect(),
            arrived_total_p: found.arrived_total_p * packets,
            dropped_total_p: found.dropped_total_p * packets,
            departed_total_p: found.departed_total_p * packets,
        }
    }
}

/// The whole part of an amount and what was left of those before; the fraction is left for the next.
pub fn whole(left: &mut f64, amount: f64) -> u64 {
    *left += amount;
    let count = left.floor();
    *left -= count;
    count as u64
}
