//! Tables of the dataset as engines fill them, and the macros that declare tables.
//!
//! A table is a struct with a vector for each column ([`table!`]); a record is a struct of tables ([`record!`]), which
//! becomes named columns when it is handed over. A column of codes holds the discriminants of an enum with a name for
//! each ([`codes!`]). The tables below are those of engines that count whole packets and bytes; an engine that counts
//! fractions of packets declares its own with the same macros.
//!
//! Absent values are NaN in float columns and the type's largest value in integer ones. A column that an engine does
//! not fill at all is not handed over. Rows stay here only until they are taken, so memory is bounded however long a
//! run is.

mod codes;
mod column;

pub use crate::{codes, record, table};
pub use codes::{End, EventKind, PacketAction, PacketFate, SendCause, SendLimit};
pub use column::{non_empty_or_all, put, Cell, Column, Columns, NamedTables};

/// Absent flow, link or node.
pub const NONE: u32 = u32::MAX;

/// Absent count.
pub const UNKNOWN: u64 = u64::MAX;

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
    /// State of CUBIC and its variants at the times of the flow samples.
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
    /// One-way delays of the data packets that arrived in an interval, for each flow.
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
    /// Frames of real-time media that were displayed: complete, and not older than one displayed before.
    Frames {
        time_s: f64,
        flow: u32,
        frame: u64,
        bytes: u32,
        delay_s: f64,
    }
);

table!(
    /// Links of routed flows' paths, in the order in which data pass them.
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
    /// Events; `kind` is a [`EventKind`].
    Events {
        time_s: f64,
        flow: u32,
        link: u32,
        kind: u8,
        value: f64,
    }
);

impl Events {
    /// Add an event.
    #[inline]
    pub fn push(&mut self, time_s: f64, flow: u32, link: u32, kind: EventKind, value: f64) {
        self.time_s.push(time_s);
        self.flow.push(flow);
        self.link.push(link);
        self.kind.push(kind as u8);
        self.value.push(value);
    }
}

table!(
    /// The packet log; `kind` is the engine's, `what` a [`PacketAction`].
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
    /// Ground truth of each captured packet; `kind` is the engine's, `end` an [`End`], `cause` a
    /// [`SendCause`], `fate` a [`PacketFate`], `limit` a [`SendLimit`].
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
    /// One row per flow and per generated transfer that began. TCP's own columns are absent in rows of UDP flows.
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
    /// One row per link. Counts cover the measured part of the run, those named `total` all of it.
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
    /// Rows that were added since the last ones were taken.
    Tables {
        flow_samples: FlowSamples,
        cubic_samples: CubicSamples,
        delays: Delays,
        frames: Frames,
        paths: Paths,
        queue_samples: QueueSamples,
        events: Events,
        packets: Packets,
        transmissions: Transmissions,
    }
);

record!(
    /// Rows that are complete only at the end of the run.
    Totals {
        flows: Flows,
        links: Links,
    }
);
