//! Row of a flow in the table of flows.

use ackclock_core::tables::{Flows, NONE};
use ackclock_core::Time;
use ackclock_plan::EndsPlan;

use super::connection::Connection;
use super::stream::Stream;

/// A flow's totals, and those of the measured part.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Time of its first packet; never if none was sent.
    start: Time,
    established: Time,
    end: Time,
    delivered_bytes: u64,
    measured_bytes: u64,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    dropped_packets: u64,
    measured_sent_packets: u64,
    retransmissions: u64,
    measured_retransmissions: u64,
    timeouts: u32,
    measured_timeouts: u32,
    syn_retransmissions: u32,
    recoveries: u32,
    tail_probes: u32,
    /// Mean delay of the packets from end to end, where it is measured.
    delay_mean: Time,
    /// Mean and 95th percentile of the delays in the measured part, if they are recorded.
    pub measured_delays: (Time, Time),
}

/// Absent count.
const ABSENT: u32 = u32::MAX;

/// Description of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub flow: u32,
    pub group: u32,
    pub ends: Option<EndsPlan>,
    /// Sum of the propagation delays both ways; NaN if it is not known.
    pub base_rtt_s: f64,
    /// The rate of the slowest link that the data pass; NaN if it is not known.
    pub path_rate_bps: f64,
    pub size_bytes: Option<u64>,
}

impl Description {
    /// Append it to the table.
    pub fn write(&self, rows: &mut Flows) {
        rows.flow.push(self.flow);
        rows.group.push(self.group);
        let (source, destination) = self
            .ends
            .map_or((NONE, NONE), |ends| (ends.source, ends.destination));
        rows.source_node.push(source);
        rows.destination_node.push(destination);
        rows.base_rtt_s.push(self.base_rtt_s);
        rows.path_rate_bps.push(self.path_rate_bps);
        rows.size_bytes.push(self.size_bytes.unwrap_or(u64::MAX));
    }
}

impl Row {
    /// The row of a flow that has not begun.
    pub const WAITING: Row = Row {
        start: Time::NEVER,
        established: Time::NEVER,
        end: Time::NEVER,
        delivered_bytes: 0,
        measured_bytes: 0,
        sent_packets: 0,
        sent_bytes: 0,
        received_packets: 0,
        dropped_packets: 0,
        measured_sent_packets: 0,
        retransmissions: 0,
        measured_retransmissions: 0,
        timeouts: 0,
        measured_timeouts: 0,
        syn_retransmissions: 0,
        recoveries: 0,
        tail_probes: 0,
        delay_mean: Time::NEVER,
        measured_delays: (Time::NEVER, Time::NEVER),
    };

    /// The row of a UDP flow that has not begun.
    pub const WAITING_STREAM: Row = Row {
        retransmissions: u64::MAX,
        measured_retransmissions: u64::MAX,
        timeouts: ABSENT,
        measured_timeouts: ABSENT,
        syn_retransmissions: ABSENT,
        recoveries: ABSENT,
        tail_probes: ABSENT,
        ..Row::WAITING
    };

    /// Row of a UDP flow with `gone` packets of its sender dropped or lost.
    pub fn of_stream(stream: &Stream, gone: u64) -> Row {
        let (all, before) = (stream.snapshot(), stream.at_warmup);
        let row = Row {
            start: stream.started,
            end: stream.ceased.unwrap_or(Time::NEVER),
            delivered_bytes: all.delivered_bytes,
            measured_bytes: all.delivered_bytes - before.delivered_bytes,
            sent_packets: all.sent_packets,
            sent_bytes: stream.sent.bytes,
            received_packets: stream.received_packets,
            dropped_packets: gone,
            measured_sent_packets: all.sent_packets - before.sent_packets,
            delay_mean: stream.delay_mean().unwrap_or(Time::NEVER),
            ..Row::WAITING_STREAM
        };
        let Some(transport) = stream.transport() else {
            return row;
        };
        Row {
            established: transport.established.unwrap_or(Time::NEVER),
            end: transport.finished.unwrap_or(Time::NEVER),
            retransmissions: all.lost_packets.unwrap_or(u64::MAX),
            measured_retransmissions: all
                .lost_packets
                .map_or(u64::MAX, |lost| lost - before.lost_packets.unwrap_or(0)),
            timeouts: all.persistent_congestions.unwrap_or(ABSENT),
            measured_timeouts: all.persistent_congestions.map_or(ABSENT, |timeouts| {
                timeouts - before.persistent_congestions.unwrap_or(0)
            }),
            recoveries: transport.recoveries.unwrap_or(ABSENT),
            ..row
        }
    }

    /// Row at `now` of a connection with `gone` packets dropped or lost. A receiver's clock may be
    /// ahead; its events after `now` do not count.
    pub fn of(flow: &Connection, gone: u64, now: Time) -> Row {
        let reached = |time: Option<Time>| time.filter(|&time| time <= now);
        let (skipped_before, skipped) = (
            flow.skipped_before,
            flow.skipped_before + flow.sender.skipped.time,
        );
        let client = flow.receiver.client();
        let (all, before) = (flow.sender.counters, flow.at_warmup.sent);
        let delivered_bytes = flow.receiver.delivered_bytes();
        let established = reached(flow.established()).unwrap_or(Time::NEVER);
        let end = reached(flow.finished()).unwrap_or(Time::NEVER);
        Row {
            start: later(flow.sender.started, skipped_before),
            established: later(established, skipped_before),
            end: later(end, skipped),
            delivered_bytes,
            measured_bytes: delivered_bytes - flow.at_warmup.delivered_bytes,
            sent_packets: all.sent_packets,
            sent_bytes: all.sent_bytes,
            received_packets: flow.receiver.received_packets,
            dropped_packets: gone,
            measured_sent_packets: all.sent_packets - before.sent_packets,
            retransmissions: all.retransmissions,
            measured_retransmissions: all.retransmissions - before.retransmissions,
            timeouts: all.timeouts as u32,
            measured_timeouts: (all.timeouts - before.timeouts) as u32,
            syn_retransmissions: client
                .map_or(all.syn_retransmissions, |client| client.syn_retransmissions)
                as u32,
            recoveries: all.recoveries as u32,
            tail_probes: all.tail_probes as u32,
            ..Row::WAITING
        }
    }

    /// Clear the counts of a flow that ended before the measured part.
    pub fn forget(&mut self) {
        self.measured_bytes = 0;
        self.measured_sent_packets = 0;
        self.measured_retransmissions = 0;
        self.measured_timeouts = 0;
    }

    /// Append the row to the table.
    pub fn write(&self, rows: &mut Flows) {
        rows.start_s.push(seconds(self.start));
        rows.established_s.push(seconds(self.established));
        rows.end_s.push(seconds(self.end));
        rows.fct_s.push(seconds(self.end) - seconds(self.start));
        rows.delivered_bytes.push(self.delivered_bytes);
        rows.measured_bytes.push(self.measured_bytes);
        rows.sent_packets.push(self.sent_packets);
        rows.sent_bytes.push(self.sent_bytes);
        rows.received_packets.push(self.received_packets);
        rows.dropped_packets.push(self.dropped_packets);
        rows.retransmissions.push(self.retransmissions);
        rows.timeouts.push(count(self.timeouts));
        rows.syn_retransmissions
            .push(count(self.syn_retransmissions));
        rows.recoveries.push(count(self.recoveries));
        rows.tail_probes.push(count(self.tail_probes));
        rows.measured_sent_packets.push(self.measured_sent_packets);
        rows.measured_retransmissions
            .push(self.measured_retransmissions);
        rows.measured_timeouts.push(count(self.measured_timeouts));
        rows.delay_mean_s.push(seconds(self.delay_mean));
        let (mean, p95) = self.measured_delays;
        rows.measured_delay_mean_s.push(seconds(mean));
        rows.measured_delay_p95_s.push(seconds(p95));
    }
}

/// A time by the plan's clock, of which the engine's is `skipped` short.
fn later(time: Time, skipped: Time) -> Time {
    if time.is_never() {
        time
    } else {
        time + skipped
    }
}

/// Convert a count for the table.
fn count(value: u32) -> u64 {
    if value == ABSENT {
        u64::MAX
    } else {
        u64::from(value)
    }
}

/// Convert a time to seconds; NaN for never.
fn seconds(time: Time) -> f64 {
    if time.is_never() {
        f64::NAN
    } else {
        time.seconds()
    }
}
