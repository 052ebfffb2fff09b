//! Plans as they are read: complete, without unknown fields.

#[path = "../../../ackclock-plan/tests/strict/mod.rs"]
mod strict;

use ackclock_models::{fluid, meanfield};
use serde::Deserialize;
use serde_json::{json, Value};

fn assert_strict(plan: &Value, parses: impl Fn(&Value) -> bool) {
    let faults = strict::faults(plan, parses);
    assert!(faults.is_empty(), "{faults:#?}");
}

fn red() -> Value {
    json!({"kind": "red", "min_p": 5.0, "max_p": 15.0, "probability": 0.1, "weight": 0.002, "gentle": true})
}

#[test]
fn each_field_of_a_fluid_plan_is_required_and_unknown_ones_are_rejected() {
    let mut early = red();
    early["limit_p"] = json!(30.0);
    let controllers = [
        (json!({"kind": "none"}), json!({"kind": "rate"})),
        (
            json!({"kind": "normal", "least": 0.3, "mean": null, "sd": 1.5}),
            json!({"kind": "window"}),
        ),
        (json!({"kind": "full"}), json!({"kind": "random"})),
        (
            json!({"kind": "replayed", "shares": [0.5]}),
            json!({"kind": "replayed", "flows": [[0]]}),
        ),
    ];
    for (synchronisation, victims) in controllers {
        let plan = json!({
            "duration_s": 10.0, "warmup_s": 1.0, "step_s": null, "interval_s": null, "slow_start": false,
            "links": [
                {"rate_p_s": 1000.0, "queue": {"kind": "droptail", "limit_p": 20.0}},
                {"rate_p_s": 1000.0, "queue": early},
            ],
            "flows": [{
                "path": [0], "base_rtt_s": 0.1, "start_s": 0.0, "start_jitter_s": 0.0, "stop_s": null,
                "initial_window": 2.0, "largest_window": null, "law": "reno", "parameters": {"beta": 0.5},
            }],
            "synchronisation": synchronisation, "loss_assignment": victims, "cuts": "once",
        });
        assert_strict(&plan, |plan| {
            fluid::Plan::from_json(&plan.to_string()).is_ok()
        });
    }
}

#[test]
fn each_field_of_a_mean_field_plan_is_required_and_unknown_ones_are_rejected() {
    for policy in [
        red(),
        json!({"kind": "droptail"}),
        json!({"kind": "codel", "target_s": 0.005, "interval_s": 0.1, "newton": true}),
        json!({"kind": "pie", "target_s": 0.015, "tupdate_s": 0.015, "alpha": 2.0, "beta": 20.0, "max_burst_s": 0.15,
               "derandomize": true}),
    ] {
        let plan = json!({
            "duration_s": 10.0, "warmup_s": 1.0, "interval_s": 0.01, "step_s": null, "rate_pps": 1000.0, "buffer_p": 50.0,
            "policy": policy, "one_reduction_per_rtt": true, "recovery": true, "loss_weight": 1.0, "loss_rate_exponent": 1.0, "particles": false,
            "first_loss_p": null, "scale": 1.0,
            "classes": [
                {"flows": [0], "base_rtt_s": 0.1, "control": {"kind": "reno"}, "opening": null},
                {"flows": [1], "base_rtt_s": 0.1, "control": {
                    "kind": "cubic", "c": 0.4, "beta": 0.7, "fast_convergence": true, "mode": "auto"
                }, "opening": {"starts_s": [0.0], "window_p": 10.0, "leave_delay_s": null}},
            ],
        });
        assert_strict(&plan, |plan| {
            meanfield::plan::Plan::deserialize(plan).is_ok()
        });
    }
}
