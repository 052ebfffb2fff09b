//! Vegas, FAST and LEDBAT: how much they let wait.

use ackclock_plan::CongestionPlan;
use serde_json::json;

use super::runs::{control, Bottleneck};
use crate::kit::reno;

/// 100 packets fit on the path; no buffer is too small for what these controls keep.
const LONG: Bottleneck = Bottleneck {
    packets_per_s: 1000.0,
    rtt_ms: 100,
    limit_packets: 300,
};

fn vegas(alpha: u32, beta: u32) -> CongestionPlan {
    control("vegas", json!({ "alpha": alpha, "beta": beta, "gamma": 1 }))
}

fn fast(alpha: f64) -> CongestionPlan {
    control("fast", json!({ "alpha": alpha, "gamma": 0.5 }))
}

fn ledbat(target_s: f64) -> CongestionPlan {
    control(
        "ledbat",
        json!({
            "target_s": target_s, "gain": 1.0, "allowed_increase": 1.0, "base_history": 10,
            "current_filter": 4, "min_window": 2,
        }),
    )
}

#[test]
fn vegas_keeps_alpha_to_beta_packets_in_the_queue() {
    for (alpha, beta) in [(2, 4), (10, 12), (30, 40)] {
        let run = LONG.run(&[vegas(alpha, beta)], 60, 90);
        // Its estimate is in whole packets, and RTT/BaseRTT times the queue.
        let range = f64::from(alpha) / 1.4 - 1.0..=f64::from(beta) + 1.5;
        assert!(range.contains(&run.backlog()), "{}", run.backlog());
        let windows = run.windows();
        let moved = windows
            .iter()
            .any(|window| (window - windows[0]).abs() > 1.0);
        assert!(!moved, "it stays where it is");
    }
}

#[test]
fn fast_keeps_alpha_packets_in_the_queue() {
    for alpha in [5.0, 20.0, 100.0] {
        let run = LONG.run(&[fast(alpha)], 60, 90);
        assert!(
            (run.backlog() - alpha).abs() < 1.5,
            "{alpha}: {}",
            run.backlog()
        );
    }
}

#[test]
fn a_single_ledbat_flow_holds_its_target() {
    for target_s in [0.02, 0.05] {
        let run = LONG.run(&[ledbat(target_s)], 150, 200);
        let found_s = run.sojourn().seconds();
        assert!(
            (found_s / target_s - 1.0).abs() < 0.06,
            "{target_s}: {found_s}"
        );
        assert!(run.share(0) > 0.99);
    }
}

#[test]
fn ledbat_yields_to_reno_where_the_buffer_holds_more_than_the_target() {
    let bottleneck = Bottleneck {
        limit_packets: 100,
        ..LONG
    };
    let run = bottleneck.run(&[ledbat(0.025), reno()], 60, 300);
    assert!(run.share(0) < 0.05, "{}", run.share(0));
    let fair = bottleneck.run(&[reno(), reno()], 60, 300);
    assert!((0.3..0.7).contains(&fair.share(0)), "{}", fair.share(0));
}
