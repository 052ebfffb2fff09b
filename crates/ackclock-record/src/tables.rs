//! The tables of the dataset, as engines that count whole packets and bytes fill them.
//!
//! Rows wait here until they are taken, so memory stays bounded however long a run is.

use crate::kinds::Happening;
use crate::{record, table};

table!(
    /// Samples of the flows.
    FlowSamples {
        time_s: f64,
        flow: u32,
        cwnd: f64,
        ssthresh: f64,
        srtt_s: f64,
        in_flight: u32,
        delivered_bytes: u64,
    }
);

table!(
    /// What CUBIC and its relatives look at inside, at the times of the samples.
    CubicSamples {
        time_s: f64,
        flow: u32,
        cwnd: f64,
        target: f64,
        w_cubic: f64,
        w_max: f64,
        origin: f64,
        k_s: f64,
        w_est: f64,
        count: f64,
        delay_min_s: f64,
    }
);

table!(
    /// How long a flow's data packets took from end to end, of those that arrived in an interval.
    Delays {
        time_s: f64,
        flow: u32,
        packets: u32,
        delay_min_s: f64,
        delay_mean_s: f64,
        delay_max_s: f64,
    }
);

table!(
    /// The links of routed flows' paths, in the order in which data pass them.
    Paths {
        flow: u32,
        hop: u32,
        link: u32,
    }
);

table!(
    /// Samples of the links.
    QueueSamples {
        time_s: f64,
        link: u32,
        backlog_p: u32,
        backlog_bytes: u64,
        sojourn_s: f64,
        departures_p: u64,
        drops_p: u64,
        marks_p: u64,
        utilisation: f64,
    }
);

table!(
    /// Events; `kind` is a [`Happening`].
    Events {
        time_s: f64,
        flow: u32,
        link: u32,
        kind: u8,
        value: f64,
    }
);

impl Events {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time_s: f64, flow: u32, link: u32, happening: Happening, value: f64) {
        self.time_s.push(time_s);
        self.flow.push(flow);
        self.link.push(link);
        self.kind.push(happening as u8);
        self.value.push(value);
    }
}

table!(
    /// The packet log; `kind` is the engine's, `what` an [`crate::Action`].
    Packets {
        time_s: f64,
        flow: u32,
        link: u32,
        kind: u8,
        sequence: u64,
        wire_bytes: u32,
        what: u8,
    }
);

table!(
    /// What happened to each packet that was captured; `kind` is the engine's, `end` an [`crate::End`], `cause` a
    /// [`crate::Cause`], `fate` a [`crate::Fate`], `limit` a [`crate::Limit`].
    Transmissions {
        time_s: f64,
        flow: u32,
        end: u8,
        kind: u8,
        identification: u32,
        sequence: u64,
        segment: u64,
        payload_bytes: u32,
        cause: u8,
        fate: u8,
        link: u32,
        arrival_s: f64,
        cwnd: f64,
        in_flight: u32,
        limit: u8,
    }
);

table!(
    /// One row a flow, and one for each generated transfer that began. What TCP alone has is absent from UDP's rows.
    Flows {
        flow: u32,
        group: u32,
        source_node: u32,
        destination_node: u32,
        base_rtt_s: f64,
        path_rate_bps: f64,
        size_bytes: u64,
        start_s: f64,
        established_s: f64,
        end_s: f64,
        fct_s: f64,
        delivered_bytes: u64,
        measured_bytes: u64,
        sent_packets: u64,
        sent_bytes: u64,
        received_packets: u64,
        dropped_packets: u64,
        retransmissions: u64,
        timeouts: u64,
        syn_retransmissions: u64,
        recoveries: u64,
        tail_probes: u64,
        measured_sent_packets: u64,
        measured_retransmissions: u64,
        measured_timeouts: u64,
        delay_mean_s: f64,
        measured_delay_mean_s: f64,
        measured_delay_p95_s: f64,
    }
);

table!(
    /// One row a link; counts are of the measured part unless they say `total`.
    Links {
        link: u32,
        name: String,
        bottleneck: bool,
        rate_bps: f64,
        arrived_p: u64,
        dropped_p: u64,
        lost_p: u64,
        marked_p: u64,
        departed_p: u64,
        departed_bytes: u64,
        busy_s: f64,
        empty_s: f64,
        backlog_mean_p: f64,
        backlog_mean_bytes: f64,
        sojourn_mean_s: f64,
        sojourn_max_s: f64,
        sojourn_edges_s: Vec<f64>,
        sojourn_counts: Vec<u64>,
        arrived_total_p: u64,
        dropped_total_p: u64,
        lost_total_p: u64,
        departed_total_p: u64,
        corrupted_total_p: u64,
        duplicated_total_p: u64,
        reordered_total_p: u64,
    }
);

record!(
    /// Rows since the last were taken.
    Tables {
        flow_samples: FlowSamples,
        cubic_samples: CubicSamples,
        delays: Delays,
        paths: Paths,
        queue_samples: QueueSamples,
        events: Events,
        packets: Packets,
        transmissions: Transmissions,
    }
);

record!(
    /// The rows that are complete only at the end.
    Totals {
        flows: Flows,
        links: Links,
    }
);
