//! Events of a stack with an RTT of 100 ms and packets of one segment, one each millisecond.

use serde_json::json;

use super::*;

const SEGMENT: u16 = 1000;
const BYTES: u64 = SEGMENT as u64;
const RTT: u64 = 100;

fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

/// Reno with a window of 20 segments and 20 packets in flight, sent at 0 to 19 ms.
fn reno() -> EngineController {
    let plan = CongestionPlan {
        kind: "reno".to_owned(),
        parameters: json!({ "slow_start": "standard" }),
    };
    let mut reno =
        EngineController::new(&plan, SEGMENT, 20 * BYTES, 1).expect("the spec's parameters");
    (0..20).for_each(|at| reno.on_sent(ms(at), BYTES));
    reno
}

/// Acknowledge the packet sent at `sent` milliseconds, an RTT later; `left` packets are in flight.
fn acknowledge(reno: &mut EngineController, sent: u64, left: u64) {
    reno.on_packet_acked(ms(sent), BYTES, ms(RTT));
    reno.on_end_acks(ms(sent + RTT), left * BYTES, false);
}

fn lose(reno: &mut EngineController, now: u64, sent: u64) {
    reno.on_congestion(ms(now), ms(sent), false, false, BYTES);
}

fn segments(reno: &EngineController) -> u64 {
    reno.window_bytes() / BYTES
}

#[test]
fn an_acknowledged_segment_grows_the_window_in_slow_start_unless_the_application_limits_it() {
    let mut reno = reno();
    acknowledge(&mut reno, 0, 19);
    assert_eq!(segments(&reno), 21);
    reno.on_packet_acked(ms(1), BYTES, ms(RTT));
    reno.on_end_acks(ms(101), 18 * BYTES, true);
    assert_eq!(segments(&reno), 21);
}

#[test]
fn the_window_grows_in_congestion_avoidance_only_if_it_holds_packets_back() {
    let growth = |is_limited: bool| {
        let mut reno = reno();
        lose(&mut reno, 105, 2);
        for at in 110..130 {
            reno.on_sent(ms(at), BYTES);
            if is_limited {
                reno.on_cwnd_limited();
            }
            acknowledge(&mut reno, at, 10);
        }
        segments(&reno) - 10
    };
    assert_eq!((growth(true), growth(false)), (1, 0));
}

#[test]
fn bytes_less_than_a_segment_count_with_those_that_follow() {
    let mut reno = reno();
    for sent in 0..4 {
        reno.on_packet_acked(ms(sent), BYTES / 2, ms(RTT));
        reno.on_end_acks(ms(sent + RTT), 10 * BYTES, false);
    }
    assert_eq!(segments(&reno), 22);
}

/// RFC 9002 section 7.3.2: packets sent before the period began are of it, also when it is over.
#[test]
fn losses_of_packets_sent_before_a_recovery_period_do_not_begin_another() {
    let mut reno = reno();
    lose(&mut reno, 105, 2);
    assert_eq!(
        (segments(&reno), reno.ssthresh_bytes()),
        (10, Some(10 * BYTES))
    );
    lose(&mut reno, 107, 4);
    assert_eq!(segments(&reno), 10);
    reno.on_sent(ms(110), BYTES);
    acknowledge(&mut reno, 110, 10);
    lose(&mut reno, 211, 19);
    assert_eq!(segments(&reno), 10);
    lose(&mut reno, 212, 110);
    assert_eq!(segments(&reno), 5);
}

#[test]
fn a_reduction_is_undone_one_time() {
    let mut reno = reno();
    lose(&mut reno, 105, 2);
    reno.on_spurious_congestion();
    assert_eq!(segments(&reno), 20);
    lose(&mut reno, 106, 4);
    assert_eq!(segments(&reno), 20, "of the same period");
    reno.on_sent(ms(120), BYTES);
    lose(&mut reno, 225, 120);
    assert_eq!(segments(&reno), 10);
}

/// RFC 9002 sections 7.2 and 7.6.2: the smallest window is two segments.
#[test]
fn persistent_congestion_leaves_the_smallest_window() {
    let mut reno = reno();
    reno.on_congestion(ms(900), ms(19), true, false, 20 * BYTES);
    assert_eq!(segments(&reno), MIN_WINDOW);
    assert_eq!(reno.ssthresh_bytes(), Some(10 * BYTES));
}

/// A packet each millisecond is 8 Mbit/s of segments of 1000 bytes, in acknowledgements as in transmissions.
#[test]
fn the_delivery_rate_is_that_of_the_last_flight() {
    let mut reno = reno();
    (20..250).for_each(|at| {
        reno.on_sent(ms(at), BYTES);
        if at >= RTT {
            reno.on_packet_acked(ms(at - RTT), BYTES, ms(RTT));
            reno.on_end_acks(ms(at), RTT * BYTES, false);
        }
    });
    let newest = reno.sent.iter().find(|sample| sample.sent == ms(150));
    let newest = *newest.expect("a packet in flight");
    reno.rates.deliver(1);
    let rate = reno.measure_rate(&newest, ms(250)).expect("a whole RTT");
    assert!(
        (rate.bits_per_second() / 8e6 - 1.0).abs() < 0.02,
        "{rate:?}"
    );
    assert!(reno.sent.len() <= 101, "what is acknowledged is forgotten");
}
