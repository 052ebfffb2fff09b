//! Compound: more than Reno where there is room, Reno where there is a queue.

use ackclock_plan::CongestionPlan;
use serde_json::json;

use super::runs::{control, Bottleneck};
use crate::kit::reno;

fn compound() -> CongestionPlan {
    control(
        "compound",
        json!({
            "slow_start": "standard",
            "alpha": 0.125, "beta": 0.5, "k": 0.75, "eta": 1.0, "gamma": 30.0, "low_window": 38.0,
        }),
    )
}

/// 1000 packets fit on the path.
fn bottleneck(limit_packets: u32) -> Bottleneck {
    Bottleneck {
        packets_per_s: 10_000.0,
        rtt_ms: 100,
        limit_packets,
    }
}

#[test]
fn a_long_path_with_a_small_buffer_is_filled_sooner_than_by_reno() {
    let goodput = |control: CongestionPlan| {
        let run = bottleneck(100).run(&[control], 20, 220);
        run.totals.flows.measured_bytes[0] as f64
    };
    assert!(goodput(compound()) > 1.05 * goodput(reno()));
}

#[test]
fn with_a_queue_of_more_than_gamma_it_is_reno() {
    let windows = |control: CongestionPlan| bottleneck(1200).run(&[control], 60, 90).windows();
    let (compound, reno) = (windows(compound()), windows(reno()));
    for (compound, reno) in compound.iter().zip(&reno) {
        assert!((compound - reno).abs() <= 2.0, "{compound} {reno}");
    }
}
