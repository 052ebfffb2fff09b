//! The columns that a run writes; packets are fractions of packets.

use ackclock_core::tables::{record, table, Events};

table!(
    /// Samples of the flows.
    FlowSamples {
        time_s: f64,
        flow: u32,
        cwnd: f64,
        srtt_s: f64,
        delivered_p: f64,
    }
);

table!(
    /// Samples of the queues; `departed_p` and `dropped_p` since the run began.
    QueueSamples {
        time_s: f64,
        link: u32,
        backlog_p: f64,
        departed_p: f64,
        dropped_p: f64,
    }
);

table!(
    /// Congestion events: a row each; `dropped_p` is what the link lost from it to the next.
    Epochs {
        time_s: f64,
        link: u32,
        hit: u32,
        active: u32,
        dropped_p: f64,
    }
);

impl Epochs {
    /// Add a row.
    pub fn push(&mut self, time_s: f64, link: usize, hit: usize, active: usize) {
        self.time_s.push(time_s);
        self.link.push(link as u32);
        self.hit.push(hit as u32);
        self.active.push(active as u32);
        self.dropped_p.push(0.0);
    }

    /// Add losses to the last event of a link.
    pub fn lose(&mut self, link: usize, packets: f64) {
        let last = self.link.iter().rposition(|&other| other == link as u32);
        if let Some(last) = last {
            self.dropped_p[last] += packets;
        }
    }
}

table!(
    /// Totals of the flows; `measured_` and means are of the measured part.
    Flows {
        start_s: f64,
        end_s: f64,
        sent_p: f64,
        delivered_p: f64,
        dropped_p: f64,
        recoveries: u64,
        measured_sent_p: f64,
        measured_delivered_p: f64,
        window_mean_p: f64,
        rtt_mean_s: f64,
    }
);

table!(
    /// Totals of the links: of the measured part, `_total_` of the whole run.
    Links {
        arrived_p: f64,
        dropped_p: f64,
        departed_p: f64,
        busy_s: f64,
        empty_s: f64,
        backlog_mean_p: f64,
        sojourn_mean_s: f64,
        sojourn_max_s: f64,
        sojourn_edges_s: Vec<f64>,
        sojourn_counts: Vec<u64>,
        arrived_total_p: f64,
        dropped_total_p: f64,
        departed_total_p: f64,
        backlog_end_p: f64,
    }
);

record!(
    /// All that a run leaves; of events, drops (one for each flow that a congestion event hits) and recoveries.
    Outcome {
        flow_samples: FlowSamples,
        queue_samples: QueueSamples,
        events: Events,
        epochs: Epochs,
        flows: Flows,
        links: Links,
    }
);
