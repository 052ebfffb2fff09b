//! LinCubic and AccuCubic besides CUBIC: one flow on 1 Mbit/s and 500 ms with a buffer of 41 packets, as in
//! figures 5.21 and 5.22 of Belhareth's thesis (2014). The path and the buffer hold 82 packets.

use ackclock_core::tables::EventKind;
use ackclock_plan::{CongestionPlan, TcpPlan};
use serde_json::json;

use super::runs::{control, Bottleneck, Run};
use crate::kit::linux;

const CAPACITY: f64 = 82.0;

fn run(control: CongestionPlan) -> Run {
    let bottleneck = Bottleneck {
        packets_per_s: 82.0,
        rtt_ms: 500,
        limit_packets: 41,
    };
    let tcp = TcpPlan {
        pacing: false,
        ..linux()
    };
    bottleneck.run_with(&tcp, &[control], 100, 600)
}

fn cubic(fast_convergence: bool) -> CongestionPlan {
    let mut parameters = accucubic(fast_convergence).parameters;
    parameters["whole_segments"] = json!(true);
    parameters["tick_s"] = json!(0.004);
    control("cubic", parameters)
}

fn lincubic(fast_convergence: bool) -> CongestionPlan {
    let mut parameters = accucubic(fast_convergence).parameters;
    parameters["distance"] = json!(2);
    parameters["tick_s"] = json!(0.004);
    control("lincubic", parameters)
}

fn accucubic(fast_convergence: bool) -> CongestionPlan {
    control(
        "accucubic",
        json!({
            "c": 0.4, "beta": 0.8, "fast_convergence": fast_convergence, "reno_friendly": true,
            "reno_catch_up": false, "slow_start": "standard", "delayed_ack_correction": true,
        }),
    )
}

/// Overshoot of the window above the capacity of path and buffer.
fn overshoot(run: &Run) -> f64 {
    run.windows().into_iter().fold(0.0, f64::max) - CAPACITY
}

/// Packets lost each time.
fn losses_per_epoch(run: &Run) -> f64 {
    run.count(EventKind::Drop) as f64 / run.count(EventKind::Recovery) as f64
}

#[test]
fn lincubic_tracks_the_capacity_with_and_without_fast_convergence() {
    for fast_convergence in [true, false] {
        let run = run(lincubic(fast_convergence));
        assert!(
            (0.0..=3.0).contains(&overshoot(&run)),
            "{}",
            overshoot(&run)
        );
        assert!(losses_per_epoch(&run) <= 2.0);
    }
}

#[test]
fn fast_convergence_makes_cubic_and_accucubic_overshoot() {
    for control in [cubic, accucubic] {
        let (with, without) = (run(control(true)), run(control(false)));
        assert!(overshoot(&with) >= overshoot(&without) + 4.0);
        assert!(losses_per_epoch(&with) >= losses_per_epoch(&without) + 3.0);
    }
}

#[test]
fn accucubic_without_fast_convergence_loses_one_packet_each_time() {
    let run = run(accucubic(false));
    assert!((losses_per_epoch(&run) - 1.0).abs() < 0.05);
    assert!(
        (0.0..=3.0).contains(&overshoot(&run)),
        "{}",
        overshoot(&run)
    );
}
