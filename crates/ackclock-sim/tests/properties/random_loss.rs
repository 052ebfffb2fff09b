//! Loss at a link that is independent of its queue.

use ackclock_core::Time;
use ackclock_plan::{LinkPlan, LossPlan};
use ackclock_sim::link::Link;
use ackclock_sim::packet::{Kind, Packet};
use ackclock_sim::queue::FlowHeaders;
use proptest::prelude::*;

use super::plans::cases;
use crate::kit::{link, packet};

const FLOWS: usize = 4;

fn lossy(loss: LossPlan) -> LinkPlan {
    LinkPlan {
        loss: Some(loss),
        medium: None,
        trace: None,
        ..link(1e9, u32::MAX)
    }
}

fn is_lost(link: &mut Link, kind: Kind, flow: u32) -> bool {
    let packet = Packet {
        flow,
        ..packet(kind)
    };
    link.offer::<false>(packet, Time::ZERO).is_none()
}

fn make(loss: LossPlan, seed: u64) -> Link {
    Link::new(&lossy(loss), FlowHeaders::NONE, seed).expect("a sound link")
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn each_nth_data_packet_of_a_flow_is_lost_independently_of_others(
        packets in 2..20_u64,
        flows in prop::collection::vec((0..FLOWS as u32, any::<bool>()), 1..500),
    ) {
        let mut link = make(LossPlan::Every { packets }, 1);
        let mut seen = [0; FLOWS];
        for (flow, is_data) in flows {
            let kind = if is_data { Kind::Data } else { Kind::Ack };
            seen[flow as usize] += u64::from(is_data);
            let due = is_data && seen[flow as usize] % packets == 0;
            prop_assert_eq!(is_lost(&mut link, kind, flow), due);
        }
    }

    #[test]
    fn the_share_of_bernoulli_losses_is_their_probability(
        probability in 0.001..0.5_f64,
        seed in any::<u64>(),
    ) {
        const PACKETS: u32 = 20_000;
        let mut link = make(LossPlan::Bernoulli { probability }, seed);
        let lost = (0..PACKETS).filter(|_| is_lost(&mut link, Kind::Data, 0)).count() as f64;
        let expected = f64::from(PACKETS) * probability;
        // Six standard deviations: once in a thousand million.
        let tolerance = 6.0 * (expected * (1.0 - probability)).sqrt();
        prop_assert!((lost - expected).abs() < tolerance, "{lost} lost of {expected} expected");
    }
}

#[test]
fn bernoulli_losses_do_not_follow_each_other() {
    // With p = 0.3 a loss is followed by another one in 30 of 100 cases.
    let mut link = make(LossPlan::Bernoulli { probability: 0.3 }, 7);
    let lost: Vec<bool> = (0..100_000)
        .map(|_| is_lost(&mut link, Kind::Data, 0))
        .collect();
    let (mut losses, mut pairs) = (0.0, 0.0);
    for pair in lost.windows(2) {
        losses += f64::from(u8::from(pair[0]));
        pairs += f64::from(u8::from(pair[0] && pair[1]));
    }
    assert!(
        (pairs / losses - 0.3_f64).abs() < 0.02,
        "{pairs} of {losses}"
    );
}

#[test]
fn handshakes_fins_and_acks_are_not_lost() {
    let mut link = make(LossPlan::Bernoulli { probability: 1.0 }, 1);
    for kind in [
        Kind::Syn,
        Kind::SynAck,
        Kind::Fin,
        Kind::Ack,
        Kind::FinAck,
        Kind::LastAck,
    ] {
        assert!(!is_lost(&mut link, kind, 0), "{kind:?}");
    }
    assert!(is_lost(&mut link, Kind::Data, 0));
}

#[test]
fn syns_are_lost_if_the_plan_includes_them() {
    let plan = LossPlan::ByKind {
        probability: 0.02,
        syn: 0.3,
        ack: 0.0,
        ack_thinning: 1,
    };
    let mut link = make(plan, 1);
    for kind in [Kind::Fin, Kind::Ack, Kind::FinAck, Kind::LastAck] {
        assert!((0..1000).all(|_| !is_lost(&mut link, kind, 0)), "{kind:?}");
    }
    let openings = [Kind::Syn, Kind::SynAck, Kind::ClientSyn, Kind::ServerSynAck];
    let expected = openings.map(|kind| (kind, 0.3)).into_iter().chain([
        (Kind::Data, 0.02),
        (Kind::DataFin, 0.02),
        (Kind::Datagram, 0.02),
    ]);
    for (kind, expected) in expected {
        let count = (0..20_000).filter(|_| is_lost(&mut link, kind, 0)).count();
        let share = count as f64 / 20_000.0;
        assert!((share - expected).abs() < 0.02, "{kind:?}: {share}");
    }
}

/// The last of each n ACKs of a flow goes on; what carries data, opens or closes is no ACK (RFC 3449 section 5.2.1).
#[test]
fn thinned_acks_of_each_flow_pass_one_in_n() {
    let mut link = make(
        LossPlan::ByKind {
            probability: 0.0,
            syn: 0.0,
            ack: 0.0,
            ack_thinning: 3,
        },
        1,
    );
    let lost: Vec<bool> = (0..12)
        .map(|number| is_lost(&mut link, Kind::Ack, number % 2))
        .collect();
    let first_two_of_three = [true, true, true, true, false, false];
    assert_eq!(lost, first_two_of_three.repeat(2));
    for kind in [
        Kind::Syn,
        Kind::SynAck,
        Kind::Data,
        Kind::FinAck,
        Kind::LastAck,
    ] {
        assert!((0..9).all(|_| !is_lost(&mut link, kind, 0)), "{kind:?}");
    }
}

#[test]
fn acks_are_lost_with_their_probability() {
    let plan = LossPlan::ByKind {
        probability: 0.0,
        syn: 0.0,
        ack: 0.1,
        ack_thinning: 1,
    };
    let mut link = make(plan, 5);
    let lost = |link: &mut Link, kind| (0..20_000).filter(|_| is_lost(link, kind, 0)).count();
    // Six standard deviations of 2000 ± 42.
    assert!((1745..2255).contains(&lost(&mut link, Kind::Ack)));
    assert_eq!(lost(&mut link, Kind::Data), 0);
}
