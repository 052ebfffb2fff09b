//! The row of a connection in the table of flows.

use ackclock_core::tables::{Flows, UNKNOWN};
use ackclock_core::Time;

use crate::connection::{Connection, Counts};
use crate::info::Info;
use crate::plans::About;
use crate::stream::Stream;
use crate::tables::Limits;

/// A flow's totals, and those before the measurement interval.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    start: Time,
    established: Time,
    finished: Time,
    counts: Counts,
    before: Counts,
    sent_bytes: u64,
    received_packets: u64,
    delay_mean_s: f64,
    /// The last sample of a TCP sender.
    info: Option<Info>,
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
            sent_bytes: 0,
            received_packets: 0,
            delay_mean_s: f64::NAN,
            info: None,
        }
    }

    /// The row of a UDP flow; without a stream, of one that has not begun.
    pub fn of_stream(stream: Option<&Stream>) -> Row {
        Row {
            start: stream.map_or(Time::NEVER, |stream| stream.start),
            counts: stream.map_or(Counts::NO_DATAGRAMS, Stream::counts),
            before: stream.map_or(Counts::NO_DATAGRAMS, |stream| stream.at_warmup),
            sent_bytes: stream.map_or(0, Stream::sent_bytes),
            received_packets: stream.map_or(0, Stream::received_packets),
            delay_mean_s: stream.map_or(f64::NAN, Stream::delay_mean_s),
            ..Row::waiting()
        }
    }

    /// Return the row of a connection by its last sample.
    pub fn of(connection: &Connection) -> Row {
        Row {
            start: connection.start,
            established: connection.established,
            finished: connection.finished,
            counts: connection.counts,
            before: connection.at_warmup,
            sent_bytes: connection.sent_bytes(),
            received_packets: connection.received_packets,
            delay_mean_s: f64::NAN,
            info: Some(connection.info),
        }
    }

    /// The flow was over before the measurement interval began.
    pub fn forget(&mut self) {
        self.before = self.counts;
    }

    /// Add the row to the table; `dropped` of its packets were dropped.
    pub fn write(&self, flow: u32, about: &About, dropped: Option<u64>, rows: &mut Flows) {
        let (all, before) = (&self.counts, &self.before);
        rows.flow.push(flow);
        rows.group.push(about.group);
        rows.source_node.push(about.nodes[0]);
        rows.destination_node.push(about.nodes[1]);
        rows.base_rtt_s.push(about.base_rtt_s);
        rows.path_rate_bps.push(f64::NAN);
        rows.size_bytes.push(about.size_bytes.unwrap_or(UNKNOWN));
        rows.start_s.push(seconds(self.start));
        rows.established_s.push(seconds(self.established));
        rows.end_s.push(seconds(self.finished));
        rows.fct_s
            .push(seconds(self.finished) - seconds(self.start));
        rows.delivered_bytes.push(all.delivered_bytes);
        rows.measured_bytes
            .push(since(all.delivered_bytes, before.delivered_bytes));
        rows.sent_packets.push(all.sent_packets);
        rows.sent_bytes.push(self.sent_bytes);
        rows.received_packets.push(self.received_packets);
        rows.dropped_packets.push(dropped.unwrap_or(UNKNOWN));
        rows.retransmissions.push(all.retransmissions);
        rows.timeouts.push(all.timeouts);
        rows.syn_retransmissions.push(all.syn_retransmissions);
        rows.recoveries.push(all.recoveries);
        rows.tail_probes.push(UNKNOWN);
        rows.measured_sent_packets
            .push(since(all.sent_packets, before.sent_packets));
        rows.measured_retransmissions
            .push(since(all.retransmissions, before.retransmissions));
        rows.measured_timeouts
            .push(since(all.timeouts, before.timeouts));
        rows.delay_mean_s.push(self.delay_mean_s);
        rows.measured_delay_mean_s.push(f64::NAN);
        rows.measured_delay_p95_s.push(f64::NAN);
    }

    /// Add the kernel's account of what limited the sender.
    pub fn write_limits(&self, flow: u32, rows: &mut Limits) {
        let Some(info) = &self.info else { return };
        let seconds = |microseconds: u64| microseconds as f64 / 1e6;
        rows.flow.push(flow);
        rows.busy_s.push(seconds(info.busy_us));
        rows.window_limited_s.push(seconds(info.window_limited_us));
        rows.buffer_limited_s.push(seconds(info.buffer_limited_us));
        rows.least_rtt_s.push(info.min_rtt_s());
        rows.reordering_p.push(info.reordering);
        rows.delivered_marked_p.push(info.delivered_marked);
    }
}

/// Return the difference of two counts; unknown stays unknown.
pub fn since(all: u64, before: u64) -> u64 {
    if all == UNKNOWN {
        UNKNOWN
    } else {
        all.saturating_sub(before)
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
