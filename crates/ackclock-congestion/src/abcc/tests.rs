use super::super::window::testing::{ack, LOSS};
use super::*;
use serde_json::json;

const MSS_BYTES: u32 = 1000;

fn parameters() -> Value {
    json!({
        "alpha": 4.0,
        "beta": 0.5,
        "gamma": 4.0,
        "groups": 2,
        "group_min": 5,
        "group_max": 5,
        "count_first": false,
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut parameters = parameters();
    parameters[name] = value;
    parameters
}

fn open(parameters: &Value) -> Abcc {
    let mut abcc = Abcc::new(parameters, 10.0).expect("the card's parameters");
    abcc.on_established(&Opening {
        now: Time::ZERO,
        srtt: Time::from_milliseconds(100),
        mss_bytes: MSS_BYTES,
        seed: 7,
    });
    abcc
}

/// A sender in the paced state.
fn paced(rate: f64, least_ms: u64, most_ms: u64, latest_ms: u64) -> Abcc {
    let mut abcc = open(&parameters());
    for rtt in [least_ms, most_ms, latest_ms] {
        abcc.observe_rtt(Time::from_milliseconds(rtt));
    }
    abcc.max_delivered = 1000;
    abcc.state = State::Paced {
        rate,
        round_end: 10,
    };
    abcc
}

fn rate(abcc: &Abcc) -> f64 {
    match abcc.state {
        State::Paced { rate, .. } => rate,
        State::Predicting(_) => 0.0,
    }
}

/// The ACK of segment `number` of a flight of `flight`, at `now`.
fn acked(number: u64, next: u64, now: Time) -> Ack {
    Ack {
        newly_acked_bytes: u64::from(MSS_BYTES),
        unacknowledged: number + 1,
        next,
        ..ack(now, 1)
    }
}

/// An ACK that ends a round trip with this RTT, with `in_flight` segments.
fn round(rtt_ms: u64, in_flight: u32) -> Ack {
    Ack {
        rtt: Some(Time::from_milliseconds(rtt_ms)),
        prior_in_flight: in_flight,
        unacknowledged: 11,
        next: 20,
        ..ack(Time::ZERO, 1)
    }
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found}, expected {expected}"
    );
}

/// One ACK each `gaps_us[k]` after the one before.
fn predict(abcc: &mut Abcc, gaps_us: &[u64]) -> f64 {
    let mut now_us = 0;
    for (number, gap_us) in (0..).zip(gaps_us) {
        now_us += gap_us;
        abcc.on_ack(&acked(number, 1000, Time::from_microseconds(now_us)));
    }
    rate(abcc)
}

#[test]
fn a_group_gives_its_data_over_the_time_from_first_to_last_ack() {
    // (4.1), (4.2): two groups of five a millisecond and two milliseconds apart: 4 kB in 4 ms and in 8 ms. The
    // distance between the groups is five segments as well.
    let mut gaps = vec![1000; 11];
    gaps.extend([2000; 8]);
    let mut abcc = open(&parameters());
    let found = predict(&mut abcc, &gaps);
    assert_near(found, f64::midpoint(1e6, 0.5e6));
}

#[test]
fn counting_the_first_packet_overestimates_by_one_gap() {
    let exact = predict(&mut open(&parameters()), &[1000; 40]);
    let literal = predict(&mut open(&with("count_first", json!(true))), &[1000; 40]);
    assert_near(exact, 1e6);
    assert_near(literal, 1e6 * 5.0 / 4.0);
}

#[test]
fn an_even_spacing_is_measured_for_any_group_sizes() {
    for seed in 0..50 {
        let mut parameters = with("group_min", json!(2));
        parameters["group_max"] = json!(9);
        parameters["groups"] = json!(5);
        let mut abcc = open(&parameters);
        abcc.seed = seed;
        abcc.predict_anew();
        assert_near(predict(&mut abcc, &[1000; 200]), 1e6);
    }
}

#[test]
fn sizes_are_uniform_and_depend_only_on_the_seed() {
    let ends = |seed: u64| {
        let mut parameters = with("group_min", json!(3));
        parameters["group_max"] = json!(6);
        parameters["groups"] = json!(1);
        let mut abcc = open(&parameters);
        abcc.seed = seed;
        abcc.predict_anew();
        let mut acks = 0;
        while rate(&abcc) <= 0.0 {
            abcc.on_ack(&acked(acks, 1000, Time::from_milliseconds(acks)));
            acks += 1;
        }
        acks
    };
    // The ACK that begins the only group is the first.
    let mut seen: Vec<u64> = (0..100).map(ends).collect();
    assert_eq!(seen, (0..100).map(ends).collect::<Vec<_>>());
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [3, 4, 5, 6]);
}

#[test]
fn a_group_lies_within_one_flight() {
    // Flights of four, with silence between them, have no five in a row: a longer one is waited for.
    let mut abcc = open(&with("groups", json!(1)));
    let mut now_us = 0;
    for number in 0..12_u64 {
        now_us += if number % 4 == 0 { 100_000 } else { 1000 };
        let next = (number / 4 + 1) * 4;
        abcc.on_ack(&acked(number, next, Time::from_microseconds(now_us)));
        assert!(rate(&abcc) <= 0.0, "{number}");
    }
    now_us += 100_000;
    for number in 12..17 {
        abcc.on_ack(&acked(number, 100, Time::from_microseconds(now_us)));
        now_us += 1000;
    }
    assert_near(rate(&abcc), 1e6);
}

#[test]
fn slow_start_is_unpaced_until_the_rate_is_measured() {
    let mut abcc = open(&parameters());
    assert!(abcc.requires_pacing());
    for number in 0..9 {
        abcc.on_ack(&acked(number, 1000, Time::from_milliseconds(number)));
    }
    assert_near(abcc.cwnd(), 19.0);
    assert!(abcc.pacing_rate().expect("unpaced").bits_per_second() > 1e15);
    predict(&mut abcc, &[1000; 60]);
    assert_near(
        abcc.pacing_rate().expect("R").bytes_per_second(),
        rate(&abcc),
    );
}

#[test]
fn the_rate_follows_equation_4_3() {
    // RTTmin 100 ms, RTT 110 ms, R = 200 kB/s: 2000 B wait, α is 4000 B.
    // ΔR = (4000 − 2000) × 0.5 / 0.11.
    let mut abcc = paced(200e3, 100, 120, 110);
    abcc.on_ack(&round(110, 22));
    assert_near(rate(&abcc), 200e3 + 1000.0 / 0.11);
    // 8000 B wait: it falls.
    let mut abcc = paced(800e3, 100, 120, 110);
    abcc.on_ack(&round(110, 88));
    assert_near(rate(&abcc), 800e3 - 2000.0 / 0.11);
    // α waits: the equilibrium.
    let mut abcc = paced(400e3, 100, 120, 110);
    abcc.on_ack(&round(110, 44));
    assert_near(rate(&abcc), 400e3);
}

#[test]
fn the_rate_is_updated_per_round_trip() {
    let mut abcc = paced(200e3, 100, 120, 110);
    let early = Ack {
        unacknowledged: 10,
        ..round(110, 22)
    };
    abcc.on_ack(&early);
    assert_near(rate(&abcc), 200e3);
    abcc.on_ack(&round(110, 22));
    let once = rate(&abcc);
    abcc.on_ack(&round(110, 22));
    assert_near(rate(&abcc), once);
}

#[test]
fn from_gamma_on_the_rate_is_not_raised() {
    // 2000 B wait, which is γ.
    let mut abcc = paced(200e3, 100, 120, 110);
    abcc.parameters.gamma = 2.0;
    abcc.on_ack(&round(110, 22));
    assert_near(rate(&abcc), 200e3);
    abcc.parameters.gamma = 2.1;
    abcc.state = State::Paced {
        rate: 200e3,
        round_end: 10,
    };
    abcc.on_ack(&round(110, 22));
    assert!(rate(&abcc) > 200e3);
}

#[test]
fn a_rate_that_is_not_used_is_not_raised() {
    // A round trip's worth is 22 segments.
    let mut abcc = paced(200e3, 100, 120, 110);
    abcc.on_ack(&round(110, 10));
    assert_near(rate(&abcc), 200e3);
}

#[test]
fn a_loss_takes_a_half_at_the_longest_rtt_and_an_eighth_at_the_shortest() {
    for (latest_ms, kept) in [(100, 7.0 / 8.0), (120, 1.0 / 2.0), (110, 11.0 / 16.0)] {
        let mut abcc = paced(400e3, 100, 120, latest_ms);
        abcc.on_loss(&LOSS);
        assert_near(rate(&abcc), 400e3 * kept);
    }
    let mut abcc = paced(400e3, 100, 100, 100);
    abcc.on_loss(&LOSS);
    assert_near(rate(&abcc), 200e3);
}

#[test]
fn a_timeout_and_an_early_loss_restart_the_prediction() {
    let mut abcc = paced(400e3, 100, 120, 110);
    abcc.on_timeout(Time::ZERO, 40);
    assert!(rate(&abcc) <= 0.0);
    assert_near(abcc.cwnd(), 1.0);
    assert_near(abcc.ssthresh(), 20.0);

    let mut abcc = open(&parameters());
    for number in 0..12 {
        abcc.on_ack(&acked(number, 1000, Time::from_milliseconds(number)));
    }
    let window = abcc.cwnd();
    abcc.on_loss(&LOSS);
    assert!(rate(&abcc) <= 0.0);
    assert_near(abcc.cwnd(), (window / 2.0).floor());
    for number in 12..20 {
        abcc.on_ack(&acked(number, 1000, Time::from_milliseconds(number)));
    }
    assert!(
        rate(&abcc) <= 0.0,
        "the groups before the loss are forgotten"
    );
}

#[test]
fn the_window_is_twice_the_equilibrium_flight() {
    // 2 × (400 kB/s × 100 ms + 4 kB).
    assert_near(paced(400e3, 100, 120, 110).cwnd(), 88.0);
    assert_near(paced(0.0, 1, 1, 1).cwnd(), 8.0);
}

#[test]
fn bunched_acks_do_not_open_the_window_without_end() {
    // Ten were in flight; 1 ns between ACKs is a terabyte per second.
    let mut abcc = paced(1e12, 100, 120, 110);
    abcc.max_delivered = 10;
    assert_near(abcc.cwnd(), 160.0);
}

#[test]
fn wrong_parameters_are_rejected() {
    for (name, value) in [
        ("alpha", json!(0.0)),
        ("gamma", json!(-1.0)),
        ("beta", json!(0.0)),
        ("beta", json!(1.5)),
        ("groups", json!(0)),
        ("group_min", json!(1)),
        ("group_max", json!(4)),
        ("delta", json!(2)),
    ] {
        assert!(make(&with(name, value), 10.0).is_err(), "{name}");
    }
}
