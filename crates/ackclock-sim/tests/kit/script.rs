//! A sender whose acknowledgements are written by hand.

use std::collections::HashMap;

use ackclock_core::Time;
use ackclock_plan::{DelayedAck, FlowPlan};
use ackclock_sim::options::Blocks;
use ackclock_sim::packet::{acknowledgement, Flags, Kind, Packet, MAX_WINDOW, NO_PACKET};
use ackclock_sim::receiver::Receiver;
use ackclock_sim::sender::Sender;

use super::Output;

use super::sender;
use super::transcript::Transcript;

/// A sender and what it has sent so far.
pub struct Script {
    /// The sender, for a look at its window.
    pub sender: Sender,
    now: Time,
    flow: FlowPlan,
    acknowledged: u64,
    /// Window that the next packets advertise, in segments.
    window: u64,
    /// Last sending of each segment.
    sent: HashMap<u64, Time>,
    transcript: Transcript,
    output: Output,
}

impl Script {
    /// A sender that starts at 0 and has its SYN/ACK at `rtt`.
    ///
    /// # Panics
    /// If the flow's congestion control is not known.
    pub fn open(flow: &FlowPlan, rtt: Time) -> Script {
        let segments = |bytes: u64| (bytes / u64::from(flow.tcp.mss_bytes)).max(1);
        let mut script = Script {
            sender: sender(flow),
            now: Time::ZERO,
            flow: flow.clone(),
            acknowledged: 0,
            window: flow.tcp.receive_window_bytes.map_or(MAX_WINDOW, segments),
            sent: HashMap::new(),
            transcript: Transcript::new(flow.tcp.ecn),
            output: Output::default(),
        };
        script.sender.start(Time::ZERO, &mut script.output);
        script.send();
        script.deliver(rtt, Kind::SynAck, 0, Time::ZERO, None, Flags::NONE);
        script
    }

    /// Let time pass; timers up to and including `until` expire.
    pub fn wait(&mut self, until: Time) -> &mut Script {
        while self.sender.wake() <= until {
            self.now = self.sender.wake();
            self.sender.on_timer(self.now, &mut self.output);
            self.send();
        }
        self.now = until;
        self
    }

    /// An acknowledgement of everything below `next` arrives.
    pub fn ack(&mut self, at: Time, next: u64) -> &mut Script {
        self.sack(at, next, &[])
    }

    /// One whose timestamp says which sending it answers.
    pub fn ack_echoing(&mut self, at: Time, next: u64, echo: Time) -> &mut Script {
        self.acknowledged = self.acknowledged.max(next);
        self.deliver(at, Kind::Ack, next, echo, None, Flags::NONE);
        self
    }

    /// One that echoes marks: 1 for ECE, else their count.
    pub fn ack_marked(&mut self, at: Time, next: u64, marks: u8) -> &mut Script {
        self.acknowledge(at, next, &[], Flags::NONE.with_echo(marks))
    }

    /// One with SACK blocks, the most recent first.
    pub fn sack(&mut self, at: Time, next: u64, blocks: &[(u64, u64)]) -> &mut Script {
        self.acknowledge(at, next, blocks, Flags::NONE)
    }

    /// One that reports a duplicate.
    pub fn dsack(&mut self, at: Time, next: u64) -> &mut Script {
        self.acknowledge(at, next, &[], Flags::NONE.with_dsack(true))
    }

    /// One that reports which segment came twice.
    pub fn dsack_of(&mut self, at: Time, next: u64, sequence: u64) -> &mut Script {
        self.acknowledged = self.acknowledged.max(next);
        let blocks = [(sequence, sequence + 1)].into_iter().collect();
        let flags = Flags::NONE.with_dsack(true);
        self.deliver(at, Kind::Ack, next, Time::ZERO, Some(blocks), flags);
        self
    }

    /// Let the next packets advertise a window of so many segments.
    pub fn advertising(&mut self, window: u64) -> &mut Script {
        self.window = window;
        self
    }

    /// The transcript so far.
    pub fn text(&self) -> String {
        self.transcript.text()
    }

    /// Packets and events of the sender so far.
    pub fn sent(&self) -> String {
        self.transcript.sent()
    }

    /// Clear the transcript, to go on from here.
    pub fn clear(&mut self) -> &mut Script {
        self.transcript = Transcript::new(self.flow.tcp.ecn);
        self
    }

    /// Echoes the timestamp of the first segment that it acknowledges.
    fn acknowledge(
        &mut self,
        at: Time,
        next: u64,
        blocks: &[(u64, u64)],
        flags: Flags,
    ) -> &mut Script {
        let echo = *self.sent.get(&self.acknowledged).unwrap_or(&Time::ZERO);
        self.acknowledged = self.acknowledged.max(next);
        let blocks = (!blocks.is_empty()).then(|| self.blocks(blocks));
        self.deliver(at, Kind::Ack, next, echo, blocks, flags);
        self
    }

    fn deliver(
        &mut self,
        at: Time,
        kind: Kind,
        sequence: u64,
        timestamp: Time,
        blocks: Option<Blocks>,
        flags: Flags,
    ) {
        let before = Time::from_picoseconds(at.picoseconds().saturating_sub(1));
        self.wait(before);
        self.now = at;
        let packet = Packet {
            sequence: acknowledgement(sequence, self.window),
            timestamp,
            flags,
            ..packet(kind)
        };
        let shown = blocks.as_ref().map_or(&[][..], Blocks::as_slice);
        self.transcript.receives(at, &packet, shown);
        self.sender
            .on_packet(&packet, blocks.as_ref(), at, &mut self.output);
        self.send();
    }

    fn send(&mut self) {
        for &(happening, _) in &self.output.events {
            self.transcript.happens(self.now, happening);
        }
        self.output.events.clear();
        for packet in self.output.packets.drain(..) {
            self.transcript.sends(self.now, &packet);
            if packet.kind.is_segment() {
                self.sent.insert(packet.sequence, self.now);
            }
        }
    }

    /// Blocks as a receiver writes them: one to which these segments came, the first block last.
    fn blocks(&self, blocks: &[(u64, u64)]) -> Blocks {
        let mut flow = self.flow.clone();
        flow.tcp.timestamps = false;
        flow.tcp.sack = true;
        flow.tcp.delayed_ack = DelayedAck::Off;
        let mut receiver = Receiver::new(&flow);
        receiver.on_packet(&packet(Kind::Syn), Time::ZERO);
        receiver.on_packet(&packet(Kind::LastAck), Time::ZERO);
        let mut reply = None;
        for &(start, end) in blocks.iter().rev() {
            for sequence in start..end {
                let segment = Packet {
                    sequence,
                    ..packet(Kind::Data)
                };
                reply = receiver.on_packet(&segment, Time::ZERO);
            }
        }
        let written = reply.and_then(|reply| reply.blocks).unwrap_or_default();
        assert_eq!(
            written.as_slice(),
            blocks,
            "a receiver would not write these"
        );
        written
    }
}

/// A packet of a kind, with nothing in it.
pub fn packet(kind: Kind) -> Packet {
    Packet {
        sequence: 0,
        timestamp: Time::ZERO,
        enqueued: Time::ZERO,
        flow: 0,
        wire_bytes: 52,
        kind,
        ..NO_PACKET
    }
}
