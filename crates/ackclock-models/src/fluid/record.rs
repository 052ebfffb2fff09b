//! The columns that a run writes; packets are fractions of packets.

/// A row that concerns no link.
pub const NONE: u32 = u32::MAX;

/// Names of the codes in column `kind` of the events.
pub const EVENT_KINDS: [&str; 2] = ["drop", "recovery"];

/// What happened; the code is the place in [`EVENT_KINDS`].
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A congestion event hit a flow.
    Drop,
    /// A flow reduced its window.
    Recovery,
}

/// Samples of the flows.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct FlowSamples {
    pub time_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub cwnd: Vec<f64>,
    pub srtt_s: Vec<f64>,
    pub delivered_p: Vec<f64>,
}

/// Samples of the queues; `departed_p` and `dropped_p` since the run began.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct QueueSamples {
    pub time_s: Vec<f64>,
    pub link: Vec<u32>,
    pub backlog_p: Vec<f64>,
    pub departed_p: Vec<f64>,
    pub dropped_p: Vec<f64>,
}

/// Drops (one for each flow that an event hits) and reductions.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Events {
    pub time_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub link: Vec<u32>,
    pub kind: Vec<u8>,
    pub value: Vec<f64>,
}

impl Events {
    /// Adds a row.
    pub fn push(&mut self, time_s: f64, flow: u32, link: u32, kind: Kind, value: f64) {
        self.time_s.push(time_s);
        self.flow.push(flow);
        self.link.push(link);
        self.kind.push(kind as u8);
        self.value.push(value);
    }
}

/// Congestion events: a row each; `dropped_p` is what the link lost from it to the next.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Epochs {
    pub time_s: Vec<f64>,
    pub link: Vec<u32>,
    pub hit: Vec<u32>,
    pub active: Vec<u32>,
    pub dropped_p: Vec<f64>,
}

impl Epochs {
    /// Adds a row.
    pub fn push(&mut self, time_s: f64, link: usize, hit: usize, active: usize) {
        self.time_s.push(time_s);
        self.link.push(link as u32);
        self.hit.push(hit as u32);
        self.active.push(active as u32);
        self.dropped_p.push(0.0);
    }

    /// Adds losses to the last event of a link.
    pub fn lose(&mut self, link: usize, packets: f64) {
        let last = self.link.iter().rposition(|&other| other == link as u32);
        if let Some(last) = last {
            self.dropped_p[last] += packets;
        }
    }
}

/// Totals of the flows; `measured_` and means are of the measured part.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Flows {
    pub start_s: Vec<f64>,
    pub end_s: Vec<f64>,
    pub sent_p: Vec<f64>,
    pub delivered_p: Vec<f64>,
    pub dropped_p: Vec<f64>,
    pub recoveries: Vec<u64>,
    pub measured_sent_p: Vec<f64>,
    pub measured_delivered_p: Vec<f64>,
    pub window_mean_p: Vec<f64>,
    pub rtt_mean_s: Vec<f64>,
}

/// Totals of the links: of the measured part, `_total_` of the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Links {
    pub arrived_p: Vec<f64>,
    pub dropped_p: Vec<f64>,
    pub departed_p: Vec<f64>,
    pub busy_s: Vec<f64>,
    pub empty_s: Vec<f64>,
    pub backlog_mean_p: Vec<f64>,
    pub sojourn_mean_s: Vec<f64>,
    pub sojourn_max_s: Vec<f64>,
    pub sojourn_edges_s: Vec<Vec<f64>>,
    pub sojourn_counts: Vec<Vec<u64>>,
    pub arrived_total_p: Vec<f64>,
    pub dropped_total_p: Vec<f64>,
    pub departed_total_p: Vec<f64>,
    pub backlog_end_p: Vec<f64>,
}

/// All that a run leaves.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Outcome {
    pub flow_samples: FlowSamples,
    pub queue_samples: QueueSamples,
    pub events: Events,
    pub epochs: Epochs,
    pub flows: Flows,
    pub links: Links,
}
