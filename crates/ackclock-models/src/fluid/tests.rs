//! Whole runs: closed forms, gates and properties.

use ackclock_core::tables::EventKind;
use proptest::prelude::*;
use serde_json::{json, Value};

use super::*;

mod balance;
mod closed_forms;

/// The parameters of all specs together: each law takes those that it knows.
fn parameters(law: &str) -> Value {
    json!({
        "a": 0.01, "b": 0.125, "c": 0.4, "beta": if law == "vegas" { 4.0 } else { 0.8 },
        "fast_convergence": true, "reno_friendly": true, "reno_catch_up": false, "slow_start": "standard",
        "adaptive_backoff": true, "bandwidth_switch": false, "rtt_scaling": false,
        "alpha": if law == "fast" { 20.0 } else { 2.0 }, "gamma": if law == "fast" { 0.5 } else { 1.0 },
        "max_increment": 16.0, "low_window": 14.0, "smooth_part": 20.0, "ack_ratio": false,
    })
}

/// A flow from the beginning to the end, through the first link.
fn flow(law: &str, base_rtt_s: f64, initial_window: f64) -> Value {
    json!({
        "path": [0], "base_rtt_s": base_rtt_s, "start_s": 0.0, "start_jitter_s": 0.0, "stop_s": null,
        "initial_window": initial_window, "largest_window": null, "law": law, "parameters": parameters(law),
    })
}

fn droptail(rate_p_s: f64, limit_p: f64) -> Value {
    json!({ "rate_p_s": rate_p_s, "queue": { "kind": "droptail", "limit_p": limit_p } })
}

fn normal(least: f64) -> Value {
    json!({ "kind": "normal", "least": least, "mean": null, "sd": 1.5 })
}

/// Congestion avoidance from the first windows on, without samples; `changes` replaces keys.
fn scenario(links: &[Value], flows: &[Value], duration_s: f64, changes: &Value) -> Plan {
    let mut plan = json!({
        "duration_s": duration_s, "warmup_s": 0.0, "step_s": null, "interval_s": null, "slow_start": false,
        "links": links, "flows": flows, "synchronisation": normal(0.3), "loss_assignment": { "kind": "rate" }, "cuts": "once",
    });
    for (key, value) in changes.as_object().expect("a table") {
        plan[key] = value.clone();
    }
    Plan::from_json(&plan.to_string()).expect("a plan")
}

/// Ten flows with RTTs of 80 to 260 ms at 10 Gb/s, from equal rates of half the link (Kumar et al. 2010).
fn kumar(law: &str, share: f64, duration_s: f64, changes: &Value) -> Plan {
    let rate_p_s = 1e10 / 8.0 / 1500.0;
    let flows: Vec<Value> = (0..10)
        .map(|number| 0.08 + 0.02 * f64::from(number))
        .map(|rtt_s| flow(law, rtt_s, rate_p_s / 20.0 * rtt_s))
        .collect();
    scenario(
        &[droptail(rate_p_s, 141_667.0 * share)],
        &flows,
        duration_s,
        changes,
    )
}

fn utilisation(plan: &Plan, outcome: &Outcome) -> f64 {
    let measured_s = plan.duration_s - plan.warmup_s;
    outcome.links.departed_p[0] / (plan.links[0].rate_p_s * measured_s)
}

/// Every digit of the totals; missing values are NaN, which equals nothing.
fn totals(outcome: &Outcome) -> String {
    format!(
        "{:?} {:?} {:?}",
        outcome.flows, outcome.links, outcome.events
    )
}

fn run_one(plan: &Plan) -> Outcome {
    run(plan, 1).expect("an outcome")
}

#[test]
fn half_the_step_moves_no_utilisation() {
    for law in ["reno", "highspeed", "cubic", "htcp", "scalable", "bic"] {
        for synchronisation in [normal(0.3), json!({ "kind": "full" })] {
            let duration_s = if law == "reno" { 1500.0 } else { 300.0 };
            let of = |step_s: f64| {
                let changes = json!({ "step_s": step_s, "synchronisation": synchronisation });
                let plan = kumar(law, 0.05, duration_s, &changes);
                utilisation(&plan, &run_one(&plan))
            };
            let moved = (of(0.008) - of(0.004)).abs();
            assert!(moved < 0.001, "{law}, {synchronisation}: {moved}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_at_any_number_of_threads() {
    let laws = ["cubic", "htcp", "scalable", "bic"];
    let plans: Vec<(Plan, u64)> = laws
        .iter()
        .enumerate()
        .map(|(seed, law)| (kumar(law, 0.05, 60.0, &json!({})), seed as u64))
        .collect();
    let all = |threads| {
        run_many(&plans, threads, |_| true)
            .expect("plans")
            .expect("outcomes")
    };
    let (alone, together) = (all(1), all(3));
    for (one, other) in alone.iter().zip(&together) {
        assert_eq!(totals(one), totals(other));
    }
    let other_seed = run(&plans[0].0, 9).expect("an outcome");
    assert_ne!(totals(&alone[0]), totals(&other_seed));
}

#[test]
fn a_batch_stops_on_request() {
    let plans = vec![(kumar("cubic", 0.05, 10.0, &json!({})), 1); 50];
    let mut told = Vec::new();
    let stopped = run_many(&plans, 1, |done| {
        told.push(done);
        done < 3
    });
    assert!(stopped.expect("plans").is_none());
    assert_eq!(told.last(), Some(&3));
}

#[test]
fn sampling_moves_nothing() {
    let plan = kumar("cubic", 0.05, 60.0, &json!({}));
    let sampled = kumar("cubic", 0.05, 60.0, &json!({ "interval_s": 0.013 }));
    let (bare, full) = (run_one(&plan), run_one(&sampled));
    assert_eq!(totals(&bare), totals(&full));
    assert!(bare.flow_samples.time_s.is_empty());
    assert_eq!(
        full.queue_samples.time_s.len(),
        (60.0_f64 / 0.013) as usize + 1
    );
    let rising = full
        .queue_samples
        .departed_p
        .windows(2)
        .all(|pair| pair[0] <= pair[1] + 1e-6);
    assert!(rising);
}

#[test]
fn a_flow_reduces_a_round_trip_after_a_loss_and_ignores_losses_for_another() {
    let plan = kumar(
        "scalable",
        0.05,
        100.0,
        &json!({ "synchronisation": { "kind": "full" } }),
    );
    let outcome = run_one(&plan);
    let rows = &outcome.events;
    let of_flow = |flow: u32, kind: EventKind| -> Vec<f64> {
        (0..rows.time_s.len())
            .filter(|&row| rows.flow[row] == flow && rows.kind[row] == kind as u8)
            .map(|row| rows.time_s[row])
            .collect()
    };
    for flow in 0..10 {
        let base_s = plan.flows[flow as usize].base_rtt_s;
        let (drops, cuts) = (
            of_flow(flow, EventKind::Drop),
            of_flow(flow, EventKind::Recovery),
        );
        assert!(cuts.len() > 3);
        for (drop_s, cut_s) in drops.iter().zip(&cuts) {
            let delay_s = cut_s - drop_s;
            assert!(
                (base_s..base_s + 0.02).contains(&delay_s),
                "flow {flow}: {delay_s}"
            );
        }
        assert!(cuts.windows(2).all(|pair| pair[1] - pair[0] > base_s));
    }
}

#[test]
fn numbers_out_of_range_are_rejected() {
    let refused = |changes: Value| {
        let mut plan = json!({
            "duration_s": 10.0, "warmup_s": 0.0, "step_s": null, "interval_s": null, "slow_start": true,
            "links": [droptail(1000.0, 10.0)], "flows": [flow("reno", 0.1, 1.0)],
            "synchronisation": normal(0.3), "loss_assignment": { "kind": "rate" }, "cuts": "once",
        });
        plan.as_object_mut()
            .expect("a table")
            .extend(changes.as_object().expect("a table").clone());
        match Plan::from_json(&plan.to_string()) {
            Ok(plan) => run(&plan, 1).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        }
    };
    assert_eq!(refused(json!({})), None);
    for changes in [
        json!({ "duration_s": 0.0 }),
        json!({ "warmup_s": 11.0 }),
        json!({ "step_s": -1.0 }),
        json!({ "flows": [] }),
        json!({ "links": [] }),
        json!({ "links": [droptail(0.0, 10.0)] }),
        json!({ "flows": [flow("reno", 0.0, 1.0)] }),
        json!({ "flows": [flow("bbr", 0.1, 1.0)] }),
        json!({ "synchronisation": { "kind": "replayed", "shares": [] } }),
        json!({ "loss_assignment": { "kind": "replayed", "flows": [[1]] } }),
        json!({ "unknown": 1 }),
    ] {
        assert!(refused(changes.clone()).is_some(), "{changes}");
    }
}

#[test]
fn circular_paths_are_rejected() {
    let mut flows = [flow("reno", 0.1, 1.0), flow("reno", 0.1, 1.0)];
    flows[0]["path"] = json!([0, 1]);
    flows[1]["path"] = json!([1, 0]);
    let links = [droptail(1000.0, 10.0), droptail(1000.0, 10.0)];
    let plan = scenario(&links, &flows, 1.0, &json!({}));
    assert!(matches!(run(&plan, 1), Err(PlanError::Circle)));
}
