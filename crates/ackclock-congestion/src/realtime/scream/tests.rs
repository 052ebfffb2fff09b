//! The draft's equations by hand. Packets have 1240 bytes, VIRTUAL_RTT is 25 ms.

use serde_json::json;

use super::super::contract::{defaults, lost, report, source};
use super::super::PacketReport;
use super::queue_delay::Levels;
use super::*;

const fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

fn parameters() -> Parameters {
    Parameters::deserialize(defaults("scream")).expect("the defaults")
}

fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
        "found {found}, expected {expected}"
    );
}

/// A window of 40 packets that has just been increased, with room in flight.
fn window(l4s: bool) -> ReferenceWindow {
    let source = MediaSource { l4s, ..source() };
    let mut window = ReferenceWindow::new(&parameters(), &source);
    window.begin(49_600.0);
    window.on_sent(100_000.0);
    window
}

const CALM: Levels = Levels {
    qdelay: 0.0,
    qdelay_avg: 0.0,
    qdelay_target: 0.06,
    ref_wnd_delay_scale: 1.0,
};

fn state(now: Time, s_rtt: f64, delay: Levels) -> Congestion {
    Congestion {
        now,
        s_rtt,
        l4s_alpha: 0.2,
        delay,
    }
}

fn delivered(packets: u32, marked: u32, lost: u32) -> Delivered {
    Delivered {
        bytes: u64::from(1240 * packets),
        marked_bytes: u64::from(1240 * marked),
        arrived: packets - lost,
        marked,
        lost,
    }
}

/// ref_wnd · BETA_LOSS, BETA_ECN, and 1 − alpha/2 over s_rtt / VIRTUAL_RTT = 2: 0.7, 0.8, 0.95.
#[test]
fn losses_and_marks_reduce_the_window_by_their_factors() {
    for (l4s, marked, lost, factor) in [
        (false, 0, 1, 0.7),
        (true, 0, 1, 0.7),
        (false, 1, 0, 0.8),
        (true, 1, 0, 0.95),
        (true, 1, 1, 0.7),
    ] {
        let mut window = window(l4s);
        // The increase comes an s_rtt after the last; here none is due.
        window.update(&delivered(0, 0, 0), &state(ms(1000), 0.05, CALM), true);
        window.on_sent(100_000.0);
        window.update(
            &delivered(2, marked, lost),
            &state(ms(1030), 0.05, CALM),
            true,
        );
        near(window.ref_wnd(), factor * 49_600.0);
        near(window.ref_wnd_i(), 49_600.0);
    }
}

/// At half way from target/2 to the target l4s_alpha_v is 0.5; s_rtt = 25 ms: 1 − 0.5/2.
#[test]
fn a_queueing_delay_acts_as_a_virtual_mark_in_each_virtual_rtt() {
    let delay = Levels {
        qdelay: 0.045,
        qdelay_avg: 0.045,
        ..CALM
    };
    let mut window = window(true);
    window.update(&delivered(1, 0, 0), &state(ms(10), 0.025, delay), true);
    near(window.ref_wnd(), 0.75 * 49_600.0);
    window.update(&delivered(1, 0, 0), &state(ms(30), 0.025, delay), true);
    near(window.ref_wnd(), 0.75 * 49_600.0);
    window.update(&delivered(1, 0, 0), &state(ms(35), 0.025, delay), true);
    near(window.ref_wnd(), 0.75 * 0.75 * 49_600.0);
    // At or below half of the target nothing happens.
    let half = Levels {
        qdelay_avg: 0.03,
        ..delay
    };
    window.update(&delivered(1, 0, 0), &state(ms(90), 0.025, half), true);
    near(window.ref_wnd(), 0.75 * 0.75 * 49_600.0);
}

/// 40 packets in a round trip of 50 ms: MSS, and with MUL_INCREASE_FACTOR · 40 = 0.8 more.
#[test]
fn the_window_grows_by_a_packet_and_multiplicatively_without_congestion() {
    let mut window = window(true);
    window.update(&delivered(40, 0, 0), &state(ms(100), 0.05, CALM), false);
    near(window.ref_wnd(), 49_600.0 + 1240.0 * 1.8);
}

/// With a virtual RTT of 25 ms and an RTT of 5 ms, a fifth.
#[test]
fn short_rtts_grow_as_the_virtual_one() {
    let mut window = window(true);
    window.update(&delivered(40, 0, 0), &state(ms(100), 0.005, CALM), false);
    near(window.ref_wnd(), 49_600.0 + 1240.0 * 1.8 / 5.0);
}

/// After a reaction the window is at ref_wnd_i · 0.95: scl = (8 · 0.05)² = 0.16, and at least a quarter of MSS.
/// 50 ms after the congestion, post_congestion_scale is 0.05 / (100 · 0.05) = 0.01.
#[test]
fn growth_is_slow_close_to_the_last_largest_window_and_after_congestion() {
    let mut window = window(true);
    window.update(&delivered(0, 0, 0), &state(ms(1000), 0.05, CALM), true);
    window.on_sent(100_000.0);
    window.update(&delivered(1, 1, 0), &state(ms(1030), 0.05, CALM), true);
    let reduced = window.ref_wnd();
    window.update(&delivered(38, 0, 0), &state(ms(1080), 0.05, CALM), false);
    let scl = 0.16;
    let multiplicative = 1.0 + 0.02 * reduced / 1240.0 * 0.01 * scl;
    near(
        window.ref_wnd() - reduced,
        38.0 * 1240.0 * 1240.0 / reduced * 0.25 * multiplicative,
    );
}

#[test]
fn the_window_does_not_grow_far_above_what_is_in_flight_nor_at_the_highest_rate() {
    let source = source();
    let mut window = ReferenceWindow::new(&parameters(), &source);
    window.begin(49_600.0);
    window.on_sent(30_000.0);
    // MSS + 1.5 · 30,000 = 46,240.
    window.update(&delivered(40, 0, 0), &state(ms(100), 0.05, CALM), false);
    near(window.ref_wnd(), 49_600.0);
    window.on_sent(40_000.0);
    window.update(&delivered(40, 0, 0), &state(ms(200), 0.05, CALM), true);
    near(window.ref_wnd(), 49_600.0);
    window.on_sent(40_000.0);
    window.update(&delivered(40, 0, 0), &state(ms(300), 0.05, CALM), false);
    assert!(window.ref_wnd() > 49_600.0);
}

/// Two marks in a round trip of W packets are the equilibrium far from ref_wnd_i: alpha/2 · W = 1 at alpha = 2/W.
#[test]
fn two_marks_in_a_round_trip_balance_the_growth_of_a_packet() {
    let p = parameters();
    let (mut window, w) = (window(true), 40.0);
    let before = window.ref_wnd();
    let balanced = Congestion {
        l4s_alpha: 2.0 / w,
        ..state(ms(100), 0.025, CALM)
    };
    window.update(&delivered(40, 2, 0), &balanced, false);
    // The reduction first, then 38 unmarked packets, without the multiplicative part right after congestion.
    let reduced = before * (1.0 - 1.0 / w);
    near(window.ref_wnd(), reduced + 38.0 * 1240.0 * 1240.0 / reduced);
    assert!((window.ref_wnd() / before - 1.0).abs() < 0.002 && p.virtual_rtt_s >= 0.025);
}

/// Fast attack: 1/8 of the difference; slow decay: 127/128, whatever the fraction is.
#[test]
fn the_marked_share_rises_fast_and_falls_slowly() {
    let (p, mut marks) = (parameters(), MarkedShare::default());
    marks.update(&p, &delivered(10, 4, 0), 0.05, ms(10));
    near(marks.l4s_alpha, 0.4 / 8.0);
    marks.update(&p, &delivered(5, 0, 0), 0.05, ms(15));
    near(marks.l4s_alpha, 0.05);
    marks.update(&p, &delivered(5, 0, 0), 0.05, ms(20));
    near(marks.l4s_alpha, 0.05 * 127.0 / 128.0);
}

#[test]
fn the_average_delay_rises_slowly_and_falls_immediately() {
    let mut delay = QueueDelay::new(&parameters());
    delay.update(Some(ms(50)), false, 0.05, ms(100));
    delay.update(Some(ms(90)), false, 0.05, ms(130));
    near(delay.levels().qdelay, 0.04);
    near(delay.levels().qdelay_avg, 0.01);
    // Within VIRTUAL_RTT nothing is averaged.
    delay.update(Some(ms(90)), false, 0.05, ms(140));
    near(delay.levels().qdelay_avg, 0.01);
    delay.update(Some(ms(55)), false, 0.05, ms(160));
    near(delay.levels().qdelay_avg, 0.005);
    near(delay.ref_wnd_delay_scale(), 1.0);
}

/// A steady queue of 180 ms, three times the lowest target: the target goes there, and with losses to one and a half.
#[test]
fn a_steady_queue_of_others_raises_the_target_up_to_its_limit() {
    let steady = |has_loss: bool, delay_ms: u64| {
        let mut delay = QueueDelay::new(&parameters());
        delay.update(Some(ms(50)), false, 0.05, ms(0));
        for n in 1..=600 {
            delay.update(Some(ms(50 + delay_ms)), has_loss, 0.05, ms(50 * n));
        }
        delay.levels().qdelay_target
    };
    near(steady(false, 0), 0.06);
    near(steady(false, 180), 0.18);
    near(steady(true, 180), 0.27);
    near(steady(true, 390), 0.4);
    let fixed = Parameters {
        adapt_qdelay_target: false,
        ..parameters()
    };
    let mut delay = QueueDelay::new(&fixed);
    delay.update(Some(ms(50)), false, 0.05, ms(0));
    delay.update(Some(ms(450)), true, 0.05, ms(100));
    near(delay.levels().qdelay_target, 0.06);
}

/// A jitter of 20 ms: max − min settles above the threshold of 10 ms, and the scale at 0.
#[test]
fn varying_delays_scale_growth_down_if_that_is_switched_on() {
    let steered = Parameters {
        reduce_jitter: true,
        ..parameters()
    };
    let scale = |high_ms: u64| {
        let mut delay = QueueDelay::new(&steered);
        for n in 0..2000 {
            let jitter = if n % 2 == 0 { 0 } else { high_ms };
            delay.update(Some(ms(50 + jitter)), false, 0.05, ms(30 * n));
        }
        delay.ref_wnd_delay_scale()
    };
    near(scale(0), 1.0);
    assert!(scale(5) < 1.0 && scale(5) > 0.3, "{}", scale(5));
    near(scale(40), 0.0);
}

fn scream(source: MediaSource) -> Box<dyn RateController> {
    make(&defaults("scream"), source).expect("the defaults")
}

/// Packets of 1000 bytes each 20 ms that take 50 ms, reported with an RTT of 100 ms.
fn feed(scream: &mut Box<dyn RateController>, packets: &[PacketReport], now: Time) {
    scream.on_feedback(&Feedback {
        now,
        rtt: ms(100),
        packets,
    });
}

/// The window of the start rate: 300 kbit/s · 100 ms = 3750 bytes, over f. f = (1 − 0.2) / 1.2 as MSS / ref_wnd is above
/// 0.3 at the smallest window.
#[test]
fn the_first_report_leaves_the_rate_near_the_start() {
    let mut scream = scream(source());
    near(scream.target_rate(0).bits_per_second(), 300e3);
    near(scream.pacing_rate(0).bits_per_second(), 450e3);
    assert_eq!(scream.window_bytes(), Some(9000));
    feed(&mut scream, &[report(0, 0, 50, 1000)], ms(100));
    let variables = scream.variables();
    let value = |name| {
        let found = variables.values.iter().find(|(key, _)| *key == name);
        found.expect("a variable").1
    };
    // 3750 · 1.2 / 0.8 = 5625, and an increase by 1000 · 1240/5625 · (1 + 0.02 · 5625/1240) is not allowed: nothing is
    // in flight.
    near(value("ref_wnd"), 5625.0);
    let factor = (1.0 - (1240.0 / 5625.0 - 0.1)) / 1.2;
    near(value("target_bitrate"), factor * 8.0 * 5625.0 / 0.1);
    assert_eq!(variables.state, "classic");
}

/// At the highest rate the pacer is four times as fast, at 0.8 of it not at all, half way 2 : 1.
#[test]
fn pacing_is_relaxed_near_the_highest_rate() {
    let with_start = |bps| {
        let source = MediaSource {
            start: Rate::from_bits_per_second(bps),
            ..source()
        };
        scream(source).pacing_rate(0).bits_per_second() / bps
    };
    near(with_start(1.2e6), 1.5);
    near(with_start(1.35e6), 3.0);
    near(with_start(1.5e6), 6.0);
}

/// A frame that waits for a whole interval more than a quarter: 1/16. Twice the nominal size: 1/64.
#[test]
fn frames_that_wait_or_are_large_lower_the_target() {
    let mut scream = scream(source());
    feed(&mut scream, &[report(0, 0, 50, 1000)], ms(100));
    let before = scream.target_rate(0).bits_per_second();
    let nominal = before / 30.0 / 8.0;
    scream.on_frame(&QueuedFrame {
        bytes: (2.0 * nominal).round() as u64,
        waited: Time::from_seconds(1.25 / 30.0),
    });
    let after = scream.target_rate(0).bits_per_second();
    let expected = 1.2 / (1.2 + 1.0 / 16.0 + 1.0 / 64.0);
    assert!(
        (after / before - expected).abs() < 1e-5,
        "{before} to {after}"
    );
    for _ in 0..100 {
        scream.on_frame(&QueuedFrame {
            bytes: 1,
            waited: Time::ZERO,
        });
    }
    let values = scream.variables().values;
    let adjust = values
        .iter()
        .find(|(name, _)| *name == "rate_adjust_factor");
    near(adjust.expect("a variable").1, 0.0);
}

#[test]
fn lost_packets_count_as_acknowledged_bytes_and_reduce_the_window() {
    let packets = [report(0, 0, 50, 1000), lost(1, 20), report(2, 40, 90, 1000)];
    let sum = Delivered::of(&packets);
    assert_eq!((sum.bytes, sum.arrived, sum.lost), (2500, 2, 1));
}

#[test]
fn contradictory_parameters_are_rejected() {
    for (name, value) in [
        ("qdelay_target_lo_s", json!(0.5)),
        ("ref_wnd_overhead_min", json!(4.0)),
        ("virtual_rtt_s", json!(0.0)),
        ("beta_loss", json!(0.0)),
        ("relaxed_pacing_limit_low", json!(1.0)),
    ] {
        let mut given = defaults("scream");
        given[name] = value;
        assert!(make(&given, source()).is_err(), "{name}");
    }
}
