//! Columns that a run records.

use ackclock_core::tables::{record, table};

use super::plan::{Plan, Scaling};
use super::queue::Step;

table!(
    /// Windows over time.
    FlowSamples {
        /// Time of the sample.
        time_s: f64,
        /// Number of the flow.
        flow: u32,
        /// Its window; in the limit the mean window of its part of the class, least windows first.
        cwnd: f64,
        /// Round-trip time.
        srtt_s: f64,
        /// Packets that it has got through since the run began.
        delivered_p: f64,
    }
);

table!(
    /// The queue over time; counts are those since the sample before.
    QueueSamples {
        /// Time of the sample.
        time_s: f64,
        /// Packets that wait.
        backlog_p: f64,
        /// Queueing delay of an arrival now.
        sojourn_s: f64,
        /// Packets sent on.
        departures_p: u64,
        /// Packets dropped.
        drops_p: u64,
        /// Share of the rate that was used.
        utilisation: f64,
    }
);

table!(
    /// Reductions, one by one. In the limit, a flow's turn comes whenever a whole flow's share has reduced.
    Hits {
        /// Time of the loss.
        dropped_s: f64,
        /// Time of the reduction.
        reduced_s: f64,
        /// Number of the flow.
        flow: u32,
    }
);

table!(
    /// Series of drops without a pause of the longest round trip, one row for each class.
    Episodes {
        /// First drop.
        start_s: f64,
        /// Last drop.
        end_s: f64,
        /// Number of the class.
        class: u32,
        /// Share of its flows that reduced.
        share: f64,
        /// Packets of all classes that were dropped.
        dropped_p: f64,
    }
);

record!(
    /// Rows since the last call.
    Rows {
        flow_samples: FlowSamples,
        queue_samples: QueueSamples,
        hits: Hits,
        episodes: Episodes,
    }
);

table!(
    /// Totals of a flow.
    Flows {
        /// Number of the flow.
        flow: u32,
        /// Packets got through in the whole run.
        delivered_p: f64,
        /// Counts of the measured part.
        measured_p: f64,
    }
);

table!(
    /// The link, one row: totals of the measured part.
    Links {
        /// Packets that came.
        arrived_p: f64,
        /// Packets dropped.
        dropped_p: f64,
        /// Packets sent on.
        departed_p: f64,
        /// Time without a queue.
        empty_s: f64,
        /// Time measured.
        measured_s: f64,
        /// Mean backlog over time.
        backlog_mean_p: f64,
        /// Mean waiting time of what was sent on.
        sojourn_mean_s: f64,
        /// Upper edges of the bins of waiting times.
        sojourn_edges_s: Vec<f64>,
        /// Packets in each bin.
        sojourn_counts: Vec<u64>,
        /// Packets that came in the whole run.
        arrived_total_p: f64,
        /// Packets dropped in the whole run.
        dropped_total_p: f64,
        /// Packets sent on in the whole run.
        departed_total_p: f64,
    }
);

record!(
    /// Tables that are complete only at the end.
    Totals {
        flows: Flows,
        links: Links,
    }
);

/// Bins of waiting times between none and a full buffer.
const BINS: usize = 256;

/// Count the link's packets; in units of what is run until [`LinkBooks::totals`].
#[derive(Clone, Debug)]
pub struct LinkBooks {
    take_integer: Step,
    measured: Step,
    measured_s: f64,
    empty_s: f64,
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
            take_integer: Step::default(),
            measured: Step::default(),
            measured_s: 0.0,
            empty_s: 0.0,
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
        self.take_integer.add(step);
        self.unsampled.add(step);
        if measured {
            self.measured.add(step);
            self.measured_s += step_s;
            self.empty_s += if backlog_p > 0.0 { 0.0 } else { step_s };
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
            .push(take_integer(&mut self.fractions[0], departed_p * packets));
        to.drops_p
            .push(take_integer(&mut self.fractions[1], dropped_p * packets));
        to.utilisation
            .push((departed_p / (plan.rate_pps * plan.interval_s)).min(1.0));
        self.unsampled = Step::default();
    }

    /// Totals of the link.
    pub fn totals(&self, by: Scaling) -> Links {
        let (take_integer, measured) = (&self.take_integer, &self.measured);
        let packets = by.amount * by.time;
        let edges = (0..=BINS).map(|bin| self.full_s * bin as f64 / BINS as f64);
        let counts = self.bins.iter();
        let counts = counts.map(|count| (count * packets).round() as u64);
        Links {
            arrived_p: vec![measured.arrived_p * packets],
            dropped_p: vec![measured.dropped_p * packets],
            departed_p: vec![measured.departed_p * packets],
            empty_s: vec![self.empty_s * by.time],
            measured_s: vec![self.measured_s * by.time],
            backlog_mean_p: vec![self.backlog_ps / self.measured_s * by.amount],
            sojourn_mean_s: vec![self.sojourn_ps / measured.departed_p],
            sojourn_edges_s: vec![edges.collect()],
            sojourn_counts: vec![counts.collect()],
            arrived_total_p: vec![take_integer.arrived_p * packets],
            dropped_total_p: vec![take_integer.dropped_p * packets],
            departed_total_p: vec![take_integer.departed_p * packets],
        }
    }
}

/// The whole part of an amount and what was left of those before; the fraction is left for the next.
pub fn take_integer(left: &mut f64, amount: f64) -> u64 {
    *left += amount;
    let count = left.floor();
    *left -= count;
    count as u64
}
