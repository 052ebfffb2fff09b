//! The two ends of a UDP flow.
//!
//! A datagram begins with as much of its number as fits; the answer to one is its number's lowest byte. So the delay of
//! each datagram is known, as long as no more than 255 in a row are lost.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use ackclock_core::{Time, PICOSECONDS_PER_SECOND};
use ackclock_traffic::Departures;
use rustix::net::{recv, send, RecvFlags, SendFlags};

use crate::connection::Counts;

/// Bytes of a number.
const NUMBER_BYTES: usize = 8;

/// A source of datagrams and what receives them.
#[derive(Debug)]
pub struct Stream {
    /// None: it is another machine's.
    pub source: Option<OwnedFd>,
    /// The receiving socket; none if it is on another machine.
    pub sink: Option<OwnedFd>,
    pub departures: Departures,
    pub start: Time,
    pub at_warmup: Counts,
    header_bytes: u32,
    datagram: Vec<u8>,
    has_responses: bool,
    /// When the datagrams left whose delays are not known yet, and the number of the first.
    departed: VecDeque<Time>,
    first: u64,
    /// When the datagrams left that were answered or may be.
    awaiting: VecDeque<Time>,
    first_awaiting: u64,
    received_packets: u64,
    /// Sum of the delays to the sink, ps.
    delays: u128,
}

impl Stream {
    /// A stream that begins now, with the payload and the headers of its datagrams.
    pub fn new(
        (source, sink): (Option<OwnedFd>, Option<OwnedFd>),
        departures: Departures,
        (payload_bytes, header_bytes): (u32, u32),
        has_responses: bool,
        start: Time,
    ) -> Stream {
        Stream {
            source,
            sink,
            departures,
            start,
            at_warmup: Counts::NO_DATAGRAMS,
            header_bytes,
            datagram: vec![0; payload_bytes as usize],
            has_responses,
            departed: VecDeque::new(),
            first: 0,
            awaiting: VecDeque::new(),
            first_awaiting: 0,
            received_packets: 0,
            delays: 0,
        }
    }

    /// Send the datagram that is due at `now`.
    pub fn send(&mut self, now: Time) {
        let Some(source) = &self.source else { return };
        let number = self.departures.count().to_le_bytes();
        let number_bytes = self.datagram.len().min(NUMBER_BYTES);
        self.datagram[..number_bytes].copy_from_slice(&number[..number_bytes]);
        // What the host has no room for is lost like any other datagram.
        let _ = send(source, &self.datagram, SendFlags::NOSIGNAL);
        if self.sink.is_some() {
            self.departed.push_back(now);
        }
        if self.has_responses {
            self.awaiting.push_back(now);
        }
        self.departures.sent(now);
    }

    /// Datagrams have arrived.
    pub fn receive(&mut self, now: Time) {
        let Some(sink) = &self.sink else { return };
        let mut buffer = [0; NUMBER_BYTES];
        while let Ok((length, _)) = recv(sink, &mut buffer, RecvFlags::DONTWAIT) {
            self.received_packets += 1;
            if let Some(departed) = take(&mut self.departed, &mut self.first, &buffer[..length]) {
                self.delays += u128::from(now.since(departed).picoseconds());
            }
            if self.has_responses {
                let _ = send(sink, &buffer[..1], SendFlags::NOSIGNAL);
            }
        }
    }

    /// Answers have arrived.
    pub fn receive_responses(&mut self, now: Time) {
        let Some(source) = &self.source else { return };
        let mut buffer = [0; 1];
        while recv(source, &mut buffer, RecvFlags::DONTWAIT).is_ok() {
            if let Some(departed) = take(&mut self.awaiting, &mut self.first_awaiting, &buffer) {
                self.departures.on_rtt(now.since(departed), now);
            }
        }
    }

    /// Return the counts of sent and received datagrams.
    pub fn counts(&self) -> Counts {
        Counts {
            delivered_bytes: self.received_packets * self.datagram.len() as u64,
            sent_packets: self.departures.count(),
            ..Counts::NO_DATAGRAMS
        }
    }

    /// Bytes of the datagrams sent, headers included.
    pub fn sent_bytes(&self) -> u64 {
        self.departures.count() * (self.datagram.len() as u64 + u64::from(self.header_bytes))
    }

    /// Datagrams that have arrived.
    pub fn received_packets(&self) -> u64 {
        self.received_packets
    }

    /// Mean time from the source to the sink; NaN before the first datagram, and between two machines' clocks.
    pub fn delay_mean_s(&self) -> f64 {
        if self.source.is_none() {
            return f64::NAN;
        }
        self.delays as f64 / self.received_packets as f64 / PICOSECONDS_PER_SECOND as f64
    }

    /// The last round-trip time; NaN where it is not measured.
    pub fn rtt_s(&self) -> f64 {
        self.departures.rtt().map_or(f64::NAN, Time::seconds)
    }
}

/// Remove and return the departure time of the datagram that begins with these bytes; those before it are lost.
fn take(departed: &mut VecDeque<Time>, first: &mut u64, bytes: &[u8]) -> Option<Time> {
    let number_bytes = bytes.len().min(NUMBER_BYTES);
    let mut number = [0; NUMBER_BYTES];
    number[..number_bytes].copy_from_slice(&bytes[..number_bytes]);
    let mask = u64::MAX
        .checked_shr(64 - 8 * number_bytes as u32)
        .unwrap_or(0);
    let lost = u64::from_le_bytes(number).wrapping_sub(*first) & mask;
    if lost >= departed.len() as u64 {
        return None;
    }
    departed.drain(..lost as usize);
    *first += lost + 1;
    departed.pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(count: u64) -> VecDeque<Time> {
        (0..count).map(Time::from_milliseconds).collect()
    }

    #[test]
    fn a_datagram_is_identified_by_its_truncated_number() {
        let (mut departed, mut first) = (sent(700), 0);
        assert_eq!(
            take(&mut departed, &mut first, &[200]),
            Some(Time::from_milliseconds(200))
        );
        assert_eq!(
            take(&mut departed, &mut first, &[199]),
            Some(Time::from_milliseconds(455))
        );
        assert_eq!(
            take(&mut departed, &mut first, &600_u64.to_le_bytes()),
            Some(Time::from_milliseconds(600))
        );
        assert_eq!((first, departed.len()), (601, 99));
    }

    #[test]
    fn a_number_that_was_not_sent_is_none() {
        let (mut departed, mut first) = (sent(3), 0);
        assert_eq!(take(&mut departed, &mut first, &[3]), None);
        assert_eq!(
            take(&mut departed, &mut first, &[]),
            Some(Time::ZERO),
            "without a number: the next"
        );
    }
}
