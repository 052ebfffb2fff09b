//! A flow over UDP: its two endpoints, and the counts of their packets.

use std::collections::BTreeMap;

use ackclock_congestion::Variables;
use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::{DatagramPlan, SourcePlan, StackPlan};
use ackclock_quic::{Stack, Transport};

use crate::datagram::{Sink, Source};
use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::external::FlowEnd;
use crate::gateway::Gateway;
use crate::media::{MediaReceiver, MediaSender};
use crate::network::{Network, NetworkOutlet};
use crate::packet::{Kind, Packet};
use crate::path::Hop;
use crate::quic;
use crate::sender::{Outlet, SendReason};
use crate::PlanError;

/// A flow over UDP.
pub struct Stream {
    pub flow: u32,
    sender: Box<dyn Endpoint>,
    receiver: Box<dyn Endpoint>,
    /// First hop of the sender's packets.
    entrance: Hop,
    /// Time by which the receiver's clock runs ahead of the simulation's.
    lead: Time,
    pub started: Time,
    /// When a circuit breaker stopped the sender.
    pub ceased: Option<Time>,
    /// Counts at the end of the warm-up.
    pub at_warmup: Snapshot,
    pub sent: Sent,
    /// Packets of the receiver that were sent and that arrived.
    replies: (u64, u64),
    /// Datagrams that have arrived.
    pub received_packets: u64,
    /// Sum of their delays, ps.
    delays: u128,
}

/// Datagrams of the sender, and their bytes with headers.
#[derive(Clone, Copy, Default)]
pub struct Sent {
    pub packets: u64,
    pub bytes: u64,
}

/// Counts of a flow.
#[derive(Clone, Copy, Default)]
pub struct Snapshot {
    /// Payload received.
    pub delivered_bytes: u64,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Packets declared lost, by a transport that shows them.
    pub lost_packets: Option<u64>,
    /// Declarations of persistent congestion, by a transport that shows them.
    pub persistent_congestions: Option<u32>,
}

impl Stream {
    /// A flow that starts at `now`, with the first hop of its packets and the lead of its receiver's clock; `number` is
    /// its number among the flows over UDP.
    ///
    /// # Errors
    /// An unknown congestion control algorithm or stack, or parameters that are not those of a spec.
    pub fn new(
        (flow, number): (u32, u64),
        plan: &DatagramPlan,
        (entrance, lead): (Hop, Time),
        now: Time,
        seed: u64,
        stacks: &Stacks,
    ) -> Result<Stream, PlanError> {
        let (sender, receiver) = endpoints(plan, now, seed, number, stacks)?;
        Ok(Stream {
            flow,
            sender,
            receiver,
            entrance,
            lead,
            started: now,
            ceased: None,
            at_warmup: Snapshot::default(),
            sent: Sent::default(),
            replies: (0, 0),
            received_packets: 0,
            delays: 0,
        })
    }

    /// Packets that the two ends have sent, and those that have arrived.
    pub fn packets(&self) -> (u64, u64) {
        let (replies, arrived) = self.replies;
        (self.sent.packets + replies, self.received_packets + arrived)
    }

    /// The counts so far.
    pub fn snapshot(&self) -> Snapshot {
        let transport = self.transport().unwrap_or_default();
        Snapshot {
            delivered_bytes: self.receiver.delivered_bytes(),
            sent_packets: self.sent.packets,
            lost_packets: transport.lost_packets,
            persistent_congestions: transport.persistent_congestions,
        }
    }

    /// State of the sender's transport, if it has a congestion window.
    pub fn transport(&self) -> Option<Transport> {
        self.sender.transport()
    }

    /// Payload bytes that have arrived, those of duplicates once.
    pub fn delivered_bytes(&self) -> u64 {
        self.receiver.delivered_bytes()
    }

    /// The last round-trip time, where the sender measures it.
    pub fn rtt(&self) -> Option<Time> {
        self.sender.rtt()
    }

    /// The variables of the sender's congestion control, if it has one that shows them.
    pub fn control_variables(&self) -> Option<Variables> {
        self.sender.control_variables()
    }

    /// Mean time from the sender to the receiver; none before the first datagram.
    pub fn delay_mean(&self) -> Option<Time> {
        let mean = self.delays.checked_div(u128::from(self.received_packets))?;
        Some(Time::from_picoseconds(mean as u64))
    }

    /// Time of the sender's next packet or timer.
    pub fn sender_due(&self) -> Time {
        self.sender.wake()
    }

    /// Send the datagram that is due, if one is.
    pub fn send(&mut self, now: Time, network: &mut Network) {
        let Some(mut outgoing) = self.sender.poll(now) else {
            if let (None, Some((cause, at))) = (self.ceased, self.sender.ceased()) {
                self.ceased = Some(at);
                let hop = self.entrance;
                let mut outlet = NetworkOutlet { network, hop };
                outlet.report(self.flow, EventKind::CircuitBreaker, cause);
            }
            return;
        };
        self.sent.packets += 1;
        self.sent.bytes += u64::from(outgoing.wire_bytes);
        let mut packet = outgoing.packet(self.flow, Kind::Datagram, now);
        packet.attachment = network.attach(outgoing.payload.take());
        let reason = || SendReason::of_control(packet.kind, false);
        let hop = self.entrance;
        NetworkOutlet { network, hop }.send(packet, reason);
    }

    fn reply(&mut self, mut outgoing: Outgoing, local: Time, network: &mut Network) {
        self.replies.0 += 1;
        let mut packet = outgoing.packet(self.flow, Kind::Echo, local);
        packet.attachment = network.attach(outgoing.payload.take());
        network.send_from_receiver(packet, local);
    }

    /// Deliver a packet to the sender.
    pub fn reach_sender(&mut self, packet: &Packet, payload: Option<Payload>, now: Time) {
        self.replies.1 += 1;
        self.sender.on_packet(packet, payload, now);
    }

    /// Deliver a packet to the receiver at its local time, after its timers that were due before.
    pub fn reach_receiver(&mut self, packet: &Packet, local: Time, network: &mut Network) {
        let payload = network.take_forward_payload(packet);
        while self.receiver.wake() < local {
            let due = self.receiver.wake();
            if let Some(outgoing) = self.receiver.poll(due) {
                self.reply(outgoing, due, network);
            }
        }
        self.received_packets += 1;
        self.delays += u128::from(local.since(packet.timestamp).picoseconds());
        self.receiver.on_packet(packet, payload, local);
        while let Some(outgoing) = self.receiver.poll(local) {
            self.reply(outgoing, local, network);
        }
    }

    /// One of the ends.
    pub fn end(&mut self, end: FlowEnd) -> &mut dyn Endpoint {
        match end {
            FlowEnd::Sender => &mut *self.sender,
            FlowEnd::Receiver => &mut *self.receiver,
        }
    }

    /// Take what the sender's transport has logged since the last call.
    pub fn take_log(&mut self) -> Vec<u8> {
        self.sender.take_log()
    }

    /// Append the rows of both ends up to the time `until`.
    pub fn write_rows(&mut self, until: Time, network: &mut Network) {
        for end in [&mut self.sender, &mut self.receiver] {
            end.write_rows(self.flow, until, &mut network.tables);
        }
    }

    /// Handle the receiver's timer. An entry may be earlier than its deadline.
    pub fn on_receiver_timer(&mut self, now: Time, network: &mut Network) {
        let due = self.receiver.wake();
        let local = (now + self.lead).min(due);
        if due <= local {
            if let Some(outgoing) = self.receiver.poll(local) {
                self.reply(outgoing, local, network);
            }
        }
    }

    /// Time of the receiver's timer by the simulation's clock.
    pub fn receiver_due(&self) -> Time {
        let wake = self.receiver.wake();
        if wake.is_never() {
            wake
        } else {
            wake.since(self.lead)
        }
    }
}

/// The sender and the receiver of a flow.
type Ends = (Box<dyn Endpoint>, Box<dyn Endpoint>);

/// Users' stacks by their names.
pub type Stacks = BTreeMap<String, Stack>;

/// The two ends of a flow that starts at `now`; `number` is the flow's among those over UDP.
fn endpoints(
    plan: &DatagramPlan,
    now: Time,
    seed: u64,
    number: u64,
    stacks: &Stacks,
) -> Result<Ends, PlanError> {
    Ok(match &plan.source {
        SourcePlan::Scheduled(source) => (
            Box::new(Source::new(plan, source, now, seed, number)),
            Box::new(Sink::new(plan, source)),
        ),
        SourcePlan::Media(media) => (
            Box::new(MediaSender::new(plan, media, now, seed, number)?),
            Box::new(MediaReceiver::new(media)),
        ),
        SourcePlan::Quic(connection) => quic::endpoints(plan, connection, now, seed, number)?,
        SourcePlan::Stack(config) => {
            let stack = stack(config, stacks)?;
            quic::external_endpoints(plan, (stack, config), now, seed, number)
        }
        SourcePlan::External => (
            Box::new(Gateway::new(FlowEnd::Sender)),
            Box::new(Gateway::new(FlowEnd::Receiver)),
        ),
    })
}

fn stack<'a>(config: &StackPlan, stacks: &'a Stacks) -> Result<&'a Stack, PlanError> {
    let name = &config.stack;
    stacks
        .get(name)
        .ok_or_else(|| PlanError::UnknownStack(name.clone()))
}

/// Check that the endpoints of a plan can be made; no call is made to a user's stack.
pub fn check(plan: &DatagramPlan, stacks: &Stacks) -> Result<(), PlanError> {
    if let SourcePlan::Stack(config) = &plan.source {
        return stack(config, stacks).map(|_| ());
    }
    endpoints(plan, Time::ZERO, 0, 0, stacks).map(|_| ())
}
