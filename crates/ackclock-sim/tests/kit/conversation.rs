//! A sender and a receiver on a wire with a delay and without a queue.

use std::collections::{HashSet, VecDeque};

use ackclock_core::Time;
use ackclock_plan::FlowPlan;
use ackclock_sim::options::Blocks;
use ackclock_sim::packet::{acknowledgement, Ecn, Kind, Packet, NO_PACKET};
use ackclock_sim::receiver::{Receiver, Reply};
use ackclock_sim::sender::Sender;

use super::Output;

use super::sender;
use super::transcript::Transcript;

/// A packet for the wire to lose or to mark.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    kind: Kind,
    /// Only packets with this number, if given.
    sequence: Option<u64>,
    /// Segments that pass before the first one is lost.
    spared: u32,
    /// Number of lost ones.
    times: u32,
}

impl Loss {
    /// Number of consecutive losses.
    pub fn times(self, times: u32) -> Loss {
        Loss { times, ..self }
    }

    fn takes(&mut self, packet: &Packet) -> bool {
        let number = self.sequence.is_none_or(|number| number == packet.sequence);
        if self.times == 0 || packet.kind != self.kind || !number {
            return false;
        }
        if self.spared > 0 {
            self.spared -= 1;
            return false;
        }
        self.times -= 1;
        true
    }
}

/// The `n`-th packet of a kind, counted from 1.
pub fn nth(kind: Kind, n: u32) -> Loss {
    Loss {
        kind,
        sequence: None,
        spared: n - 1,
        times: 1,
    }
}

/// The first sending of data segment `sequence`.
pub fn data(sequence: u64) -> Loss {
    Loss {
        sequence: Some(sequence),
        ..nth(Kind::Data, 1)
    }
}

/// More packets than any conversation has on its way.
const MANY: usize = 10_000;

type Wire = VecDeque<(Time, Packet, Option<Blocks>)>;

/// The two ends, the packets on their way, and what was said so far.
pub struct Conversation {
    /// The sender, for a look at its window.
    pub sender: Sender,
    /// The receiver.
    pub receiver: Receiver,
    /// The time reached.
    pub now: Time,
    one_way: Time,
    /// Least time between two departures towards the receiver: a bottleneck's.
    spacing: Time,
    last_departure: Time,
    losses: Vec<Loss>,
    marks: Vec<Loss>,
    /// A segment that finds more than this many waiting is marked.
    threshold: Option<u32>,
    /// Queue length that each segment met, with the time.
    waiting: Vec<(Time, u32)>,
    /// Numbers of further packets to lose, of all that both ends send.
    lost_numbers: HashSet<u64>,
    sent_packets: u64,
    /// One past the highest segment sent, and the highest cumulative acknowledgement seen.
    sent_end: u64,
    acknowledged: u64,
    /// First segment beyond the window that the sender was told last.
    window_end: u64,
    /// Segments sent, repetitions included.
    sent_segments: u64,
    forward: Wire,
    reverse: Wire,
    transcript: Transcript,
    output: Output,
}

impl Conversation {
    /// A conversation over a wire that takes `one_way` each way. It starts with the first `run`.
    ///
    /// # Panics
    /// If the flow's congestion control is not known.
    pub fn new(flow: &FlowPlan, one_way: Time) -> Conversation {
        Conversation {
            sender: sender(flow),
            receiver: Receiver::new(flow),
            now: Time::ZERO,
            one_way,
            spacing: Time::ZERO,
            last_departure: Time::ZERO,
            losses: Vec::new(),
            marks: Vec::new(),
            threshold: None,
            waiting: Vec::new(),
            lost_numbers: HashSet::new(),
            sent_packets: 0,
            sent_end: 0,
            acknowledged: 0,
            window_end: 0,
            sent_segments: 0,
            forward: Wire::new(),
            reverse: Wire::new(),
            transcript: Transcript::new(flow.tcp.ecn),
            output: Output::default(),
        }
    }

    /// Give the sender's controller this seed for what it chooses at random.
    pub fn seeded(mut self, seed: u64) -> Conversation {
        self.sender = self.sender.with_seed(seed);
        self
    }

    /// Lose these packets.
    pub fn losing(mut self, losses: impl IntoIterator<Item = Loss>) -> Conversation {
        self.losses.extend(losses);
        self
    }

    /// Mark these packets, if they are ECN-capable.
    pub fn marking(mut self, marks: impl IntoIterator<Item = Loss>) -> Conversation {
        self.marks.extend(marks);
        self
    }

    /// Mark a segment that finds more than `threshold` others waiting for their departure.
    pub fn marking_above(mut self, threshold: u32) -> Conversation {
        self.threshold = Some(threshold);
        self
    }

    /// Queue length that each segment met, with the time.
    pub fn waiting(&self) -> &[(Time, u32)] {
        &self.waiting
    }

    /// Lose the packets of these numbers, counting from 0 all that either end sends.
    pub fn losing_numbers(mut self, numbers: impl IntoIterator<Item = u64>) -> Conversation {
        self.lost_numbers.extend(numbers);
        self
    }

    /// Let data leave no closer to each other than `spacing`.
    pub fn spaced(mut self, spacing: Time) -> Conversation {
        self.spacing = spacing;
        self
    }

    /// Advance up to and including `until`.
    ///
    /// # Panics
    /// If more is said than a person would read: nothing limits a window here.
    pub fn run(&mut self, until: Time) -> &mut Conversation {
        if self.sender.started.is_never() {
            self.start();
        }
        while self.next() <= until {
            self.step();
            assert!(self.forward.len() < MANY, "the window grows without end");
        }
        self.now = until;
        self
    }

    /// The sender opens the connection, or the receiver if it has a request.
    fn start(&mut self) {
        if self.receiver.client().is_some() {
            self.sender.listen(self.now);
            let syn = self.receiver.open(self.now);
            self.send_reply(syn);
        } else {
            self.sender.start(self.now, &mut self.output);
            self.send();
        }
    }

    /// The transcript so far.
    pub fn text(&self) -> String {
        self.transcript.text()
    }

    /// Packets and events of the sender so far.
    pub fn sent(&self) -> String {
        self.transcript.sent()
    }

    /// Segments sent at least once and not cumulatively acknowledged, FIN included.
    pub fn outstanding(&self) -> u64 {
        self.sent_end - self.acknowledged
    }

    /// First segment beyond the window of the packets that have reached the sender.
    pub fn window_end(&self) -> u64 {
        self.window_end
    }

    /// One past the highest segment sent.
    pub fn sent_end(&self) -> u64 {
        self.sent_end
    }

    /// Segments sent so far, FIN and repetitions included.
    pub fn sent_segments(&self) -> u64 {
        self.sent_segments
    }

    /// Time of the next event.
    pub fn next(&self) -> Time {
        let front = |wire: &Wire| wire.front().map_or(Time::NEVER, |&(time, _, _)| time);
        let wires = front(&self.forward).min(front(&self.reverse));
        wires.min(self.sender.wake()).min(self.receiver.wake())
    }

    /// Handle the next event: arrivals before timers, as the simulation does.
    pub fn step(&mut self) {
        let now = self.next();
        assert!(now >= self.now, "time runs back to {now:?}");
        self.now = now;
        let due = |wire: &Wire| wire.front().is_some_and(|&(time, _, _)| time == now);
        if due(&self.forward) {
            self.reach_receiver();
        } else if due(&self.reverse) {
            self.reach_sender();
        } else if self.sender.wake() == now {
            self.sender.on_timer(now, &mut self.output);
            self.send();
        } else {
            let reply = self.receiver.on_timer(now);
            self.send_reply(reply);
        }
    }

    fn reach_receiver(&mut self) {
        if let Some((_, packet, _)) = self.forward.pop_front() {
            let reply = self.receiver.on_packet(&packet, self.now);
            let earlier = self.receiver.take_earlier();
            self.send_reply(earlier);
            self.send_reply(reply);
        }
    }

    fn reach_sender(&mut self) {
        if let Some((_, packet, blocks)) = self.reverse.pop_front() {
            let shown = blocks.as_ref().map_or(&[][..], Blocks::as_slice);
            self.transcript.receives(self.now, &packet, shown);
            self.acknowledged = self.acknowledged.max(packet.number());
            let end = packet.number() + packet.window();
            self.window_end = self.window_end.max(end);
            self.sender
                .on_packet(&packet, blocks.as_ref(), self.now, &mut self.output);
            self.send();
        }
    }

    fn send(&mut self) {
        for &(happening, _) in &self.output.events {
            self.transcript.happens(self.now, happening);
        }
        self.output.events.clear();
        for mut packet in std::mem::take(&mut self.output.packets) {
            self.transcript.sends(self.now, &packet);
            if packet.kind.is_segment() {
                self.sent_end = self.sent_end.max(packet.sequence + 1);
                self.sent_segments += 1;
            }
            let departure = self.departure(&packet);
            self.mark(&mut packet, departure);
            if !self.is_lost(&packet) {
                let arrival = departure + self.one_way;
                self.forward.push_back((arrival, packet, None));
            }
        }
    }

    /// Data keep their distance from the data before; nothing overtakes.
    fn departure(&mut self, packet: &Packet) -> Time {
        if packet.kind == Kind::Data {
            self.last_departure = self.now.max(self.last_departure + self.spacing);
            self.last_departure
        } else {
            self.now.max(self.last_departure)
        }
    }

    /// Mark a packet that is named, or that has to wait for too many.
    fn mark(&mut self, packet: &mut Packet, departure: Time) {
        let mut marked = self.marks.iter_mut().any(|mark| mark.takes(packet));
        if packet.kind == Kind::Data && self.spacing > Time::ZERO {
            let ahead = departure.since(self.now).as_f64() / self.spacing.as_f64();
            let waiting = ahead.round() as u32;
            self.waiting.push((self.now, waiting));
            marked |= self.threshold.is_some_and(|threshold| waiting > threshold);
        }
        if marked && packet.ecn() != Ecn::NotEct {
            packet.flags = packet.flags.with_ecn(Ecn::Ce);
        }
    }

    fn send_reply(&mut self, reply: Option<Reply>) {
        let Some(reply) = reply else { return };
        let acks: Vec<Reply> = self.receiver.misbehave(&reply).collect();
        for ack in acks {
            let packet = reply_packet(&ack, self.now);
            if !self.is_lost(&packet) {
                self.reverse
                    .push_back((self.now + self.one_way, packet, ack.blocks));
            }
        }
    }

    fn is_lost(&mut self, packet: &Packet) -> bool {
        let number = self.sent_packets;
        self.sent_packets += 1;
        let named = self.losses.iter_mut().any(|loss| loss.takes(packet));
        named || self.lost_numbers.contains(&number)
    }
}

/// The packet that carries a reply.
pub fn reply_packet(reply: &Reply, now: Time) -> Packet {
    Packet {
        sequence: acknowledgement(reply.ack, reply.window),
        timestamp: reply.echo,
        enqueued: now,
        flow: 0,
        wire_bytes: 52,
        kind: reply.kind,
        flags: reply.flags,
        ..NO_PACKET
    }
}
