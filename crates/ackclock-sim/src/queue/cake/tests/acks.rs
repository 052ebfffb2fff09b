//! The ACK filter: the newest ACK stays, and so does each that says more than its number.

use super::*;
use crate::packet::acknowledgement;

/// An ACK of 52 bytes and a frame.
const BARE: u32 = 66;

fn ack(number: u64) -> Packet {
    Packet {
        kind: Kind::Ack,
        wire_bytes: BARE,
        sequence: acknowledgement(number, 100),
        ..of(0, 0)
    }
}

fn filtering(mode: &str) -> Cake {
    let header = FlowHeader {
        bare_ack_bytes: 52,
        ..FlowHeader::default()
    };
    cake(&json!({ "ack_filter": mode }), &[header, header])
}

/// Numbers of the ACKs that leave, after these have come.
fn left(mode: &str, packets: &[Packet]) -> Vec<u64> {
    let mut cake = filtering(mode);
    let dropped: usize = packets
        .iter()
        .map(|&packet| arrive(&mut cake, packet, Time::ZERO).len())
        .sum();
    let mut drops = Drops::default();
    let left: Vec<u64> = std::iter::from_fn(|| cake.dequeue(Time::ZERO, &mut drops))
        .map(|packet| packet.number())
        .collect();
    assert_eq!(left.len() + dropped, packets.len());
    left
}

#[test]
fn of_bare_acks_the_newest_stay() {
    let acks: Vec<Packet> = (1..=10).map(ack).collect();
    assert_eq!(left("off", &acks), (1..=10).collect::<Vec<_>>());
    assert_eq!(left("on", &acks), [9, 10]);
    assert_eq!(left("aggressive", &acks), [10]);
}

/// Each of these in the middle of ten bare ACKs.
#[test]
fn an_ack_with_information_is_never_dropped() {
    let informative = [
        Packet {
            wire_bytes: BARE + 12,
            ..ack(5)
        }, // SACK blocks
        Packet {
            flags: Flags::NONE.with_echo(1),
            ..ack(5)
        },
        Packet {
            flags: Flags::NONE.with_dsack(true),
            ..ack(5)
        },
        Packet {
            flags: Flags::NONE.with_opened(true),
            ..ack(5)
        },
        Packet {
            flags: Flags::NONE.with_part(3),
            ..ack(5)
        },
        Packet {
            flags: Flags::of(Ecn::Ce),
            ..ack(5)
        },
        Packet {
            kind: Kind::FinAck,
            ..ack(5)
        },
    ];
    for packet in informative {
        let mut acks: Vec<Packet> = (1..=10).map(ack).collect();
        acks[4] = packet;
        for mode in ["on", "aggressive"] {
            let left = left(mode, &acks);
            assert!(
                left.contains(&5) && left.contains(&10),
                "{packet:?}: {left:?}"
            );
        }
    }
}

/// Without SACK a sender counts duplicates: the ACK that they repeat, and all of them, stay.
#[test]
fn duplicate_acks_stay() {
    let acks = [1, 2, 3, 3, 3, 3, 4, 5].map(ack);
    assert_eq!(left("aggressive", &acks), [3, 3, 3, 3, 5]);
}

/// A duplicate of an ACK that has left already is one, too.
#[test]
fn a_duplicate_of_what_has_left_stays() {
    let mut cake = filtering("aggressive");
    arrive(&mut cake, ack(3), Time::ZERO);
    assert!(cake.dequeue(Time::ZERO, &mut Drops::default()).is_some());
    for number in [3, 4] {
        assert!(arrive(&mut cake, ack(number), Time::ZERO).is_empty());
    }
    assert_eq!(arrive(&mut cake, ack(5), Time::ZERO).len(), 1);
}

#[test]
fn data_and_acks_of_other_connections_stay() {
    let other = Packet { flow: 1, ..ack(7) };
    let data = Packet {
        wire_bytes: BARE,
        ..of(0, 1)
    };
    let mut cake = cake(
        &json!({ "ack_filter": "aggressive", "isolation": "flowblind" }),
        &[FlowHeader {
            bare_ack_bytes: 52,
            ..FlowHeader::default()
        }; 2],
    );
    for packet in [other, data, ack(1), of(0, 2)] {
        assert!(arrive(&mut cake, packet, Time::ZERO).is_empty());
    }
    let dropped = arrive(&mut cake, ack(9), Time::ZERO);
    assert_eq!(dropped, [ack(1).entering(Time::ZERO)]);
}

/// An older ACK that comes late replaces none.
#[test]
fn an_ack_that_was_overtaken_replaces_none() {
    assert_eq!(left("aggressive", &[ack(8), ack(5)]), [8, 5]);
}
