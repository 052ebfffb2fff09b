//! What is left of a connection: its row in the table of flows.

use ackclock_units::Time;

use crate::connection::{Connection, Counts};
use crate::info::Info;
use crate::order::Tcp;
use crate::plans::Description;
use crate::tables::{Flows, Limits, UNKNOWN};

/// Bytes of the timestamps option, with its padding (RFC 7323).
const TIMESTAMPS_BYTES: u32 = 12;

/// A connection's totals, and those before the measured part.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    start: Time,
    established: Time,
    finished: Time,
    counts: Counts,
    before: Counts,
    info: Info,
}

impl Row {
    /// The row of a flow that has not begun.
    pub fn waiting() -> Row {
        Row {
            start: Time::NEVER,
            established: Time::NEVER,
            finished: Time::NEVER,
            counts: Counts::default(),
            before: Counts::default(),
            info: Info::default(),
        }
    }

    /// The row of a connection as it was last looked at.
    pub fn of(connection: &Connection) -> Row {
        Row {
            start: connection.start,
            established: connection.established,
            finished: connection.finished,
            counts: connection.counts,
            before: connection.at_warmup,
            info: connection.info,
        }
    }

    /// The flow was over before the measured part began.
    pub fn forget(&mut self) {
        self.before = self.counts;
    }

    /// Adds the row to the table; `dropped` of its packets were dropped.
    pub fn write(
        &self,
        flow: u32,
        plan: &Description,
        tcp: &Tcp,
        dropped: Option<u64>,
        rows: &mut Flows,
    ) {
        let (all, before) = (&self.counts, &self.before);
        let header_bytes = tcp.header_bytes + if tcp.timestamps { TIMESTAMPS_BYTES } else { 0 };
        rows.flow.push(flow);
        rows.group.push(plan.group);
        rows.source_node.push(plan.nodes[0]);
        rows.destination_node.push(plan.nodes[1]);
        rows.base_rtt_s.push(plan.base_rtt_s);
        rows.size_bytes
            .push(plan.task.size_bytes.unwrap_or(UNKNOWN));
        rows.start_s.push(seconds(self.start));
        rows.established_s.push(seconds(self.established));
        rows.end_s.push(seconds(self.finished));
        rows.completion_s
            .push(seconds(self.finished) - seconds(self.start));
        rows.delivered_bytes.push(all.delivered_bytes);
        rows.measured_bytes
            .push(all.delivered_bytes - before.delivered_bytes);
        rows.sent_packets.push(all.sent_packets);
        rows.sent_bytes
            .push(self.info.bytes_sent + all.sent_packets * u64::from(header_bytes));
        rows.received_packets.push(u64::from(self.info.segments_in));
        rows.dropped_packets.push(dropped.unwrap_or(UNKNOWN));
        rows.retransmissions.push(all.retransmissions);
        rows.timeouts.push(all.timeouts);
        rows.syn_retransmissions.push(all.syn_retransmissions);
        rows.recoveries.push(all.recoveries);
        rows.tail_probes.push(UNKNOWN);
        rows.measured_sent_packets
            .push(all.sent_packets - before.sent_packets);
        rows.measured_retransmissions
            .push(all.retransmissions - before.retransmissions);
        rows.measured_timeouts.push(all.timeouts - before.timeouts);
        rows.delay_mean_s.push(f64::NAN);
    }

    /// Adds what the kernel says held the sender back.
    pub fn write_limits(&self, flow: u32, rows: &mut Limits) {
        let seconds = |microseconds: u64| microseconds as f64 / 1e6;
        rows.flow.push(flow);
        rows.busy_s.push(seconds(self.info.busy_us));
        rows.window_limited_s
            .push(seconds(self.info.window_limited_us));
        rows.buffer_limited_s
            .push(seconds(self.info.buffer_limited_us));
        rows.reordering_p.push(self.info.reordering);
        rows.delivered_marked_p.push(self.info.delivered_marked);
    }
}

/// A time in seconds; NaN for never.
fn seconds(time: Time) -> f64 {
    if time.is_never() {
        f64::NAN
    } else {
        time.seconds()
    }
}
