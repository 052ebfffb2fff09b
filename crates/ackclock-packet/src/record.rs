//! What a run writes down, as columns.
//!
//! Absent values are NaN in float columns and the type's largest value in integer ones. Rows wait here until
//! [`crate::Simulation::drain`] takes them, so memory stays bounded however long the run is.

use ackclock_units::Time;

use crate::packet::Packet;

/// Stands for "no flow" or "no link".
pub const NONE: u32 = u32::MAX;

/// Something worth an event. Its name is in [`EVENT_KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Happening {
    /// A queue dropped a packet.
    Drop,
    /// A packet was lost at random, by a link that fails, or for want of a way.
    Loss,
    /// A queue marked a packet.
    Mark,
    /// Fast recovery begins.
    Recovery,
    /// The retransmission timer expired.
    Timeout,
    /// A segment is sent again.
    Retransmission,
    /// A SYN is sent again.
    SynRetransmission,
    /// A tail loss probe is sent.
    TailProbe,
    /// The connection is open.
    Established,
    /// The last data byte is acknowledged.
    Finished,
    /// A sender comes down for ECN marks.
    MarkReaction,
    /// A link's rate or delay changes, it fails or works again; the value is its rate from now on, 0 if it is down.
    LinkChange,
}

/// Names of the [`Happening`]s in the dataset, by number.
pub const EVENT_KINDS: &[&str] = &[
    "drop",
    "loss",
    "mark",
    "recovery",
    "timeout",
    "retransmission",
    "syn_retransmission",
    "tail_probe",
    "established",
    "finished",
    "mark_reaction",
    "link_change",
];

/// What happened to a packet in the packet log. Its name is in [`PACKET_ACTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// Offered to a queue; a `Drop` of it, or of another packet, may follow.
    Enqueue,
    /// Left the link.
    Dequeue,
    /// Dropped by the queue.
    Drop,
    /// Lost at random, by a link that fails, or for want of a way.
    Loss,
    /// Reached the far end.
    Arrive,
}

/// Names of the [`Action`]s, by number.
pub const PACKET_ACTIONS: &[&str] = &["enqueue", "dequeue", "drop", "loss", "arrive"];

/// Names of the [`crate::packet::Kind`]s, by number.
pub const PACKET_KINDS: &[&str] = &[
    "syn",
    "syn_ack",
    "data",
    "fin",
    "ack",
    "fin_ack",
    "last_ack",
    "client_syn",
    "server_syn_ack",
    "request",
    "datagram",
    "echo",
];

/// Samples of the flows.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct FlowSamples {
    pub time_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub cwnd: Vec<f64>,
    pub ssthresh: Vec<f64>,
    pub srtt_s: Vec<f64>,
    pub in_flight: Vec<u32>,
    pub delivered_bytes: Vec<u64>,
}

/// Samples of the links.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct QueueSamples {
    pub time_s: Vec<f64>,
    pub link: Vec<u32>,
    pub backlog_p: Vec<u32>,
    pub backlog_bytes: Vec<u64>,
    pub sojourn_s: Vec<f64>,
    pub departures_p: Vec<u64>,
    pub drops_p: Vec<u64>,
    pub marks_p: Vec<u64>,
    pub utilisation: Vec<f64>,
}

/// Events.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Events {
    pub time_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub link: Vec<u32>,
    pub kind: Vec<u8>,
    pub value: Vec<f64>,
}

impl Events {
    /// Adds an event.
    pub fn push(&mut self, now: Time, flow: u32, link: u32, happening: Happening, value: f64) {
        self.time_s.push(now.seconds());
        self.flow.push(flow);
        self.link.push(link);
        self.kind.push(happening as u8);
        self.value.push(value);
    }
}

/// The packet log.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Packets {
    pub time_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub link: Vec<u32>,
    pub kind: Vec<u8>,
    pub sequence: Vec<u64>,
    pub wire_bytes: Vec<u32>,
    pub what: Vec<u8>,
}

impl Packets {
    /// Adds a line to the log.
    pub fn push(&mut self, now: Time, link: u32, packet: &Packet, action: Action) {
        self.time_s.push(now.seconds());
        self.flow.push(packet.flow);
        self.link.push(link);
        self.kind.push(packet.kind as u8);
        self.sequence.push(packet.sequence);
        self.wire_bytes.push(packet.wire_bytes);
        self.what.push(action as u8);
    }
}

/// Rows since the last drain.
#[derive(Debug, Default)]
pub struct Tables {
    /// Samples of the flows.
    pub flow_samples: FlowSamples,
    /// Samples of the links.
    pub queue_samples: QueueSamples,
    /// Events.
    pub events: Events,
    /// The packet log, if asked for.
    pub packets: Packets,
}

/// One row a flow, and one for each generated transfer that began. What TCP alone has is absent from UDP's rows.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Flows {
    pub flow: Vec<u32>,
    pub group: Vec<u32>,
    pub source_node: Vec<u32>,
    pub destination_node: Vec<u32>,
    pub base_rtt_s: Vec<f64>,
    pub size_bytes: Vec<u64>,
    pub start_s: Vec<f64>,
    pub established_s: Vec<f64>,
    pub end_s: Vec<f64>,
    pub completion_s: Vec<f64>,
    pub delivered_bytes: Vec<u64>,
    pub measured_bytes: Vec<u64>,
    pub sent_packets: Vec<u64>,
    pub sent_bytes: Vec<u64>,
    pub received_packets: Vec<u64>,
    pub dropped_packets: Vec<u64>,
    pub retransmissions: Vec<u64>,
    pub timeouts: Vec<u64>,
    pub syn_retransmissions: Vec<u64>,
    pub recoveries: Vec<u64>,
    pub tail_probes: Vec<u64>,
    pub measured_sent_packets: Vec<u64>,
    pub measured_retransmissions: Vec<u64>,
    pub measured_timeouts: Vec<u64>,
    pub delay_mean_s: Vec<f64>,
}

/// One row a link; counts are of the measured part unless they say `total`.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Links {
    pub link: Vec<u32>,
    pub name: Vec<String>,
    pub bottleneck: Vec<bool>,
    pub rate_bps: Vec<f64>,
    pub arrived_p: Vec<u64>,
    pub dropped_p: Vec<u64>,
    pub lost_p: Vec<u64>,
    pub marked_p: Vec<u64>,
    pub departed_p: Vec<u64>,
    pub departed_bytes: Vec<u64>,
    pub busy_s: Vec<f64>,
    pub empty_s: Vec<f64>,
    pub backlog_mean_p: Vec<f64>,
    pub backlog_mean_bytes: Vec<f64>,
    pub sojourn_mean_s: Vec<f64>,
    pub sojourn_max_s: Vec<f64>,
    pub sojourn_edges_s: Vec<Vec<f64>>,
    pub sojourn_counts: Vec<Vec<u64>>,
    pub arrived_total_p: Vec<u64>,
    pub dropped_total_p: Vec<u64>,
    pub lost_total_p: Vec<u64>,
    pub departed_total_p: Vec<u64>,
}

/// The rows that are complete only at the end.
#[derive(Debug, Default)]
pub struct Totals {
    /// One row a flow.
    pub flows: Flows,
    /// One row a link.
    pub links: Links,
}
