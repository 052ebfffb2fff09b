#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, LOSS};
use super::*;
use serde_json::json;

const MARK: Loss = Loss {
    marked: true,
    ..LOSS
};

fn parameters(shift_g: u32, initial_alpha: f64) -> Value {
    json!({ "shift_g": shift_g, "initial_alpha": initial_alpha, "clamp_alpha_on_loss": false })
}

fn dctcp(initial_alpha: f64, window: f64) -> Dctcp {
    Dctcp::new(&parameters(4, initial_alpha), window).expect("the card's parameters")
}

/// An observation window of `delivered` segments, `marked` of them marked, in one ACK.
fn observe(dctcp: &mut Dctcp, delivered: u32, marked: u32) {
    let end = dctcp.window_end;
    dctcp.on_ecn_feedback(&EcnFeedback {
        delivered,
        marked,
        next: end + u64::from(delivered),
        unacknowledged: end,
    });
}

#[test]
fn alpha_is_a_moving_average_in_1024ths() {
    // g = 1/16. By hand: 1024 − 64; 960 − 60 + 64 × 5/10; 932 − 58 + 64.
    let mut dctcp = dctcp(1.0, 10.0);
    observe(&mut dctcp, 10, 0);
    assert_eq!(dctcp.alpha, 960);
    observe(&mut dctcp, 10, 5);
    assert_eq!(dctcp.alpha, 932);
    observe(&mut dctcp, 10, 10);
    assert_eq!(dctcp.alpha, 938);
    // 64 × 1/3 is 21 whole units.
    observe(&mut dctcp, 3, 1);
    assert_eq!(dctcp.alpha, 938 - 58 + 21);
}

#[test]
fn alpha_follows_the_rfcs_equation_within_the_rounding() {
    // Each window cuts off less than a unit at the decay and one at the addition: 2/g units at most in all.
    let mut dctcp = dctcp(1.0, 10.0);
    let mut exact = 1.0_f64;
    for round in 0..500_u32 {
        let marked = round * 7 % 41;
        observe(&mut dctcp, 40, marked.min(40));
        exact = exact * (1.0 - 1.0 / 16.0) + f64::from(marked.min(40)) / 40.0 / 16.0;
        let difference = f64::from(dctcp.alpha) / 1024.0 - exact;
        assert!(difference.abs() < 32.0 / 1024.0, "{round}: {difference}");
    }
}

#[test]
fn all_marked_keeps_alpha_at_one_and_an_end_of_marks_lets_it_vanish() {
    let mut dctcp = dctcp(1.0, 10.0);
    for _ in 0..10 {
        observe(&mut dctcp, 10, 10);
        assert_eq!(dctcp.alpha, 1024);
    }
    for _ in 0..200 {
        observe(&mut dctcp, 10, 0);
    }
    assert_eq!(dctcp.alpha, 0, "what is below 16 units goes at once");
}

#[test]
fn the_marked_fraction_is_measured_per_window() {
    let mut dctcp = dctcp(0.0, 10.0);
    let mut feedback = EcnFeedback {
        delivered: 1,
        marked: 0,
        next: 10,
        unacknowledged: 0,
    };
    dctcp.on_ecn_feedback(&feedback); // the first ACK begins a window that ends at 10
    for acknowledged in 1..10 {
        feedback = EcnFeedback {
            marked: u32::from(acknowledged <= 4),
            next: 10 + acknowledged,
            unacknowledged: acknowledged,
            ..feedback
        };
        dctcp.on_ecn_feedback(&feedback);
        assert_eq!(dctcp.alpha, 0);
    }
    dctcp.on_ecn_feedback(&EcnFeedback {
        marked: 0,
        next: 20,
        unacknowledged: 10,
        ..feedback
    });
    assert_eq!(dctcp.alpha, 64 * 4 / 10);
    assert_eq!(dctcp.window_end, 20);
}

#[test]
fn marks_take_half_of_alpha() {
    for (alpha, left) in [(1.0, 50.0), (0.5, 75.0), (0.1, 96.0), (0.0, 100.0)] {
        // 0.1 is 102 units: 100 × 102/2048 is 4 whole segments.
        let mut dctcp = dctcp(alpha, 100.0);
        dctcp.on_loss(&MARK);
        assert_eq!((dctcp.cwnd(), dctcp.ssthresh()), (left, left), "{alpha}");
    }
}

#[test]
fn a_loss_halves_whatever_alpha_is() {
    // RFC 8257 section 3.5.
    let mut dctcp = dctcp(0.1, 100.0);
    dctcp.on_loss(&LOSS);
    assert_eq!((dctcp.cwnd(), dctcp.ssthresh()), (50.0, 50.0));
}

#[test]
fn a_loss_during_the_reaction_halves_the_flight() {
    let mut dctcp = dctcp(0.1, 100.0);
    dctcp.on_loss(&MARK);
    dctcp.on_loss_after_mark(&Loss {
        in_flight: 98,
        ..LOSS
    });
    assert_eq!((dctcp.cwnd(), dctcp.ssthresh()), (49.0, 49.0));
}

#[test]
fn a_timeout_halves_the_threshold_and_may_clamp_alpha() {
    let mut plain = dctcp(0.25, 100.0);
    plain.on_timeout(Time::ZERO, 100);
    assert_eq!((plain.cwnd(), plain.ssthresh()), (1.0, 50.0));
    assert_eq!(plain.alpha, 256);
    let mut clamping = plain;
    clamping.parameters.clamp_alpha_on_loss = true;
    clamping.on_timeout(Time::ZERO, 1);
    assert_eq!(clamping.alpha, 1024);
}

#[test]
fn it_grows_as_reno_does() {
    let mut dctcp = dctcp(1.0, 10.0);
    dctcp.on_ack(&ack(Time::ZERO, 10));
    assert_eq!(dctcp.cwnd(), 20.0, "slow start");
    dctcp.on_loss(&MARK);
    dctcp.on_ack(&recovering(Time::ZERO, 5));
    assert_eq!(dctcp.cwnd(), 10.0, "not in the reaction");
    for expected in [11.0, 12.0] {
        let window = dctcp.cwnd() as u32;
        dctcp.on_ack(&ack(Time::ZERO, window));
        assert_eq!(dctcp.cwnd(), expected);
    }
}

#[test]
fn g_is_a_power_of_two() {
    // g = 1 forgets all but the last window; g = 1/1024 changes by a unit.
    for (shift_g, expected) in [(0, 512), (10, 1023)] {
        let parameters = parameters(shift_g, 1.0);
        let mut dctcp = Dctcp::new(&parameters, 10.0).expect("within bounds");
        observe(&mut dctcp, 10, 5);
        assert_eq!(dctcp.alpha, expected, "2^-{shift_g}");
    }
}

#[test]
fn other_parameters_are_rejected() {
    for refused in [
        parameters(11, 1.0),
        parameters(4, 1.5),
        parameters(4, -0.1),
        json!({ "shift_g": 4, "initial_alpha": 1.0 }),
    ] {
        assert!(make(&refused, 10.0).is_err(), "{refused}");
    }
}
