//! Any plan gives consistent transfers or an error.

use proptest::prelude::*;
use serde_json::{json, Value};

use super::testing::played;
use super::*;
use crate::Pairing;

/// Number that break things, and some that do not.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(u64::MAX)),
        Just(json!(1e308)),
        Just(json!(1e-300)),
        (0..6_u32).prop_map(|n| json!(n)),
        (1..100_000_u32).prop_map(|n| json!(n)),
        (0.0..5.0_f64).prop_map(|x| json!(x)),
        Just(json!("many")),
    ]
}

/// Mostly numbers that do not break things.
fn base_plan() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (1..6_u32).prop_map(|n| json!(n)),
        4 => (0.0..5.0_f64).prop_map(|x| json!(x)),
        1 => number(),
    ]
}

fn truncation() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        (prop_oneof!["redraw", "clip", "cut"], number())
            .prop_map(|(kind, most)| json!({ "kind": kind, "most_bytes": most })),
    ]
}

fn size() -> impl Strategy<Value = Value> {
    let points = prop::collection::vec((number(), number()), 0..4);
    let rising = prop::collection::vec((1..9_u32, 0.0..0.9_f64), 1..4);
    prop_oneof![
        Just(json!(null)),
        number().prop_map(|bytes| json!({ "kind": "fixed", "bytes": bytes })),
        (number(), truncation()).prop_map(
            |(a, cut)| json!({ "kind": "exponential", "mean_bytes": a, "truncation": cut })
        ),
        (number(), number(), truncation()).prop_map(|(a, b, cut)| {
            json!({ "kind": "lognormal", "median_bytes": a, "sigma": b, "truncation": cut })
        }),
        (number(), number(), truncation()).prop_map(|(a, b, cut)| {
            json!({ "kind": "pareto", "shape": a, "least_bytes": b, "truncation": cut })
        }),
        (number(), number(), number()).prop_map(|(a, b, c)| {
            json!({ "kind": "zipf", "exponent": a, "most": b, "unit_bytes": c })
        }),
        points.prop_map(|points| json!({ "kind": "empirical", "points": points })),
        rising.prop_map(|mut points| {
            points.sort_by_key(|point| point.0);
            let mut shares: Vec<f64> = points.iter().map(|point| point.1).collect();
            shares.sort_by(f64::total_cmp);
            let mut points: Vec<_> = points.iter().map(|point| point.0).zip(shares).collect();
            points.push((9, 1.0));
            json!({ "kind": "empirical", "points": points })
        }),
    ]
}

fn duration() -> impl Strategy<Value = Value> {
    prop_oneof![
        base_plan().prop_map(|s| json!({ "kind": "fixed", "s": s })),
        base_plan().prop_map(|s| json!({ "kind": "exponential", "mean_s": s })),
        (base_plan(), base_plan())
            .prop_map(|(a, b)| json!({ "kind": "pareto", "shape": a, "least_s": b })),
        (base_plan(), base_plan())
            .prop_map(|(a, b)| json!({ "kind": "uniform", "from_s": a, "to_s": b })),
    ]
}

fn count() -> impl Strategy<Value = Value> {
    prop_oneof![
        base_plan().prop_map(|n| json!({ "kind": "fixed", "n": n })),
        base_plan().prop_map(|n| json!({ "kind": "geometric", "mean": n })),
        (base_plan(), base_plan())
            .prop_map(|(a, b)| json!({ "kind": "uniform", "from": a, "to": b })),
    ]
}

fn arrivals() -> impl Strategy<Value = Value> {
    let limit = || prop_oneof![Just(json!(null)), base_plan()];
    prop_oneof![
        base_plan().prop_map(|s| json!({ "kind": "once", "jitter_s": s })),
        base_plan().prop_map(|s| json!({ "kind": "poisson", "per_s": s })),
        base_plan().prop_map(|s| json!({ "kind": "periodic", "every_s": s })),
        (base_plan(), duration(), limit()).prop_map(|(jitter, think, most)| {
            json!({ "kind": "sources", "jitter_s": jitter, "think": think, "transfers": most })
        }),
        (duration(), limit(), size(), count(), base_plan()).prop_map(|(think, most, main, n, lanes)| {
            json!({
                "kind": "web", "jitter_s": 0.5, "think": think, "pages": most, "size_main": main,
                "objects": n, "parallel": lanes,
            })
        }),
        (base_plan(), limit(), limit()).prop_map(|(senders, every, rounds)| {
            json!({ "kind": "incast", "senders": senders, "every_s": every, "rounds": rounds })
        }),
    ]
}

fn plan() -> impl Strategy<Value = Value> {
    let stop = prop_oneof![3 => Just(json!(null)), 1 => number()];
    (base_plan(), stop, arrivals(), size()).prop_map(|(start, stop, arrivals, size)| {
        json!({ "start_s": start, "stop_s": stop, "arrivals": arrivals, "size": size })
    })
}

fn pairing() -> impl Strategy<Value = Pairing> {
    prop_oneof![
        Just(Pairing::Random),
        Just(Pairing::Permutation),
        Just(Pairing::All),
        Just(Pairing::InTurn),
    ]
}

/// Refers to gates that are there, awaits what completes, and every transfer begins in a run that lasts.
fn assert_consistent(made: &Generated) -> Result<(), TestCaseError> {
    let mut completions = vec![0; made.gates.len()];
    for transfer in &made.transfers {
        if let Some(gate) = transfer.completes {
            completions[gate as usize] += 1;
        }
    }
    let awaited: Vec<u32> = made.gates.iter().map(|gate| gate.awaits).collect();
    prop_assert_eq!(completions, awaited);
    let begins = played(made, Time::ZERO);
    let begin_in_time = |begin: &Option<Time>| begin.is_some_and(|time| time < made.stop);
    prop_assert!(begins.iter().all(begin_in_time));
    let sizes = made
        .transfers
        .iter()
        .filter_map(|transfer| transfer.size_bytes);
    prop_assert!(sizes.min() != Some(0));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_plan_is_generated_or_rejected(
        plan in plan(),
        sources in prop::collection::vec(0..6_u32, 0..5),
        destinations in prop::collection::vec(0..6_u32, 0..5),
        pairing in pairing(),
        paths in 0..5_u32,
        among_paths: bool,
        seed: u64,
    ) {
        let Ok(workload) = serde_json::from_value::<Workload>(plan) else { return Ok(()) };
        let nodes = Population::Nodes { sources: &sources, destinations: &destinations, pairing };
        let population = if among_paths { Population::Paths(paths) } else { nodes };
        let streams = Streams { seed, stream: 0 };
        let duration = Time::from_seconds(10.0);
        let made = supply_limited(500, &workload, population, duration, streams);
        if let Ok(made) = made.map(Supply::drawn) {
            assert_consistent(&made)?;
        }
    }
}
