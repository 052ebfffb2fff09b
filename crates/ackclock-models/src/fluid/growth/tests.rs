use serde_json::json;

use super::*;

fn law(name: &str) -> Box<dyn Growth> {
    let parameters = json!({
        "a": 0.01, "b": 0.125, "c": 0.4, "beta": if name == "vegas" { 4.0 } else { 0.7 },
        "fast_convergence": true, "reno_friendly": true, "reno_catch_up": false, "slow_start": "hystart",
        "adaptive_backoff": true, "bandwidth_switch": true, "rtt_scaling": false,
        "alpha": if name == "fast" { 20.0 } else { 2.0 }, "gamma": 0.5,
        "max_increment": 16.0, "low_window": 14.0, "smooth_part": 20.0, "ack_ratio": false,
    });
    make(name, &parameters).expect("a law")
}

fn at(window_p: f64, rtt_s: f64) -> Moment {
    Moment {
        now_s: 0.0,
        window_p,
        rtt_s,
        base_rtt_s: 0.1,
    }
}

fn at_time(now_s: f64, window_p: f64) -> Moment {
    Moment {
        now_s,
        ..at(window_p, 0.1)
    }
}

/// The window after `duration_s` in small steps.
fn grown(law: &mut dyn Growth, from_s: f64, mut window_p: f64, rtt_s: f64, duration_s: f64) -> f64 {
    let step_s = rtt_s / 20.0;
    let count = (duration_s / step_s).round() as u32;
    for step in 0..count {
        let moment = |now_s, window_p| Moment {
            now_s,
            window_p,
            rtt_s,
            base_rtt_s: rtt_s,
        };
        let now_s = from_s + f64::from(step) * step_s;
        let first = law.increase(&moment(now_s, window_p)) / rtt_s;
        let second = law.increase(&moment(now_s + step_s, window_p + step_s * first)) / rtt_s;
        window_p += step_s / 2.0 * (first + second);
        law.observe(&moment(now_s + step_s, window_p), step_s);
    }
    window_p
}

#[test]
fn every_law_has_its_name_and_unknown_names_are_rejected() {
    for (name, _) in LAWS {
        law(name);
    }
    assert!(make("bbr", &json!({}))
        .err()
        .is_some_and(|text| text.contains("bbr")));
    let missing = make("cubic", &json!({})).err();
    assert!(missing.is_some_and(|text| text.starts_with("cubic: ")));
}

/// RFC 3649 appendix B: rows of the table, which rounds.
#[test]
fn highspeed_has_the_rows_of_the_rfc() {
    let rows = [
        (38.0, 1.0, 0.50),
        (118.0, 2.0, 0.44),
        (1058.0, 8.0, 0.33),
        (5036.0, 20.0, 0.25),
        (84_035.0, 71.0, 0.10),
    ];
    for (window_p, a, b) in rows {
        let law = law("highspeed");
        let found = law.increase(&at(window_p, 0.1));
        assert!((found - a).abs() < 0.02 * a, "a({window_p}) = {found}");
        let found = law.share_removed(&at(window_p, 0.1));
        assert!((found - b).abs() <= 0.005, "b({window_p}) = {found}");
    }
}

#[test]
fn reno_and_scalable_grow_and_reduce_as_in_their_papers() {
    let reno = law("reno");
    assert_eq!(reno.increase(&at(500.0, 0.1)), 1.0);
    assert_eq!(reno.share_removed(&at(500.0, 0.1)), 0.5);
    let scalable = law("scalable");
    assert_eq!(scalable.increase(&at(5000.0, 0.1)), 50.0);
    assert_eq!(scalable.increase(&at(50.0, 0.1)), 1.0);
    assert_eq!(scalable.share_removed(&at(500.0, 0.1)), 0.125);
}

/// RFC 9438 figures 1 and 2: W_max again after K = ∛(W_max (1 − β)/c), and as much beyond after 2 K.
#[test]
fn cubic_follows_its_curve() {
    let mut cubic = law("cubic");
    cubic.lose(&at_time(5.0, 1000.0), 700.0);
    let k_s = (1000.0_f64 * 0.3 / 0.4).cbrt();
    let there = grown(&mut *cubic, 5.0, 700.0, 0.1, k_s);
    assert!((there - 1000.0).abs() < 0.5, "{there}");
    let twice = grown(&mut *cubic, 5.0 + k_s, there, 0.1, k_s);
    assert!((twice - 1300.0).abs() < 2.0, "{twice}");
}

/// RFC 9438 section 4.3: α = 3 (1 − β)/(1 + β) packets in a round trip, where that is more than the curve.
#[test]
fn cubic_is_never_slower_than_reno_in_its_place() {
    let mut cubic = law("cubic");
    cubic.lose(&at_time(0.0, 100.0), 70.0);
    let later = grown(&mut *cubic, 0.0, 70.0, 0.005, 1.0);
    let alpha = 3.0 * 0.3 / 1.7;
    assert!((later - (70.0 + alpha * 200.0)).abs() < 0.5, "{later}");
}

/// RFC 9438 section 4.7: a loss below the last W_max aims at W (1 + β)/2.
#[test]
fn cubic_makes_room_for_newcomers() {
    let rise_s = |first: f64| {
        let mut cubic = law("cubic");
        cubic.lose(&at_time(0.0, first), 0.7 * first);
        cubic.lose(&at_time(1.0, 1000.0), 700.0);
        (0..4000)
            .map(|step| f64::from(step) * 0.01)
            .find(|since_s| cubic.increase(&at_time(1.0 + since_s - 0.1, 849.0)) >= 1.0)
    };
    // 850 is reached with a flat curve if that is what is aimed at, steeply if it is 1000.
    let (room, none) = (rise_s(1200.0), rise_s(800.0));
    let expected = |aim: f64| ((aim - 700.0) / 0.4_f64).cbrt() + ((850.0 - aim) / 0.4).cbrt();
    assert!(
        (room.expect("reached") - expected(850.0)).abs() < 0.02,
        "{room:?}"
    );
    assert!(
        (none.expect("reached") - expected(1000.0)).abs() < 0.02,
        "{none:?}"
    );
}

/// HyStart: an eighth of the RTT more, within 4 and 16 ms.
#[test]
fn cubic_leaves_slow_start_when_the_delay_rises() {
    let cubic = law("cubic");
    assert!(!cubic.leaves_slow_start(&at(100.0, 0.112)));
    assert!(cubic.leaves_slow_start(&at(100.0, 0.113)));
    let long = Moment {
        base_rtt_s: 0.4,
        ..at(100.0, 0.4165)
    };
    assert!(cubic.leaves_slow_start(&long));
}

/// PFLDnet 2004: α(Δ) = 1 + 10 (Δ − 1) + ((Δ − 1)/2)², and 2 b times that; b = 1 − R_min/R_max.
#[test]
fn htcp_grows_with_the_time_since_the_loss() {
    let mut htcp = law("htcp");
    htcp.lose(&at_time(2.0, 100.0), 50.0);
    htcp.observe(
        &Moment {
            rtt_s: 0.15,
            ..at_time(3.0, 100.0)
        },
        0.01,
    );
    let loss = Moment {
        rtt_s: 0.1,
        ..at_time(4.0, 100.0)
    };
    assert!((htcp.share_removed(&loss) - 1.0 / 3.0).abs() < 1e-12);
    htcp.lose(&loss, 66.7);
    assert!((htcp.increase(&at_time(4.9, 80.0)) - 2.0 / 3.0).abs() < 1e-12);
    assert!((htcp.increase(&at_time(6.0, 80.0)) - 2.0 / 3.0 * 11.25).abs() < 1e-12);
    assert_eq!(
        htcp.share_removed(&at_time(6.0, 130.0)),
        0.5,
        "throughput 30 % up"
    );
    assert_eq!(
        htcp.share_removed(&at_time(6.0, 110.0)),
        0.2,
        "no queue: the least"
    );
}

/// Wei et al. 2006: no growth with alpha packets waiting, W at most doubles, and with more it shrinks.
#[test]
fn fast_keeps_alpha_packets_waiting() {
    let fast = law("fast");
    let waiting = |packets: f64| at(1000.0, 0.1 / (1.0 - packets / 1000.0));
    assert!(fast.increase(&waiting(20.0)).abs() < 1e-9);
    assert!((fast.increase(&waiting(30.0)) + 5.0).abs() < 1e-9);
    assert!((fast.increase(&at(1000.0, 0.1)) - 10.0).abs() < 1e-9);
    assert_eq!(fast.increase(&at(4.0, 0.1)), 4.0);
}

#[test]
fn vegas_keeps_between_alpha_and_beta_waiting() {
    let vegas = law("vegas");
    let waiting = |packets: f64| at(100.0, 0.1 * (1.0 + packets / 100.0));
    assert_eq!(vegas.increase(&waiting(1.9)), 1.0);
    assert_eq!(vegas.increase(&waiting(3.0)), 0.0);
    assert_eq!(vegas.increase(&waiting(4.1)), -1.0);
    assert!(!vegas.leaves_slow_start(&waiting(0.4)));
    assert!(vegas.leaves_slow_start(&waiting(0.6)));
}

/// Far below the maximum 16 packets, then a quarter of the distance, 1/5 at the plateau, a third beyond.
#[test]
fn bic_searches() {
    let mut bic = law("bic");
    bic.lose(&at(1000.0, 0.1), 700.0);
    let increase = |window_p: f64| bic.increase(&at(window_p, 0.1));
    assert_eq!(increase(900.0), 16.0);
    assert_eq!(increase(960.0), 10.0);
    assert_eq!(increase(999.0), 0.2);
    assert_eq!(increase(1003.0), 0.2);
    assert_eq!(increase(1030.0), 10.0);
    assert_eq!(increase(1100.0), 16.0);
    assert_eq!(increase(14.0), 1.0);
    assert!((bic.share_removed(&at(900.0, 0.1)) - 0.3).abs() < 1e-12);
}
