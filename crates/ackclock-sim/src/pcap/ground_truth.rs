//! Ground truth of captured packets: the rows of the table `transmissions`.
//!
//! Rows are in the order in which packets are sent; each is written once its fate and that of all before are known.

use std::collections::BTreeMap;

use ackclock_core::tables::{End, PacketFate, Transmissions, NONE};
use ackclock_core::Time;

use crate::packet::{Kind, Packet};
use crate::sender::SendReason;

/// Header fields of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Identification in the IP header.
    pub identification: u16,
    /// Sequence number; `None` of a datagram.
    pub sequence: Option<u32>,
    pub payload_bytes: u32,
}

/// Key of a row: when its packet was sent, and how many before it.
pub type RowKey = (Time, u64);

/// A packet and its fate.
#[derive(Clone, Copy, Debug)]
struct Row {
    flow: u32,
    kind: Kind,
    segment: Option<u64>,
    header: Header,
    reason: SendReason,
    /// Time at which it reached its destination or was lost; [`Time::NEVER`] while unknown.
    end: Time,
    fate: PacketFate,
    link: u32,
}

/// Rows that have not been taken.
#[derive(Debug, Default)]
pub struct GroundTruth {
    /// Rows that are not complete, or follow one that is not.
    rows: BTreeMap<RowKey, Row>,
    sent: u64,
    resolved: Transmissions,
}

impl GroundTruth {
    /// Add a packet that is sent at `time`, which may be ahead.
    pub fn send(
        &mut self,
        packet: &Packet,
        header: Header,
        reason: SendReason,
        time: Time,
    ) -> RowKey {
        let name = (time, self.sent);
        self.sent += 1;
        let row = Row {
            flow: packet.flow,
            kind: packet.kind,
            segment: (!packet.kind.opens()).then_some(packet.number()),
            header,
            reason,
            end: Time::NEVER,
            fate: PacketFate::InTransit,
            link: NONE,
        };
        self.rows.insert(name, row);
        name
    }

    /// Set the fate of a packet at `time`, which may be ahead; `link` is where it was lost.
    pub fn end(&mut self, name: RowKey, fate: PacketFate, link: u32, time: Time) {
        if let Some(row) = self.rows.get_mut(&name) {
            (row.fate, row.link, row.end) = (fate, link, time);
        }
    }

    /// Write the rows that are complete by `now`.
    pub fn write_resolved(&mut self, now: Time) {
        while let Some(first) = self.rows.first_entry() {
            if first.get().end > now {
                return;
            }
            let ((time, _), row) = first.remove_entry();
            row.write(time, &mut self.resolved);
        }
    }

    /// Take the rows that are complete by `now`, since the last call.
    pub fn take(&mut self, now: Time) -> Transmissions {
        self.write_resolved(now);
        std::mem::take(&mut self.resolved)
    }

    /// Write all rows of packets sent by `now`, the end of the run.
    pub fn finish(&mut self, now: Time) {
        for ((time, _), mut row) in std::mem::take(&mut self.rows) {
            if time > now {
                return;
            }
            if row.end > now {
                (row.fate, row.link) = (PacketFate::InTransit, NONE);
            }
            row.write(time, &mut self.resolved);
        }
    }
}

impl Row {
    fn write(&self, time: Time, table: &mut Transmissions) {
        let (header, reason) = (&self.header, &self.reason);
        let end = if self.kind.is_forward() {
            End::Sender
        } else {
            End::Receiver
        };
        let arrives = matches!(self.fate, PacketFate::Delivered | PacketFate::Duplicate);
        let arrival_s = if arrives {
            self.end.seconds()
        } else {
            f64::NAN
        };
        table.time_s.push(time.seconds());
        table.flow.push(self.flow);
        table.end.push(end as u8);
        table.kind.push(self.kind as u8);
        table.identification.push(header.identification.into());
        let sequence = header.sequence.map_or(u64::MAX, u64::from);
        table.sequence.push(sequence);
        table.segment.push(self.segment.unwrap_or(u64::MAX));
        table.payload_bytes.push(header.payload_bytes);
        table.cause.push(reason.cause as u8);
        table.fate.push(self.fate as u8);
        table.link.push(self.link);
        table.arrival_s.push(arrival_s);
        table.cwnd.push(reason.cwnd);
        table.in_flight.push(reason.in_flight);
        table.limit.push(reason.limit as u8);
    }
}
