//! PIE, step by step, against sums done by hand from RFC 8033.

use super::control::{Control, Settings};
use super::*;
use crate::packet::{Ecn, Flags};
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

const MTU: u32 = 1514;
/// A backlog that neither safeguard nor rate threshold cares about.
const LONG: u64 = 100 * 1514;

fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

/// α = 1/8 Hz, β = 1 1/4 Hz, 15 ms, no burst allowance.
fn settings() -> Settings {
    Settings {
        target: ms(15),
        tupdate: ms(15),
        alpha: 2.0,
        beta: 20.0,
        bytemode: false,
        dq_rate_estimator: false,
        max_burst: Time::ZERO,
        derandomize: true,
        mtu_bytes: MTU,
    }
}

/// A controller at a probability, which saw this delay at the last update and that one since.
fn control(settings: Settings, probability: f64, delay_old_ms: u64, delay_ms: u64) -> Control {
    let mut control = Control::new(settings);
    depart(&mut control, 0, delay_old_ms);
    control.update(LONG);
    depart(&mut control, 10, delay_ms);
    control.with_probability(probability)
}

/// A packet leaves at `at_ms` after waiting `delay_ms`; others stay.
fn depart(control: &mut Control, at_ms: u64, delay_ms: u64) {
    let now = ms(1000 + at_ms);
    let leaving = packet(0, MTU).entering(now - ms(delay_ms));
    control.on_departure(&leaving, now, LONG);
}

fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-12, "{left} is not {right}");
}

fn parameters() -> Value {
    json!({
        "limit_packets": 1000, "target_s": 0.015, "tupdate_s": 0.015, "alpha": 2.0, "beta": 20.0,
        "ecn": false, "ecn_threshold": 0.1, "bytemode": false, "dq_rate_estimator": false,
        "max_burst_s": 0.15, "derandomize": true, "mtu_bytes": 1514,
    })
}

fn changed(changes: &Value) -> Value {
    let mut all = parameters();
    for (key, value) in changes.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    all
}

fn pie(changes: &Value) -> Pie {
    let parameters = Parameters::deserialize(changed(changes)).expect("valid parameters");
    Pie::new(parameters, CONTEXT.random())
}

#[test]
fn an_update_adds_alpha_times_the_error_and_beta_times_the_growth() {
    // 0.125 × (20 − 15) ms + 1.25 × (20 − 12) ms = 0.000625 + 0.01
    let mut at_half = control(settings(), 0.5, 12, 20);
    at_half.update(LONG);
    assert_close(at_half.probability(), 0.510_625);
    let mut at_a_twentieth = control(settings(), 0.05, 12, 20);
    at_a_twentieth.update(LONG);
    assert_close(at_a_twentieth.probability(), 0.05 + 0.010_625 / 2.0);
    let mut at_zero = control(settings(), 0.0, 12, 20);
    at_zero.update(LONG);
    assert_close(at_zero.probability(), 0.010_625 / 2048.0);
}

#[test]
fn the_next_update_compares_with_the_delay_of_this_one() {
    let mut control = control(settings(), 0.5, 12, 20);
    control.update(LONG);
    control.update(LONG);
    assert_close(control.probability(), 0.510_625 + 0.000_625);
}

#[test]
fn from_ten_percent_on_a_step_is_limited_to_two_percent() {
    // 0.125 × 35 ms + 1.25 × 50 ms = 0.066875
    let mut capped = control(settings(), 0.1, 0, 50);
    capped.update(LONG);
    assert_close(capped.probability(), 0.12);
    let mut below = control(settings(), 0.09, 0, 50);
    below.update(LONG);
    assert_close(below.probability(), 0.09 + 0.066_875 / 2.0);
}

#[test]
fn above_a_quarter_second_two_percent_are_added() {
    let mut at_the_edge = control(settings(), 0.5, 250, 250);
    at_the_edge.update(LONG);
    assert_close(at_the_edge.probability(), 0.5 + 0.02); // capped from 0.125 × 0.235
    let mut beyond = control(settings(), 0.5, 251, 251);
    beyond.update(LONG);
    assert_close(beyond.probability(), 0.5 + 0.04);
}

#[test]
fn the_probability_stays_between_zero_and_one() {
    let mut high = control(settings(), 0.995, 0, 400);
    high.update(LONG);
    assert_close(high.probability(), 1.0);
    let mut low = control(settings(), 0.000_5, 15, 2);
    low.update(LONG);
    assert_close(low.probability(), 0.0);
}

#[test]
fn without_congestion_the_probability_decays_by_a_sixty_fourth() {
    let mut empty = control(settings(), 0.5, 0, 0);
    empty.update(0);
    assert_close(empty.probability(), (0.5 - 0.125 * 0.015) * 63.0 / 64.0);
    let mut short = control(settings(), 0.5, 0, 0);
    short.update(3000);
    assert_close(short.probability(), 0.5 - 0.125 * 0.015);
}

#[test]
fn the_burst_allowance_lasts_for_150_ms_of_departures() {
    let with_burst = Settings {
        max_burst: ms(150),
        ..settings()
    };
    let mut random = CONTEXT.random();
    let mut control = Control::new(with_burst).with_probability(1.0);
    for at_ms in (0..150).step_by(10) {
        depart(&mut control, at_ms, 100);
        assert!(!control.hits(&packet(0, MTU), LONG, &mut random), "{at_ms}");
    }
    depart(&mut control, 150, 100);
    assert!(control.hits(&packet(0, MTU), LONG, &mut random));
}

#[test]
fn a_quiet_queue_gets_its_burst_allowance_back() {
    let with_burst = Settings {
        max_burst: ms(150),
        ..settings()
    };
    let mut control = Control::new(with_burst);
    depart(&mut control, 0, 7);
    depart(&mut control, 200, 7);
    // The first one takes p up, as the delay has grown; the others take it down to zero.
    for _ in 0..10 {
        control.update(LONG);
    }
    let mut control = control.with_probability(1.0);
    depart(&mut control, 300, 100);
    depart(&mut control, 449, 100);
    assert!(!control.hits(&packet(0, MTU), LONG, &mut CONTEXT.random()));
    depart(&mut control, 450, 100);
    assert!(control.hits(&packet(0, MTU), LONG, &mut CONTEXT.random()));
}

#[test]
fn a_short_delay_is_harmless_below_twenty_percent() {
    let hits = |probability, delay_ms| {
        let mut control = control(settings(), probability, delay_ms, delay_ms);
        let mut random = CONTEXT.random();
        (0..100).any(|_| control.hits(&packet(0, MTU), LONG, &mut random))
    };
    assert!(!hits(0.19, 7));
    assert!(hits(0.19, 8));
    assert!(hits(0.21, 7));
}

#[test]
fn less_than_two_full_packets_are_never_dropped_from() {
    let mut control = control(settings(), 1.0, 100, 100);
    let mut random = CONTEXT.random();
    assert!(!control.hits(&packet(0, MTU), 2 * 1514 - 1, &mut random));
    assert!(control.hits(&packet(0, MTU), 2 * 1514, &mut random));
}

#[test]
fn drops_are_neither_too_close_nor_too_late() {
    // p = 1/128 is exact in binary: 0.85 is passed at the 109th packet, 8.5 reached at the 1088th.
    let mut control = control(settings(), 1.0 / 128.0, 100, 100);
    let mut random = CONTEXT.random();
    let (mut gap, mut gaps) = (0, Vec::new());
    while gaps.len() < 2000 {
        gap += 1;
        if control.hits(&packet(0, MTU), LONG, &mut random) {
            control.on_hit();
            gaps.push(gap);
            gap = 0;
        }
    }
    assert_eq!(gaps.iter().min(), Some(&109));
    assert!(gaps.iter().all(|gap| *gap <= 1088));
    // 108 packets are safe, then each falls with p: 108 + 128 on average, and 2000 gaps scatter by 2.9.
    let mean = f64::from(gaps.iter().sum::<i32>()) / 2000.0;
    assert!((mean - 236.0).abs() < 12.0, "{mean}");
}

#[test]
fn without_derandomisation_each_packet_is_dropped_with_the_probability() {
    let plain = Settings {
        derandomize: false,
        ..settings()
    };
    let mut control = control(plain, 0.25, 100, 100);
    let mut random = CONTEXT.random();
    let hits = (0..10_000)
        .filter(|_| control.hits(&packet(0, MTU), LONG, &mut random))
        .count();
    assert!((2325..=2675).contains(&hits), "{hits}"); // 2500 ± 4 standard deviations
}

#[test]
fn an_overdue_drop_takes_no_random_number() {
    let mut control = control(settings(), 1.0 / 128.0, 100, 100);
    let mut unlucky = rand_core::block::BlockRng64::<Ones>::new(Ones);
    let first = (1..9999).find(|_| control.hits(&packet(0, MTU), LONG, &mut unlucky));
    assert_eq!(first, Some(1088));
}

/// Draw just below 1, always.
struct Ones;

impl rand_core::block::BlockRngCore for Ones {
    type Item = u64;
    type Results = [u64; 1];
    fn generate(&mut self, results: &mut [u64; 1]) {
        *results = [u64::MAX];
    }
}

#[test]
fn in_byte_mode_a_small_packet_counts_for_its_share() {
    let by_bytes = Settings {
        bytemode: true,
        ..settings()
    };
    let mut unlucky = rand_core::block::BlockRng64::<Ones>::new(Ones);
    let mut control = control(by_bytes, 1.0 / 128.0, 100, 100);
    let half = packet(0, MTU / 2);
    let first = (1..9999).find(|_| control.hits(&half, LONG, &mut unlucky));
    assert_eq!(first, Some(2176));
}

#[test]
fn the_departure_rate_is_measured_over_sixteen_kilobytes() {
    let estimating = Settings {
        dq_rate_estimator: true,
        ..settings()
    };
    let mut control = Control::new(estimating).with_probability(0.5);
    // 11 packets of 1514 B are the first to exceed 16384 B: 16654 B in 10 ms.
    for number in 0..11 {
        control.update(LONG);
        let expected = 0.5 - 0.125 * 0.015 * f64::from(number + 1);
        assert_close(control.probability(), expected);
        control.on_departure(&packet(0, MTU), ms(1000 + number as u64), LONG);
    }
    let mut control = control.with_probability(0.5);
    control.update(16_654);
    // The delay is 10 ms after 0: 0.125 × (10 − 15) ms + 1.25 × 10 ms
    assert_close(control.probability(), 0.5 - 0.000_625 + 0.0125);
    // The next stretch passes in 5 ms: 1665400 + (3330800 − 1665400) / 8 B/s.
    for number in 0..11 {
        let now = Time::from_microseconds(1_010_000 + (number + 1) * 5_000 / 11 + 1);
        let now = if number == 10 { ms(1015) } else { now };
        control.on_departure(&packet(0, MTU), now, LONG);
    }
    let mut control = control.with_probability(0.5);
    control.update(18_736); // 10.0001 ms at 1873575 B/s
    let delay_s = 18_736.0 / 1_873_575.0;
    let expected = 0.5 + 0.125 * (delay_s - 0.015) + 1.25 * (delay_s - 0.01);
    assert_close(control.probability(), expected);
}

#[test]
fn updates_are_in_the_phase_that_they_have_in_a_guest() {
    // Set up two seconds before, first updated 510 ms later: 1490 ms are 99 updates and 5 ms, or 49 and 20 ms.
    let first = |tupdate_s: f64| pie(&json!({ "tupdate_s": tupdate_s })).updates.next();
    assert_eq!(first(0.015), ms(10));
    assert_eq!(first(0.03), ms(10));
    assert_eq!(first(0.07), ms(50));
    assert_eq!(first(5.0), ms(3510));
}

#[test]
fn nothing_is_dropped_before_the_first_update_but_for_the_limit() {
    let slow = json!({ "max_burst_s": 0.0, "limit_packets": 5000, "tupdate_s": 1.98 });
    let mut queue = pie(&slow);
    assert_eq!(queue.updates.next(), ms(490));
    let mut drops = Drops::default();
    for step in 0..490 {
        for _ in 0..5 {
            let arriving = packet(step, MTU).entering(ms(step));
            queue.enqueue(arriving, ms(step), &mut drops);
        }
        queue.dequeue(ms(step), &mut drops);
    }
    assert!(drops.is_empty());
    let mut small = pie(&json!({ "limit_packets": 2 }));
    for sequence in 0..3 {
        small.enqueue(packet(sequence, MTU), Time::ZERO, &mut drops);
    }
    assert_eq!(drops.drain().map(|packet| packet.sequence).last(), Some(2));
}

/// Offer two packets for each that leaves, a millisecond apart; returns packets marked and dropped by time.
fn overload(changes: &Value, seconds: u64) -> (Vec<Time>, Vec<Time>) {
    let mut queue = pie(changes);
    let mut drops = Drops::default();
    let (mut marked, mut dropped) = (Vec::new(), Vec::new());
    for step in 0..1000 * seconds {
        for _ in 0..2 {
            let capable = Packet {
                flags: Flags::of(Ecn::Ect0),
                ..packet(step, MTU)
            };
            queue.enqueue(capable.entering(ms(step)), ms(step), &mut drops);
        }
        queue.dequeue(ms(step), &mut drops);
        marked.extend(drops.drain_marked().map(|_| ms(step)));
        dropped.extend(drops.drain().map(|_| ms(step)));
    }
    (marked, dropped)
}

#[test]
fn packets_are_marked_up_to_ten_percent_and_dropped_above() {
    let (marked, dropped) = overload(&json!({ "ecn": true, "limit_packets": 100_000 }), 20);
    let (last_mark, first_drop) = (marked.last(), dropped.first());
    assert!(!marked.is_empty() && dropped.len() > 1000);
    assert!(last_mark < first_drop, "{last_mark:?} {first_drop:?}");
    let (none, all) = overload(&json!({ "ecn": false, "limit_packets": 100_000 }), 20);
    assert!(none.is_empty() && all.first() < dropped.first());
}

#[test]
fn an_overload_of_twice_the_rate_drops_half_of_the_packets() {
    let (_, dropped) = overload(&json!({}), 60);
    let late = dropped.iter().filter(|time| **time >= ms(40_000)).count();
    assert!((19_000..21_000).contains(&late), "{late}"); // of 40000 in 20 s
}

#[test]
fn missed_updates_are_applied() {
    let mut missed = pie(&json!({}));
    missed.control = control(settings(), 0.5, 0, 0);
    missed.catch_up(ms(1_000_000));
    assert_close(missed.control.probability(), 0.0);
    assert_eq!(missed.updates.next(), ms(10 + 15 * 66_667));
    let mut two = pie(&json!({}));
    two.control = control(settings(), 0.5, 0, 0);
    two.catch_up(ms(25));
    let once = (0.5 - 0.001_875) * 63.0 / 64.0;
    assert_close(two.control.probability(), (once - 0.001_875) * 63.0 / 64.0);
}

#[test]
fn wrong_parameters_are_rejected() {
    for changes in [
        json!({ "limit_packets": 0 }),
        json!({ "target_s": 0.0 }),
        json!({ "tupdate_s": 0.0 }),
        json!({ "alpha": -1.0 }),
        json!({ "beta": 33.0 }),
        json!({ "ecn_threshold": 1.5 }),
        json!({ "mtu_bytes": 0 }),
        json!({ "ecn": null }),
        json!({ "quantum_bytes": 1514 }),
    ] {
        assert!(make(&changed(&changes), &CONTEXT).is_err(), "{changes}");
    }
}
