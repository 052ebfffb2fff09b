//! `spa`: SYN priority AQM. Packets with SYN or FIN go before all others; each of the two queues is under CoDel.
//!
//! T. Braud's thesis of 2016, section 7.3 and listing 7.1; CoDel as in `codel.rs`. The thesis ran it as a
//! priority queue (`tc-prio(8)`) over two `codel` queues, so each has a limit of its own.
//!
//! Deviations: if CoDel drops all packets of the first queue, the second is served immediately; the listing would
//! send nothing.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::codel::{Codel, Law};
use crate::queue::{Backlog, Discipline, Drops, Queue, QueueContext};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit into each of the two.
    limit_packets: u32,
    /// Target delay.
    target_s: f64,
    /// Time for which the delay may exceed the target before the first drop.
    interval_s: f64,
    /// True if packets of ECN-capable transports are marked instead of dropped.
    ecn: bool,
    /// True if 1/√count is approximated by Newton steps.
    newton: bool,
}

/// The two queues.
#[derive(Debug)]
struct Spa {
    /// `synfinqueue` of the listing.
    first: Codel,
    /// `packetqueue` of the listing.
    others: Codel,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let given = Parameters::deserialize(parameters)?;
    let law = Law::new(given.target_s, given.interval_s)?
        .marking(given.ecn, None)?
        .with_newton(given.newton);
    Ok(Queue::other(Spa {
        first: Codel::new(given.limit_packets, law)?,
        others: Codel::new(given.limit_packets, law)?,
    }))
}

impl Discipline for Spa {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        if packet.kind.opens() || packet.kind.closes() {
            self.first.enqueue(packet, now, drops);
        } else {
            self.others.enqueue(packet, now, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        if self.first.backlog().packets > 0 {
            let packet = self.first.dequeue(now, drops);
            if packet.is_some() {
                return packet;
            }
        }
        self.others.dequeue(now, drops)
    }

    fn backlog(&self) -> Backlog {
        let (first, others) = (self.first.backlog(), self.others.backlog());
        Backlog {
            packets: first.packets + others.packets,
            bytes: first.bytes + others.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;
    use crate::queue::testing::{packet, CONTEXT};
    use serde_json::json;

    fn parameters() -> Value {
        json!({
            "limit_packets": 1000,
            "target_s": 0.005,
            "interval_s": 0.1,
            "ecn": false,
            "newton": false,
        })
    }

    fn spa() -> Queue {
        make(&parameters(), &CONTEXT).expect("valid parameters")
    }

    fn fill(queue: &mut Queue, kind: Kind, packets: u64) {
        let mut drops = Drops::default();
        for sequence in 0..packets {
            let offered = Packet {
                kind,
                ..packet(sequence, 1514)
            };
            queue.enqueue(offered, Time::ZERO, &mut drops);
        }
        assert!(drops.is_empty());
    }

    #[test]
    fn syns_and_fins_go_first() {
        let mut queue = spa();
        fill(&mut queue, Kind::Data, 1);
        fill(&mut queue, Kind::Ack, 1);
        fill(&mut queue, Kind::Fin, 1);
        fill(&mut queue, Kind::SynAck, 1);
        fill(&mut queue, Kind::LastAck, 1);
        fill(&mut queue, Kind::Syn, 1);
        fill(&mut queue, Kind::FinAck, 1);
        let mut drops = Drops::default();
        let order: Vec<Kind> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops))
            .map(|packet| packet.kind)
            .collect();
        let first = [Kind::Fin, Kind::SynAck, Kind::Syn, Kind::FinAck];
        assert_eq!(order[..4], first);
        assert_eq!(order[4..], [Kind::Data, Kind::Ack, Kind::LastAck]);
    }

    /// Data stand in their queue and CoDel drops them after an interval; SYNs that come now and then pass.
    #[test]
    fn no_syn_is_lost_while_data_are_dropped() {
        let mut queue = spa();
        fill(&mut queue, Kind::Data, 900);
        let (mut drops, mut dropped) = (Drops::default(), Vec::new());
        for millisecond in 10..440_u64 {
            let now = Time::from_milliseconds(millisecond);
            let opener = Packet {
                kind: Kind::Syn,
                enqueued: now,
                ..packet(millisecond, 74)
            };
            queue.enqueue(opener, now, &mut drops);
            assert_eq!(
                queue.dequeue(now, &mut drops).map(|left| left.kind),
                Some(Kind::Syn)
            );
            queue.dequeue(now, &mut drops);
            dropped.extend(drops.drain().map(|packet| (millisecond, packet.kind)));
        }
        let times = [110, 210, 281, 339, 389, 434];
        assert_eq!(dropped, times.map(|time| (time, Kind::Data)));
    }

    /// Each queue is under its own CoDel: a standing queue of SYNs is dropped from too, and what is behind
    /// it is sent meanwhile.
    #[test]
    fn each_queue_has_a_separate_codel_and_limit() {
        let mut queue = spa();
        fill(&mut queue, Kind::Syn, 1000);
        fill(&mut queue, Kind::Data, 1000);
        let mut drops = Drops::default();
        for millisecond in 10..112 {
            queue.dequeue(Time::from_milliseconds(millisecond), &mut drops);
        }
        let dropped: Vec<Kind> = drops.drain().map(|packet| packet.kind).collect();
        assert_eq!(dropped, [Kind::Syn]);
        assert_eq!(queue.backlog().packets, 2000 - 103);
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        for (name, value) in [
            ("limit_packets", json!(0)),
            ("target_s", json!(0.0)),
            ("interval_s", json!(-0.1)),
            ("bands", json!(2)),
        ] {
            let mut all = parameters();
            all[name] = value;
            assert!(make(&all, &CONTEXT).is_err(), "{all}");
        }
    }
}
