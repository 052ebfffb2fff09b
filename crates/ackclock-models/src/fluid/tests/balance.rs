//! Conservation of packets, on any plan.

use super::*;

/// Packets that arrived left, were dropped or wait; what the flows lost is what the links dropped.
fn check(plan: &Plan, outcome: &Outcome) {
    let links = &outcome.links;
    for link in 0..plan.links.len() {
        let (arrived, dropped) = (links.arrived_total_p[link], links.dropped_total_p[link]);
        let (departed, waiting) = (links.departed_total_p[link], links.backlog_end_p[link]);
        let gap = (arrived - dropped - departed - waiting).abs();
        assert!(
            gap <= 1e-10 * arrived.max(1.0),
            "link {link}: {gap} of {arrived}"
        );
        assert!((0.0..=plan.links[link].queue.limit_p).contains(&waiting));
    }
    let lost: f64 = outcome.flows.dropped_p.iter().sum();
    let dropped: f64 = links.dropped_total_p.iter().sum();
    assert!(
        (lost - dropped).abs() <= 1e-9 * dropped.max(1.0),
        "{lost} of {dropped}"
    );
    let counts = [
        &outcome.flows.sent_p,
        &outcome.flows.delivered_p,
        &outcome.flows.dropped_p,
    ];
    for value in counts.into_iter().flatten() {
        assert!(value.is_finite() && *value >= 0.0);
    }
    let samples = &outcome.flow_samples;
    let recorded = samples
        .cwnd
        .iter()
        .chain(&samples.srtt_s)
        .chain(&samples.delivered_p);
    assert!(recorded
        .chain(&outcome.queue_samples.backlog_p)
        .all(|value| value.is_finite()));
}

/// Σ λ = AR − C: what a full queue loses is what arrives beyond its rate, all of it the event's victims'.
#[test]
fn flows_hit_by_drops_lose_the_excess() {
    let changes = json!({
        "loss_assignment": { "kind": "replayed", "flows": [[4, 7]] },
        "synchronisation": { "kind": "replayed", "shares": [0.2] },
        "interval_s": 0.001,
    });
    let first_s = run_one(&kumar("scalable", 0.01, 50.0, &changes))
        .epochs
        .time_s[0];
    let plan = kumar("scalable", 0.01, first_s + 0.15, &changes);
    let outcome = run_one(&plan);
    check(&plan, &outcome);
    let dropped = outcome.links.dropped_total_p[0];
    let by_victims = outcome.flows.dropped_p[4] + outcome.flows.dropped_p[7];
    // The last step before the event overshoots by rounding; that little is shared by all.
    assert!(
        (by_victims - dropped).abs() < 1e-7 * dropped,
        "{by_victims} of {dropped}"
    );
    let in_events: f64 = outcome.epochs.dropped_p.iter().sum();
    assert!((in_events - dropped).abs() < 1e-7 * dropped);
    let excess = excess_p(&plan, &outcome, first_s);
    assert!(
        (dropped - excess).abs() < 0.01 * excess,
        "{dropped}, {excess}"
    );
}

/// ∫ (AR − C) dt from an instant on, from the samples of the windows and RTTs.
fn excess_p(plan: &Plan, outcome: &Outcome, from_s: f64) -> f64 {
    let samples = &outcome.flow_samples;
    let rate_p_s = |first: usize| -> f64 {
        let rows = first..first + plan.flows.len();
        rows.map(|row| samples.cwnd[row] / samples.srtt_s[row])
            .sum()
    };
    let instants = (0..samples.time_s.len()).step_by(plan.flows.len());
    let excess = instants
        .filter(|&row| samples.time_s[row] >= from_s)
        .map(|row| 0.001 * (rate_p_s(row) - plan.links[0].rate_p_s));
    excess.sum()
}

#[test]
fn flow_rates_sum_to_the_link_rate() {
    for law in ["reno", "cubic", "htcp", "highspeed"] {
        let plan = kumar(law, 0.05, 200.0, &json!({}));
        let outcome = run_one(&plan);
        check(&plan, &outcome);
        let delivered: f64 = outcome.flows.delivered_p.iter().sum();
        let departed = outcome.links.departed_total_p[0];
        assert!(
            (delivered - departed).abs() < 1e-6 * departed,
            "{law}: {delivered} of {departed}"
        );
    }
}

fn queue() -> impl Strategy<Value = Value> {
    let droptail =
        (1.0..5000.0_f64).prop_map(|limit_p| json!({ "kind": "droptail", "limit_p": limit_p }));
    let red = (10.0..5000.0_f64, 0.0001..1.0_f64, 1e-5..1.0_f64, any::<bool>()).prop_map(
        |(limit_p, probability, weight, gentle)| {
            json!({ "kind": "red", "limit_p": limit_p, "min_p": limit_p / 12.0, "max_p": limit_p / 4.0,
                "probability": probability, "weight": weight, "gentle": gentle })
        },
    );
    prop_oneof![droptail, red]
}

fn synchronisation() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "kind": "none" })),
        Just(json!({ "kind": "full" })),
        (0.0..1.0_f64, 0.0..5.0_f64).prop_map(
            |(least, sd)| json!({ "kind": "normal", "least": least, "mean": null, "sd": sd })
        ),
        proptest::collection::vec(0.0..1.0_f64, 1..5)
            .prop_map(|shares| json!({ "kind": "replayed", "shares": shares })),
    ]
}

fn any_flow() -> impl Strategy<Value = Value> {
    let law = proptest::sample::select(
        growth::LAWS
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>(),
    );
    let path = proptest::sample::select(vec![json!([0]), json!([1]), json!([0, 1])]);
    let times = (
        0.0..10.0_f64,
        0.0..2.0_f64,
        proptest::option::of(0.0..20.0_f64),
    );
    let windows = (1.0..100.0_f64, proptest::option::of(1.0..10_000.0_f64));
    (law, path, 0.001..0.5_f64, times, windows).prop_map(
        |(law, path, rtt_s, (start_s, jitter_s, stop_s), (window, most))| {
            let mut flow = flow(law, rtt_s, window);
            flow["path"] = path;
            flow["start_s"] = json!(start_s);
            flow["start_jitter_s"] = json!(jitter_s);
            flow["stop_s"] = json!(stop_s);
            flow["largest_window"] = json!(most);
            flow
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_runs_and_balances(
        queues in (queue(), queue()),
        rates in (1e2..1e6_f64, 1e2..1e6_f64),
        flows in proptest::collection::vec(any_flow(), 1..6),
        synchronisation in synchronisation(),
        victims in proptest::sample::select(vec!["rate", "window", "random"]),
        slow_start in any::<bool>(),
        step_s in proptest::option::of(0.0005..0.5_f64),
    ) {
        let links = [
            json!({ "rate_p_s": rates.0, "queue": queues.0 }),
            json!({ "rate_p_s": rates.1, "queue": queues.1 }),
        ];
        let changes = json!({ "synchronisation": synchronisation, "loss_assignment": { "kind": victims },
            "slow_start": slow_start, "step_s": step_s, "interval_s": 0.5, "warmup_s": 3.0 });
        let plan = scenario(&links, &flows, 12.0, &changes);
        check(&plan, &run_one(&plan));
    }
}
