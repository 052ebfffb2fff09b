//! A link behind a discipline that holds packets back.

use super::*;
use crate::queue::testing::packet;
use ackclock_plan::QueuePlan;
use proptest::prelude::*;
use serde_json::json;

/// A link of 80 Mb/s (1000 bytes are 100 µs) behind this queue.
fn link_behind(queue: QueuePlan) -> Link {
    let plan = LinkPlan {
        name: "link".to_owned(),
        ends: None,
        rate: Rate::from_bits_per_second(80e6),
        delay: Time::ZERO,
        weight: 1.0,
        burst_bytes: None,
        frame_overhead_bytes: 14,
        queue,
        loss: None,
        medium: None,
        trace: None,
        bottleneck: true,
    };
    Link::new(&plan, FlowHeaders::NONE, 1).expect("a sound plan")
}

/// One behind a drop-tail queue.
pub fn fifo() -> Link {
    link_behind(QueuePlan {
        discipline: "pfifo".to_owned(),
        parameters: json!({ "limit_packets": 100 }),
    })
}

/// One behind token buckets of 4 Mb/s (2 ms), two packets deep.
fn shaped(limit_bytes: u64, per_flow: bool) -> Link {
    link_behind(QueuePlan {
        discipline: "tbf".to_owned(),
        parameters: json!({
            "rate_bps": 4e6, "burst_bytes": 2000, "limit_bytes": limit_bytes, "latency_s": null,
            "per_flow": per_flow,
        }),
    })
}

/// 1000 bytes with the frame.
fn of(flow: u32, sequence: u64) -> Packet {
    Packet {
        flow,
        ..packet(sequence, 986)
    }
}

fn us(microseconds: u64) -> Time {
    Time::from_microseconds(microseconds)
}

/// Driver of a link's events: time of the next, and packets that have left.
struct Driver {
    link: Link,
    due: Time,
    left: Vec<(Time, Packet)>,
}

impl Driver {
    fn new(link: Link) -> Driver {
        Driver {
            link,
            due: Time::NEVER,
            left: Vec::new(),
        }
    }

    fn advance(&mut self, until: Time) {
        while self.due <= until {
            let now = self.due;
            let (packet, due) = self.link.finish(now);
            assert!(due.next() > now, "time passes");
            self.due = due.next();
            self.left.extend(packet.map(|packet| (now, packet)));
        }
    }

    /// Offer a packet; an event that is due stays due unless the link names another, as in the network.
    fn offer(&mut self, packet: Packet, now: Time) {
        self.advance(now);
        let due = self
            .link
            .offer::<false>(packet, now)
            .map_or(Time::NEVER, Due::next);
        if !due.is_never() {
            self.due = due;
        }
    }

    fn times(&self) -> Vec<Time> {
        self.left.iter().map(|(time, _)| *time).collect()
    }
}

#[test]
fn a_held_back_packet_starts_at_the_exact_time() {
    let mut driver = Driver::new(shaped(10_000, true));
    for sequence in 0..4 {
        driver.offer(of(0, sequence), us(0));
    }
    driver.advance(us(100_000));
    // Two immediately, one after the other; then one each 2 ms, and 100 µs to send it. The second packet's tokens
    // were taken at 100 µs, from a bucket that had 50 bytes more by then.
    assert_eq!(driver.times(), [us(100), us(200), us(2100), us(4100)]);
    assert_eq!(driver.link.waiting_packets(), 0);
    assert_eq!(driver.due, Time::NEVER);
}

#[test]
fn the_wait_counts_as_sojourn_and_not_as_busy_time() {
    let mut driver = Driver::new(shaped(10_000, true));
    for sequence in 0..3 {
        driver.offer(of(0, sequence), us(0));
    }
    driver.advance(us(10_000));
    let counters = driver.link.counters(us(10_000));
    assert_eq!(counters.busy, us(300));
    assert_eq!(counters.empty, us(8000));
    assert_eq!((counters.dequeued, counters.departed), (3, 3));
    let waited_us = counters.sojourn_time / us(1).as_f64();
    assert!((waited_us - 2100.0).abs() < 1e-6, "{waited_us}"); // 0, 100 and 2000
    let queued_us = counters.packet_time as f64 / us(1).as_f64();
    assert!((queued_us - 2100.0).abs() < 1e-6, "{queued_us}");
}

#[test]
fn a_second_waiting_arrival_does_not_disturb_the_wait() {
    let mut driver = Driver::new(shaped(10_000, true));
    for sequence in 0..3 {
        driver.offer(of(0, sequence), us(0));
    }
    driver.offer(of(0, 3), us(1000));
    assert_eq!(driver.due, us(2000));
    driver.advance(us(100_000));
    assert_eq!(driver.times(), [us(100), us(200), us(2100), us(4100)]);
}

#[test]
fn an_arrival_of_another_flow_bypasses_the_wait() {
    let mut driver = Driver::new(shaped(10_000, true));
    for sequence in 0..3 {
        driver.offer(of(0, sequence), us(0));
    }
    driver.offer(of(1, 0), us(1950));
    assert_eq!(driver.due, us(2050));
    driver.advance(us(100_000));
    let left: Vec<(Time, u32)> = driver
        .left
        .iter()
        .map(|(time, packet)| (*time, packet.flow))
        .collect();
    // Flow 0 may go from 2 ms on, and the link is free at 2.05.
    let expected = [(us(100), 0), (us(200), 0), (us(2050), 1), (us(2150), 0)];
    assert_eq!(left, expected);
}

#[test]
fn the_excess_is_dropped_and_logged_immediately() {
    let mut driver = Driver::new(shaped(2000, true));
    for sequence in 0..7 {
        driver.offer(of(0, sequence), us(0));
    }
    // One in transmission and two waiting; the second of the burst waits for the link.
    let drop_log = driver.link.take_drop_log(DropLog::default()).dropped;
    let dropped: Vec<u64> = drop_log.iter().map(|packet| packet.sequence).collect();
    assert_eq!(dropped, [3, 4, 5, 6]);
    assert_eq!(drop_log[0].wire_bytes, 986);
    assert_eq!(driver.link.backlog(), (2, 2000));
    driver.advance(us(100_000));
    assert_eq!(driver.times(), [us(100), us(200), us(2100)]);
}

proptest! {
    /// Whatever arrives: every packet is dropped, held or sent; the accounts of the link and its discipline
    /// agree; a flow's packets keep their order and its rate; and none is held for ever.
    #[test]
    fn a_shaped_link_conserves_packets(
        arrivals in prop::collection::vec((0_u64..3000, 0_u32..4, 40_u32..1100), 1..300),
        limit_bytes in 1000_u64..20_000,
        per_flow in any::<bool>(),
    ) {
        let mut driver = Driver::new(shaped(limit_bytes, per_flow));
        let (mut now, mut dropped) = (Time::ZERO, Vec::new());
        let offered = arrivals.len() as u64;
        for (sequence, (gap_us, flow, bytes)) in (0..).zip(arrivals) {
            now += us(gap_us);
            let arriving = Packet { flow, ..packet(sequence, bytes) };
            driver.offer(arriving, now);
            dropped.append(&mut driver.link.take_drop_log(DropLog::default()).dropped);
            let left = driver.left.len() + dropped.len();
            prop_assert_eq!(sequence + 1, left as u64 + driver.link.held_packets(now));
            let (packets, bytes) = driver.link.backlog();
            prop_assert_eq!(driver.link.discipline_backlog(), queue::Backlog { packets, bytes });
            prop_assert!(driver.link.held_packets(now) == 0 || !driver.due.is_never(), "held for ever");
        }
        let end = Time::NEVER - us(1);
        driver.advance(end);
        prop_assert_eq!(driver.link.held_packets(end), 0);
        prop_assert_eq!((driver.left.len() + dropped.len()) as u64, offered);
        let counters = driver.link.counters(end);
        prop_assert_eq!(counters.arrived, offered);
        prop_assert_eq!(counters.dropped, dropped.len() as u64);
        prop_assert_eq!(counters.departed, driver.left.len() as u64);
        prop_assert!(driver.left.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for flow in 0..4 {
            let mine = || driver.left.iter().filter(|(_, packet)| packet.flow == flow);
            let order: Vec<u64> = mine().map(|(_, packet)| packet.sequence).collect();
            prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
            let bytes: u64 = mine().map(|(_, packet)| u64::from(packet.wire_bytes) + 14).sum();
            let end_s = mine().next_back().map_or(0.0, |(time, _)| time.seconds());
            prop_assert!(bytes as f64 <= 2000.0 + 5e5 * end_s + 0.01);
        }
    }
}

/// The layout that [`Link`] promises, in cache lines of 64 bytes.
#[test]
fn per_packet_state_is_in_the_first_cache_lines() {
    use std::mem::offset_of;
    assert!(offset_of!(Link, has_drops) < 64);
    assert_eq!(offset_of!(Link, propagation), 64);
    assert_eq!(Propagation::HOT_BYTES, 64);
    assert_eq!(offset_of!(Link, queue), 3 * 64);
    assert_eq!(offset_of!(Link, counters), 4 * 64);
    assert!(offset_of!(Link, drops) < 8 * 64);
}
