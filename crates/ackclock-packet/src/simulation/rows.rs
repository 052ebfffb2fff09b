//! What is left of a flow: its row in the table of flows.

use ackclock_units::Time;

use super::connection::Connection;
use crate::record::Flows;

/// A flow's totals, and those of the measured part.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// When its first packet was sent; never if none was.
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
    };

    /// The row of a connection of which `gone` packets were dropped or lost.
    pub fn of(flow: &Connection, gone: u64) -> Row {
        let (all, before) = (flow.sender.counters(), flow.at_warmup.sent);
        let delivered_bytes = flow.receiver.delivered_bytes();
        Row {
            start: flow.sender.started(),
            established: flow.sender.established().unwrap_or(Time::NEVER),
            end: flow.sender.finished().unwrap_or(Time::NEVER),
            delivered_bytes,
            measured_bytes: delivered_bytes - flow.at_warmup.delivered_bytes,
            sent_packets: all.sent_packets,
            sent_bytes: all.sent_bytes,
            received_packets: flow.receiver.received_packets(),
            dropped_packets: gone,
            measured_sent_packets: all.sent_packets - before.sent_packets,
            retransmissions: all.retransmissions,
            measured_retransmissions: all.retransmissions - before.retransmissions,
            timeouts: all.timeouts as u32,
            measured_timeouts: (all.timeouts - before.timeouts) as u32,
            syn_retransmissions: all.syn_retransmissions as u32,
            recoveries: all.recoveries as u32,
            tail_probes: all.tail_probes as u32,
        }
    }

    /// The flow was over before the measured part began.
    pub fn forget(&mut self) {
        self.measured_bytes = 0;
        self.measured_sent_packets = 0;
        self.measured_retransmissions = 0;
        self.measured_timeouts = 0;
    }

    /// Adds the row to the table.
    pub fn write(&self, rows: &mut Flows) {
        rows.start_s.push(seconds(self.start));
        rows.established_s.push(seconds(self.established));
        rows.end_s.push(seconds(self.end));
        rows.completion_s
            .push(seconds(self.end) - seconds(self.start));
        rows.delivered_bytes.push(self.delivered_bytes);
        rows.measured_bytes.push(self.measured_bytes);
        rows.sent_packets.push(self.sent_packets);
        rows.sent_bytes.push(self.sent_bytes);
        rows.received_packets.push(self.received_packets);
        rows.dropped_packets.push(self.dropped_packets);
        rows.retransmissions.push(self.retransmissions);
        rows.timeouts.push(u64::from(self.timeouts));
        rows.syn_retransmissions
            .push(u64::from(self.syn_retransmissions));
        rows.recoveries.push(u64::from(self.recoveries));
        rows.tail_probes.push(u64::from(self.tail_probes));
        rows.measured_sent_packets.push(self.measured_sent_packets);
        rows.measured_retransmissions
            .push(self.measured_retransmissions);
        rows.measured_timeouts
            .push(u64::from(self.measured_timeouts));
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
