//! `redfavor`: RED that spares the packets which open a connection.
//!
//! P. Anelli, F. Harivelo, R. Lorion: TCP SYN Protection: An Evaluation, ICN 2012, as T. Braud's thesis of 2016
//! (sections 2.3.1 and 7.4) describes and uses it: RED with a treatment of its own for SYNs. RED itself is in
//! `red.rs`.
//!
//! Our interpretation: a SYN or SYN/ACK counts in the average like any packet, but is neither picked nor marked; it is
//! queued in its turn as long as there is room. If there is none, data that were queued last make room
//! (`push_out`), so no SYN is lost while data are queued; no SYN is ever pushed out.
//!
//! Deviations: those of `red`.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::packet::Packet;
use crate::queue::red::{self, RedQueue};
use crate::queue::{Backlog, Discipline, Drops, Queue, QueueContext};

/// Parameters, as in the algorithm's specification: those of `red` and one more.
#[derive(Clone, Debug, Deserialize)]
struct Parameters {
    /// True if a SYN that finds no room pushes out data.
    push_out: bool,
    #[serde(flatten)]
    red: Map<String, Value>,
}

/// RED that favours SYNs.
#[derive(Debug)]
struct RedFavor {
    queue: RedQueue,
    push_out: bool,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let Parameters { push_out, red } = Parameters::deserialize(parameters)?;
    let red: red::Parameters = serde_json::from_value(Value::Object(red))?;
    Ok(Queue::other(RedFavor {
        queue: red.queue(context)?,
        push_out,
    }))
}

impl Discipline for RedFavor {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        if !packet.kind.opens() {
            self.queue.enqueue(packet, now, drops);
            return;
        }
        self.queue.observe(now);
        if self.push_out {
            self.make_room(&packet, drops);
        }
        self.queue.admit(packet, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        self.queue.dequeue(now, drops)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

impl RedFavor {
    /// Drop what was queued last, openers excepted, until a packet fits.
    fn make_room(&mut self, packet: &Packet, drops: &mut Drops) {
        while !self.queue.fits(packet) {
            let pushed_out = self
                .queue
                .packets()
                .remove_last(|other| !other.kind.opens());
            if pushed_out.is_none() {
                return;
            }
            drops.extend(pushed_out);
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
            "limit_bytes": 20_000,
            "min_bytes": 5_000,
            "max_bytes": 15_000,
            "avpkt_bytes": 1000,
            "burst_packets": null,
            "weight": 1.0,
            "probability": 0.1,
            "bandwidth_bps": null,
            "ecn": false,
            "harddrop": false,
            "nodrop": false,
            "adaptive": false,
            "gentle": false,
            "wait": false,
            "spare_empty": false,
            "bytes": true,
            "weighted": false,
            "push_out": true,
        })
    }

    fn redfavor(changes: &Value) -> Queue {
        let mut all = parameters();
        for (name, value) in changes.as_object().expect("a table") {
            all[name] = value.clone();
        }
        make(&all, &CONTEXT).expect("valid parameters")
    }

    fn of(kind: Kind, sequence: u64) -> Packet {
        Packet {
            kind,
            ..packet(sequence, 1000)
        }
    }

    fn offer(queue: &mut Queue, kind: Kind, packets: u64) -> Vec<(Kind, u64)> {
        let mut drops = Drops::default();
        for sequence in 0..packets {
            queue.enqueue(of(kind, sequence), Time::ZERO, &mut drops);
        }
        drops
            .drain()
            .map(|packet| (packet.kind, packet.sequence))
            .collect()
    }

    /// Data stop at the upper threshold of 15 packets; five openers of either kind fit behind them.
    #[test]
    fn syns_are_admitted_while_data_are_dropped() {
        for kind in [Kind::Syn, Kind::SynAck] {
            let mut queue = redfavor(&json!({}));
            assert_eq!(offer(&mut queue, Kind::Data, 100).len(), 85);
            assert!(offer(&mut queue, kind, 5).is_empty());
            assert!(offer(&mut queue, Kind::Fin, 1).len() == 1);
        }
    }

    /// 15 data packets and five SYNs fill the queue. The next 15 push out the data, the last ones first; the
    /// five after these are lost, for there are only SYNs left.
    #[test]
    fn a_syn_without_room_pushes_out_data() {
        let mut queue = redfavor(&json!({}));
        offer(&mut queue, Kind::Data, 100);
        assert!(offer(&mut queue, Kind::Syn, 5).is_empty());
        let pushed_out = offer(&mut queue, Kind::Syn, 15);
        assert_eq!(pushed_out.len(), 15);
        assert!(pushed_out.iter().all(|(kind, _)| *kind == Kind::Data));
        assert!(pushed_out.windows(2).all(|pair| pair[0].1 > pair[1].1));
        let lost = offer(&mut queue, Kind::Syn, 5);
        assert!(lost.iter().all(|(kind, _)| *kind == Kind::Syn) && lost.len() == 5);
        assert_eq!(queue.backlog().packets, 20);
        assert_eq!(queue.backlog().bytes, 20_000);
    }

    #[test]
    fn without_push_out_syns_respect_the_limit() {
        let mut queue = redfavor(&json!({ "push_out": false }));
        offer(&mut queue, Kind::Data, 100);
        assert_eq!(
            offer(&mut queue, Kind::Syn, 7),
            [(Kind::Syn, 5), (Kind::Syn, 6)]
        );
    }

    #[test]
    fn packets_leave_in_the_order_of_arrival() {
        let mut queue = redfavor(&json!({}));
        offer(&mut queue, Kind::Data, 3);
        offer(&mut queue, Kind::Syn, 1);
        let mut drops = Drops::default();
        let kinds: Vec<Kind> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops))
            .map(|packet| packet.kind)
            .collect();
        assert_eq!(kinds, [Kind::Data, Kind::Data, Kind::Data, Kind::Syn]);
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        for (name, value) in [
            ("limit_bytes", json!(0)),
            ("push_out", json!(1)),
            ("min_bytes", json!(15_000)),
            ("target_s", json!(0.005)),
        ] {
            let mut all = parameters();
            all[name] = value;
            assert!(make(&all, &CONTEXT).is_err(), "{all}");
        }
    }
}
