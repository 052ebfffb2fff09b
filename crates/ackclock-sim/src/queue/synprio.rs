//! `synprio`: SYNs before everything else.
//!
//! T. Braud's thesis of 2016, section 7.4 ("SYN Prio"): queues with priority that isolate SYNs. A lost SYN
//! or SYN/ACK costs its connection a timeout of a second or more, and it is the first packet, which a full
//! queue hits as often as any other. So packets with the SYN flag have a FIFO of their own, which is
//! served first; all others share the second.
//!
//! Deviations: both FIFOs have the same limit in packets, as the bands of `prio` have. The packet in
//! transmission has left its FIFO.

use serde::Deserialize;
use serde_json::Value;

use crate::packet::{Kind, Packet};
use crate::queue::bands::Bands;
use crate::queue::{require, Queue, QueueContext};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit in each of the two FIFOs.
    limit_packets: u32,
}

/// Make the discipline; an error for parameters other than `limit_packets`, or a limit below 1.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    with_urgent(parameters, Kind::opens)
}

/// Two FIFOs, the first for such packets.
pub fn with_urgent(
    parameters: &Value,
    is_urgent: fn(Kind) -> bool,
) -> Result<Queue, serde_json::Error> {
    let Parameters { limit_packets } = Parameters::deserialize(parameters)?;
    require(limit_packets > 0, "limit_packets must be at least 1")?;
    let band_of = move |packet: &Packet| usize::from(!is_urgent(packet.kind));
    Ok(Queue::other(Bands::new(2, limit_packets, band_of)))
}

/// Tests that both disciplines by flags share.
#[cfg(test)]
pub mod testing {
    use super::*;
    use crate::queue::testing::packet;
    use crate::queue::Drops;
    use ackclock_core::Time;

    /// Every kind of packet, once.
    pub const KINDS: [Kind; 7] = [
        Kind::Data,
        Kind::Ack,
        Kind::LastAck,
        Kind::Fin,
        Kind::FinAck,
        Kind::Syn,
        Kind::SynAck,
    ];

    /// Offer packets of these kinds; returns those that were dropped.
    pub fn offer(queue: &mut Queue, kinds: &[Kind]) -> Vec<Kind> {
        let mut drops = Drops::default();
        for kind in kinds {
            let packet = Packet {
                kind: *kind,
                ..packet(0, 66)
            };
            queue.enqueue(packet, Time::ZERO, &mut drops);
        }
        drops.drain().map(|packet| packet.kind).collect()
    }

    /// The kinds in the order in which they leave.
    pub fn order(queue: &mut Queue) -> Vec<Kind> {
        let mut drops = Drops::default();
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops))
            .map(|packet| packet.kind)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{offer, order, KINDS};
    use super::*;
    use crate::queue::testing::CONTEXT;
    use serde_json::json;

    fn synprio(limit: u32) -> Queue {
        make(&json!({ "limit_packets": limit }), &CONTEXT).expect("valid parameters")
    }

    #[test]
    fn only_syns_and_syn_acks_go_first() {
        let mut queue = synprio(10);
        assert!(offer(&mut queue, &KINDS).is_empty());
        let expected = [
            Kind::Syn,
            Kind::SynAck,
            Kind::Data,
            Kind::Ack,
            Kind::LastAck,
            Kind::Fin,
            Kind::FinAck,
        ];
        assert_eq!(order(&mut queue), expected);
    }

    #[test]
    fn no_syn_is_dropped_while_data_are() {
        let mut queue = synprio(3);
        let dropped = offer(&mut queue, &[Kind::Data; 10]);
        assert_eq!(dropped, [Kind::Data; 7]);
        assert!(offer(&mut queue, &[Kind::Syn, Kind::SynAck, Kind::Syn]).is_empty());
        assert_eq!(offer(&mut queue, &[Kind::Fin]), [Kind::Fin]);
        assert_eq!(queue.backlog().packets, 6);
    }

    #[test]
    fn many_syns_fill_their_own_queue_only() {
        let mut queue = synprio(3);
        assert_eq!(offer(&mut queue, &[Kind::Syn; 5]), [Kind::Syn; 2]);
        assert!(offer(&mut queue, &[Kind::Data; 3]).is_empty());
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        for parameters in [
            json!({ "limit_packets": 0 }),
            json!({}),
            json!({ "limit": 3 }),
        ] {
            assert!(make(&parameters, &CONTEXT).is_err(), "{parameters}");
        }
    }
}
