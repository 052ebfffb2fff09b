//! COBALT, and the memory limit.

use super::*;

fn marked(ecn: Ecn, sequence: u64) -> Packet {
    Packet {
        flags: Flags::of(ecn),
        ..of(0, sequence)
    }
}

/// Milliseconds at which packets of a standing queue are dropped, and marked: a packet leaves every millisecond.
fn signals(cake: &mut Cake, ecn: Ecn, milliseconds: u64) -> (Vec<u64>, Vec<u64>) {
    let mut drops = Drops::default();
    let (mut dropped, mut marks) = (Vec::new(), Vec::new());
    for sequence in 0..milliseconds + 200 {
        arrive(cake, marked(ecn, sequence), Time::ZERO);
    }
    for millisecond in 0..milliseconds {
        cake.dequeue(ms(millisecond), &mut drops);
        dropped.extend(drops.drain().map(|_| millisecond));
        marks.extend(drops.drain_marked().map(|_| millisecond));
    }
    (dropped, marks)
}

/// RFC 8289 section 5: the delay is above 5 ms at 6 ms; the first drop is 100 ms later, then after 100/√2 = 70.7,
/// 100/√3 = 57.7, 50 and 44.7 ms.
#[test]
fn the_first_drop_is_an_interval_late_and_the_next_follow_the_control_law() {
    let (dropped, marks) = signals(&mut cake(&json!({}), &[]), Ecn::NotEct, 350);
    assert_eq!(dropped, [106, 177, 235, 285, 330]);
    assert!(marks.is_empty());
}

#[test]
fn packets_of_capable_flows_are_marked_instead() {
    let (dropped, marks) = signals(&mut cake(&json!({}), &[]), Ecn::Ect0, 350);
    assert!(dropped.is_empty());
    assert_eq!(marks, [106, 177, 235, 285, 330]);
}

/// The target and the interval follow the RTT: 1 ms and 20 ms, so 2 + 20, then + 14.1, + 11.5, + 10.
#[test]
fn the_rtt_sets_target_and_interval() {
    let (dropped, _) = signals(&mut cake(&json!({ "rtt_s": 0.02 }), &[]), Ecn::NotEct, 60);
    assert_eq!(dropped, [22, 37, 48, 58]);
}

/// A delay of four packets' transmissions or less is no standing queue, however long it is: at 100 kb/s a packet of 1514
/// bytes takes 121 ms, the target is 182 ms, and 400 ms are less than four.
#[test]
fn delays_of_four_transmissions_cause_no_drop() {
    let mut control = cobalt::Control::default();
    let law = cobalt::Law {
        target: ms(182),
        interval: ms(363),
        full_packet: ms(121),
    };
    let mut hits = |wait: u64, from: u64| {
        let mut random = CONTEXT.random();
        let mut packets =
            (from..from + 1000).map(|at| (at, marked(Ecn::NotEct, 0).entering(ms(at - wait))));
        packets.any(|(at, mut packet)| {
            control.is_hit(
                &law,
                &mut packet,
                ms(at),
                &mut Drops::default(),
                &mut random,
            )
        })
    };
    assert!(!hits(400, 1000));
    assert!(hits(500, 3000));
}

/// Below the target the count falls by the schedule by which it rose, from 4 after 50, 57.7, 70.7 and 100 ms.
#[test]
fn below_the_target_the_count_falls() {
    let law = cake(&json!({}), &[]).tins[0].law;
    let mut control = cobalt::Control::default();
    let mut random = CONTEXT.random();
    let mut signals = |from: u64, until: u64, wait: u64| -> Vec<u64> {
        let is_hit = |&at: &u64| {
            let mut packet = marked(Ecn::NotEct, 0).entering(ms(at - wait));
            control.is_hit(
                &law,
                &mut packet,
                ms(at),
                &mut Drops::default(),
                &mut random,
            )
        };
        (from..until).filter(is_hit).collect()
    };
    // The count is 1 at 1000, and 4 after three drops at 1100, 1171 and 1229; the fourth would be at 1279.
    assert_eq!(signals(1000, 1250, 10), [1100, 1171, 1229]);
    // It falls at 1279 (to 3, whose interval is 57.7), 1337 (2) and 1407 (1).
    assert_eq!(signals(1250, 1420, 1), [0_u64; 0]);
    // From a count of 1 the first drop is an interval after the delay came back, the next 70.7 ms after it.
    assert_eq!(signals(1420, 1600, 10), [1520, 1591]);
}

/// 11 packets of 1000 bytes in a memory of 10,000: the head of the longest queue goes, and no other.
#[test]
fn the_memory_limit_drops_from_the_head_of_the_fattest_queue() {
    let mut cake = cake(&json!({ "memlimit_bytes": 12_500 }), &[]);
    for sequence in 0..7 {
        assert!(arrive(&mut cake, of(0, sequence), Time::ZERO).is_empty());
    }
    for sequence in 0..3 {
        assert!(arrive(&mut cake, of(1, sequence), Time::ZERO).is_empty());
    }
    let dropped: Vec<_> = (3..6)
        .flat_map(|sequence| arrive(&mut cake, of(1, sequence), Time::ZERO))
        .map(|packet| (packet.flow, packet.sequence))
        .collect();
    // At 5 and 5 packets the first of the two loses one.
    assert_eq!(dropped.len(), 3);
    assert_eq!(dropped[..2], [(0, 0), (0, 1)]);
    assert_eq!(
        cake.backlog(),
        Backlog {
            packets: 10,
            bytes: 12_500
        }
    );
}

/// An overflow adds 1/256 at most once per target, and signals at once; an empty queue takes 1/4096 off per target.
#[test]
fn blue_rises_with_overflows_and_falls_while_the_queue_is_empty() {
    let law = cake(&json!({}), &[]).tins[0].law;
    let mut control = cobalt::Control::default();
    let rise = 1.0 / 256.0;
    for (at, expected) in [
        (100, rise),
        (103, rise),
        (106, 2.0 * rise),
        (111, 2.0 * rise),
        (112, 3.0 * rise),
    ] {
        control.on_overflow(&law, ms(at));
        assert!((control.probability() - expected).abs() < 1e-9, "{at}");
    }
    control.on_empty(&law, ms(114));
    assert!((control.probability() - 3.0 * rise).abs() < 1e-9);
    control.on_empty(&law, ms(112 + 50));
    assert!((control.probability() - (3.0 * rise - 10.0 / 4096.0)).abs() < 1e-9);
    control.on_empty(&law, ms(100_000));
    assert!(control.probability() == 0.0);
}

/// A flow that never responds and overflows the memory is dropped by BLUE, too: with 16 increases a sixteenth.
#[test]
fn blue_drops_by_its_probability() {
    let law = cake(&json!({}), &[]).tins[0].law;
    let mut control = cobalt::Control::default();
    (0..16).for_each(|step| control.on_overflow(&law, ms(10 * step)));
    let mut random = CONTEXT.random();
    let hits = (0..10_000).filter(|_| {
        let now = ms(160);
        let mut packet = marked(Ecn::NotEct, 0).entering(now);
        control.is_hit(&law, &mut packet, now, &mut Drops::default(), &mut random)
    });
    let hits = hits.count();
    // 625, standard deviation 24.
    assert!((525..725).contains(&hits), "{hits}");
}

/// However late, the last packet of a queue is sent.
#[test]
fn the_last_packet_of_a_queue_is_never_dropped() {
    let mut cake = cake(&json!({}), &[]);
    let mut drops = Drops::default();
    for sequence in 0..50 {
        arrive(&mut cake, of(0, sequence), ms(1000 * sequence));
        assert!(cake
            .dequeue(ms(1000 * sequence + 900), &mut drops)
            .is_some());
    }
    assert!(drops.is_empty());
}
