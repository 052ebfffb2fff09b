//! Queue disciplines: which packet goes next, and which is dropped or marked.
//!
//! Adding one: a file in `queue/`, an algorithm spec in the catalog, and its name in `disciplines!`.

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;
use serde::de::Error as _;
use serde_json::Value;

use crate::packet::{Ecn, Packet};

mod bands;
mod fifo;
mod fq;
pub(crate) mod hash;
mod headers;
mod periodic;

pub use headers::{FlowHeader, FlowHeaders};

/// Declare the modules of the disciplines and the list [`DISCIPLINES`].
macro_rules! disciplines {
    ($($name:ident,)*) => {
        $(mod $name;)*

        /// Queue disciplines: name as in `tc`, and factory.
        pub const DISCIPLINES: &[(&str, QueueFactory)] = &[$((stringify!($name), $name::make)),*];
    };
}

disciplines! {
    ared,
    bfifo,
    blue,
    cake,
    codel,
    dualpi2,
    fq_codel,
    fq_pie,
    pfifo,
    pie,
    prio,
    red,
    redfavor,
    sfq,
    spa,
    synfinprio,
    synprio,
    tbf,
}

/// Packets and bytes in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Wire bytes.
    pub bytes: u64,
}

/// Packets that a discipline drops or marks during one call; the link empties it afterwards.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Drops {
    /// True if either is not empty: the only byte that is read for each packet.
    any: bool,
    packets: Vec<Packet>,
    marked: Vec<Packet>,
}

impl Drops {
    /// Report a dropped packet.
    pub fn push(&mut self, packet: Packet) {
        self.packets.push(packet);
        self.any = true;
    }

    /// Report a dropped packet, if there is one.
    pub fn extend(&mut self, packet: Option<Packet>) {
        if let Some(packet) = packet {
            self.push(packet);
        }
    }

    /// Mark a packet (RFC 3168 section 5). Returns whether its transport supports ECN; if not, the packet
    /// is unchanged.
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        if packet.ecn() == Ecn::NotEct {
            return false;
        }
        packet.flags = packet.flags.with_ecn(Ecn::Ce);
        self.marked.push(packet.for_record());
        self.any = true;
        true
    }

    /// True if nothing was dropped or marked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Take the dropped packets, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.any = !self.marked.is_empty();
        self.packets.drain(..)
    }

    /// Take copies of the marked packets, oldest first.
    pub fn drain_marked(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.any = !self.packets.is_empty();
        self.marked.drain(..)
    }
}

/// A queue discipline. Drops at enqueue and at dequeue are both visible.
pub trait Discipline: Send {
    /// Queue a packet, or push it or another one to `drops`.
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops);
    /// Take the packet to send next.
    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet>;
    /// Packets and bytes that are queued now.
    fn backlog(&self) -> Backlog;
    /// Time at which [`Discipline::dequeue`] may return a packet, if packets wait but it has just returned none and
    /// none arrives before. A discipline that never holds packets back has no such time.
    fn ready(&self, now: Time) -> Time {
        let _ = now;
        Time::NEVER
    }
    /// Take the largest number of packets that have been queued at a time since the last call, or what is queued now
    /// where that is not counted.
    fn take_peak(&mut self) -> u32 {
        self.backlog().packets
    }
    /// True if packets leave in the order of their arrival, each as soon as it may, and it makes no difference to later
    /// packets that one has never been here. A link then computes departures lazily, and a packet that finds it idle
    /// bypasses the queue.
    fn is_fifo(&self) -> bool {
        false
    }
}

/// Disciplines that distinguish hosts, which costs memory for each generated transfer between nodes.
pub const HOST_AWARE: &[&str] = &["cake"];

/// Context in which a discipline is made, besides its parameters.
#[derive(Clone, Copy, Debug)]
pub struct QueueContext<'a> {
    /// Rate of the link behind it, bit/s.
    pub rate_bps: f64,
    /// Seed of the discipline's stream of random numbers.
    pub seed: u64,
    /// Wire bytes of the frame around an IP packet.
    pub frame_bytes: u32,
    /// Headers of the flows' packets.
    pub headers: &'a FlowHeaders,
}

impl QueueContext<'_> {
    /// The discipline's stream of random numbers.
    pub fn random(&self) -> Pcg64Mcg {
        Pcg64Mcg::new(u128::from(self.seed) << 1 | 1)
    }
}

/// A discipline as a link holds it.
///
/// The plain FIFO is called directly, so that a packet goes from the sender's registers into the
/// ring without a stop in memory; every other discipline is called through the trait.
pub enum Queue {
    /// `pfifo`.
    Pfifo(pfifo::Pfifo),
    /// Any other.
    Other(Box<dyn Discipline>),
}

impl Queue {
    /// A discipline that is called through the trait.
    pub fn other(discipline: impl Discipline + 'static) -> Queue {
        Queue::Other(Box::new(discipline))
    }

    /// Queue a packet as [`Discipline::enqueue`] does. The packet's entering time becomes `now`.
    #[inline(always)]
    pub fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        // A copy in each arm: one that is passed by reference in any of them would not stay in registers.
        match self {
            Queue::Pfifo(queue) => queue.enqueue(packet.entering(now), now, drops),
            Queue::Other(queue) => queue.enqueue(packet.entering(now), now, drops),
        }
    }

    /// See [`Discipline::dequeue`].
    pub fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        self.take(now, 0, drops)
    }

    /// Take the packet to send next as [`Discipline::dequeue`] does, without the `frame` around it.
    #[inline(always)]
    pub fn take(&mut self, now: Time, frame: u32, drops: &mut Drops) -> Option<Packet> {
        // A copy in each arm, as in `enqueue`.
        let unframed = |packet: Packet| Packet {
            wire_bytes: packet.wire_bytes - frame,
            ..packet
        };
        match self {
            Queue::Pfifo(queue) => queue.dequeue(now, drops).map(unframed),
            Queue::Other(queue) => queue.dequeue(now, drops).map(unframed),
        }
    }

    /// The discipline, for calls that not every packet costs.
    fn discipline(&self) -> &dyn Discipline {
        match self {
            Queue::Pfifo(queue) => queue,
            Queue::Other(queue) => queue.as_ref(),
        }
    }

    /// See [`Discipline::take_peak`].
    pub fn take_peak(&mut self) -> u32 {
        match self {
            Queue::Pfifo(queue) => queue.take_peak(),
            Queue::Other(queue) => queue.take_peak(),
        }
    }

    /// See [`Discipline::is_fifo`].
    pub fn is_fifo(&self) -> bool {
        self.discipline().is_fifo()
    }

    /// See [`Discipline::ready`].
    #[cold]
    pub fn ready(&self, now: Time) -> Time {
        self.discipline().ready(now)
    }

    /// See [`Discipline::backlog`].
    pub fn backlog(&self) -> Backlog {
        self.discipline().backlog()
    }
}

/// Make a discipline from complete parameters.
pub type QueueFactory = fn(&Value, &QueueContext) -> Result<Queue, serde_json::Error>;

/// Make a discipline by name.
///
/// # Errors
/// An unknown name, or parameters that differ from those of its specification.
pub fn make(
    discipline: &str,
    parameters: &Value,
    context: &QueueContext,
) -> Result<Queue, crate::PlanError> {
    let (_, maker) = DISCIPLINES
        .iter()
        .find(|(name, _)| *name == discipline)
        .ok_or_else(|| crate::PlanError::UnknownDiscipline(discipline.to_owned()))?;
    maker(parameters, context).map_err(|source| crate::PlanError::Parameters {
        algorithm: discipline.to_owned(),
        source,
    })
}

/// Reject parameters that violate a condition.
fn require(holds: bool, otherwise: &str) -> Result<(), serde_json::Error> {
    if holds {
        Ok(())
    } else {
        Err(serde_json::Error::custom(otherwise))
    }
}

/// The template of `ackclock new queue`.
#[cfg(test)]
#[path = "../../../python/ackclock/scaffold/templates/queue.rs"]
mod template;

/// Packets for tests of disciplines.
#[cfg(test)]
pub mod testing {
    use super::{FlowHeaders, QueueContext};
    use crate::packet::{Kind, Packet, NO_PACKET};
    use ackclock_core::Time;

    /// Behind a link of 1 Gbit/s.
    pub const CONTEXT: QueueContext = QueueContext {
        rate_bps: 1e9,
        seed: 1,
        frame_bytes: 14,
        headers: FlowHeaders::NONE,
    };

    /// A data packet of flow 0.
    pub fn packet(sequence: u64, wire_bytes: u32) -> Packet {
        Packet {
            sequence,
            timestamp: Time::ZERO,
            enqueued: Time::ZERO,
            flow: 0,
            wire_bytes,
            kind: Kind::Data,
            ..NO_PACKET
        }
    }
}
