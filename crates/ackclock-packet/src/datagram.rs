//! UDP: a source of datagrams and what receives them.
//!
//! Nothing is repeated and nothing is held back. A source that follows the delay (`adaptive`) has each of its
//! datagrams answered.
//!
//! Times are computed from the start, not added up, so a constant rate does not drift.

use ackclock_traffic::{stream, Duration, Purpose};
use ackclock_units::Time;
use rand_pcg::Pcg64Mcg;

use crate::packet::{Ecn, Flags, Kind, Packet, NO_SACK};
use crate::plan::{DatagramPlan, DatagramSource};
use crate::receiver::Reply;

mod adaptive;

use adaptive::Control;

/// Bytes that an echo carries besides its headers.
const ECHO_BYTES: u32 = 1;

/// What sends datagrams.
#[derive(Debug)]
pub struct Source {
    flow: u32,
    wire_bytes: u32,
    law: Law,
    stop: Time,
    next: Time,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
}

/// When datagrams leave.
#[derive(Debug)]
enum Law {
    Constant {
        start: Time,
        per_s: f64,
    },
    Bursts {
        start: Time,
        per_s: f64,
        packets: u64,
        every: Time,
    },
    OnOff(Box<Periods>),
    Adaptive(Box<Control>),
}

/// The periods of a source that is on and off.
#[derive(Debug)]
struct Periods {
    per_s: f64,
    on: Duration,
    off: Duration,
    random_on: Pcg64Mcg,
    random_off: Pcg64Mcg,
    start: Time,
    end: Time,
    /// Datagrams sent in this period.
    sent: u64,
}

impl Source {
    /// The source of flow number `flow`, which starts at `now`; `number` is the source's among those of the plan
    /// and tells its random numbers from theirs.
    pub fn new(flow: u32, plan: &DatagramPlan, now: Time, seed: u64, number: u64) -> Source {
        let law = Law::new(&plan.source, now, seed, number);
        Source {
            flow,
            wire_bytes: plan.payload_bytes + plan.header_bytes,
            next: law.first(now),
            law,
            stop: plan.stop.unwrap_or(Time::NEVER),
            sent_packets: 0,
            sent_bytes: 0,
            received_packets: 0,
        }
    }

    /// When the next datagram is due; [`Time::NEVER`] if there is none.
    pub fn wake(&self) -> Time {
        if self.next < self.stop {
            self.next
        } else {
            Time::NEVER
        }
    }

    /// The datagram that is due at `now`.
    pub fn send(&mut self, now: Time) -> Packet {
        let sequence = self.sent_packets;
        self.sent_packets += 1;
        self.sent_bytes += u64::from(self.wire_bytes);
        self.next = self.law.after(self.sent_packets, now);
        Packet {
            sequence,
            timestamp: now,
            enqueued: now,
            flow: self.flow,
            wire_bytes: self.wire_bytes,
            sack: NO_SACK,
            kind: Kind::Datagram,
            ecn: Ecn::NotCapable,
            hop: 0,
            flags: Flags::NONE,
        }
    }

    /// An echo has arrived.
    pub fn on_echo(&mut self, packet: &Packet, now: Time) {
        self.received_packets += 1;
        if let Law::Adaptive(control) = &mut self.law {
            if control.on_rtt(now.since(packet.timestamp), now) {
                self.next = control.departure().max(now);
            }
        }
    }

    /// The last round-trip time, where it is measured.
    pub fn rtt(&self) -> Option<Time> {
        match &self.law {
            Law::Adaptive(control) => control.rtt(),
            _ => None,
        }
    }

    /// Datagrams sent.
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    /// Bytes of them, headers included.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Echoes that have arrived.
    pub fn received_packets(&self) -> u64 {
        self.received_packets
    }
}

impl Law {
    fn new(source: &DatagramSource, start: Time, seed: u64, number: u64) -> Law {
        match *source {
            DatagramSource::Constant { per_s } => Law::Constant { start, per_s },
            DatagramSource::Bursts {
                per_s,
                packets,
                every,
            } => Law::Bursts {
                start,
                per_s,
                packets,
                every,
            },
            DatagramSource::OnOff { per_s, on, off } => Law::OnOff(Box::new(Periods::new(
                (per_s, on, off),
                start,
                stream(seed, number, Purpose::OnPeriods),
                stream(seed, number, Purpose::OffPeriods),
            ))),
            DatagramSource::Adaptive {
                target,
                least_per_s,
                most_per_s,
            } => Law::Adaptive(Box::new(Control::new(target, least_per_s, most_per_s))),
        }
    }

    /// When the first datagram leaves.
    fn first(&self, now: Time) -> Time {
        match self {
            Law::OnOff(periods) => periods.start,
            _ => now,
        }
    }

    /// When the next datagram leaves, after `sent` of them, the last at `now`.
    fn after(&mut self, sent: u64, now: Time) -> Time {
        match self {
            Law::Constant { start, per_s } => *start + span(sent, *per_s),
            Law::Bursts {
                start,
                per_s,
                packets,
                every,
            } => {
                let bursts = u128::from(every.picoseconds()) * u128::from(sent / *packets);
                let before = u64::try_from(bursts).unwrap_or(u64::MAX);
                *start + Time::from_picoseconds(before) + span(sent % *packets, *per_s)
            }
            Law::OnOff(periods) => periods.next(),
            Law::Adaptive(control) => control.after(now),
        }
    }
}

impl Periods {
    fn new(
        (per_s, on, off): (f64, Duration, Duration),
        start: Time,
        random_on: Pcg64Mcg,
        random_off: Pcg64Mcg,
    ) -> Periods {
        let mut periods = Periods {
            per_s,
            on,
            off,
            random_on,
            random_off,
            start,
            end: start,
            sent: 0,
        };
        periods.end = start + periods.on.draw(&mut periods.random_on);
        if periods.end == start {
            periods.turn();
        }
        periods
    }

    /// When the next datagram leaves, one having been sent.
    fn next(&mut self) -> Time {
        self.sent += 1;
        let due = self.start + span(self.sent, self.per_s);
        if due < self.end {
            return due;
        }
        self.turn();
        self.start
    }

    /// Goes to the next period that takes time.
    fn turn(&mut self) {
        self.sent = 0;
        while !self.end.is_never() {
            self.start = self.end + self.off.draw(&mut self.random_off);
            self.end = self.start + self.on.draw(&mut self.random_on);
            if self.end > self.start {
                return;
            }
        }
        self.start = Time::NEVER;
    }
}

/// The time that `packets` take at a rate.
fn span(packets: u64, per_s: f64) -> Time {
    Time::from_seconds(packets as f64 / per_s)
}

/// What receives datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    payload_bytes: u32,
    /// Bytes of an echo; none where there are no echoes.
    echo_bytes: Option<u32>,
    received_packets: u64,
    sent_packets: u64,
    /// Sum of the delays from the source, ps.
    delays: u128,
}

impl Sink {
    /// What receives the datagrams of this plan.
    pub fn new(plan: &DatagramPlan) -> Sink {
        let echoes = matches!(plan.source, DatagramSource::Adaptive { .. });
        Sink {
            payload_bytes: plan.payload_bytes,
            echo_bytes: echoes.then_some(plan.header_bytes + ECHO_BYTES),
            received_packets: 0,
            sent_packets: 0,
            delays: 0,
        }
    }

    /// A datagram has arrived; returns its echo.
    pub fn on_packet(&mut self, packet: &Packet, now: Time) -> Option<Reply> {
        self.received_packets += 1;
        self.delays += u128::from(now.since(packet.timestamp).picoseconds());
        let wire_bytes = self.echo_bytes?;
        self.sent_packets += 1;
        Some(Reply {
            kind: Kind::Echo,
            ack: packet.sequence,
            echo: packet.timestamp,
            wire_bytes,
            blocks: None,
            duplicate: false,
            marks: 0,
            ecn: Ecn::NotCapable,
        })
    }

    /// Datagrams that have arrived.
    pub fn received_packets(&self) -> u64 {
        self.received_packets
    }

    /// Payload of them.
    pub fn delivered_bytes(&self) -> u64 {
        self.received_packets * u64::from(self.payload_bytes)
    }

    /// Echoes sent.
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    /// Mean time from the source to here; none before the first datagram.
    pub fn delay_mean(&self) -> Option<Time> {
        let mean = self.delays.checked_div(u128::from(self.received_packets))?;
        Some(Time::from_picoseconds(mean as u64))
    }
}

#[cfg(test)]
mod tests;
