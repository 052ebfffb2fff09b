//! Arrivals that wait for nothing, and what all arrivals have in common.

use serde_json::{json, Value};

use super::testing::*;
use super::*;
use crate::Pairing;

fn poisson(per_s: f64) -> Value {
    json!({ "kind": "poisson", "per_s": per_s })
}

/// Kolmogorov and Smirnov's distance between the gaps and an exponential law; above 1.63/√n once in a
/// hundred.
#[test]
fn gaps_of_poisson_arrivals_are_exponential() {
    let made = among(3, &workload(&poisson(50.0), &fixed()), 401.0).expect("transfers");
    let times_s = times_s(&made);
    let mut gaps_s: Vec<f64> = times_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps_s.push(times_s[0] - 1.0);
    gaps_s.sort_by(f64::total_cmp);
    let count = gaps_s.len() as f64;
    let distance = gaps_s.iter().enumerate().map(|(index, gap_s)| {
        let share = -(-50.0 * gap_s).exp_m1();
        let (below, above) = (index as f64 / count, (index + 1) as f64 / count);
        (share - below).abs().max((share - above).abs())
    });
    assert!(distance.fold(0.0, f64::max) < 1.63 / count.sqrt());
}

/// The counts of seconds have mean and variance 50; of 400 of them the variance deviates by about
/// 50 √(2/400).
#[test]
fn counts_of_poisson_arrivals_are_poisson() {
    let made = among(3, &workload(&poisson(50.0), &fixed()), 401.0).expect("transfers");
    let mut counts = [0.0_f64; 400];
    for time_s in times_s(&made) {
        counts[time_s as usize - 1] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / 400.0;
    assert!((mean - 50.0).abs() < 4.0 * (50.0_f64 / 400.0).sqrt());
    let squares = counts.iter().map(|count| (count - mean).powi(2));
    let variance = squares.sum::<f64>() / 399.0;
    assert!(
        (variance - 50.0).abs() < 4.0 * 50.0 * (2.0_f64 / 400.0).sqrt(),
        "{variance}"
    );
}

#[test]
fn arrivals_draw_their_ends() {
    let made = among(4, &workload(&poisson(1000.0), &fixed()), 9.0).expect("transfers");
    for path in 0..4 {
        let is_its = |transfer: &&Transfer| transfer.ends == Ends::Path(path);
        let share =
            made.transfers.iter().filter(is_its).count() as f64 / made.transfers.len() as f64;
        assert!((share - 0.25).abs() < 4.0 * (0.1875_f64 / 8000.0).sqrt());
    }
}

#[test]
fn the_same_arguments_give_the_same_transfers_and_others_give_others() {
    let workload = workload(&poisson(50.0), &json!(null));
    let of = |seed, stream| {
        let population = Population::Paths(9);
        generate(
            &workload,
            population,
            Time::from_seconds(20.0),
            seed,
            stream,
        )
        .expect("transfers")
    };
    assert_eq!(of(1, 2), of(1, 2));
    assert_ne!(of(1, 2), of(2, 2));
    assert_ne!(of(1, 2), of(1, 1));
}

#[test]
fn another_size_leaves_times_and_ends_as_they_were() {
    let heavy = json!({
        "kind": "pareto", "shape": 1.2, "least_bytes": 1000,
        "truncation": { "kind": "redraw", "most_bytes": 5000 },
    });
    let drawn = |size: &Value| {
        let made = among(9, &workload(&poisson(50.0), size), 20.0).expect("transfers");
        let without_size = |transfer: &Transfer| (transfer.start, transfer.ends);
        let rest: Vec<_> = made.transfers.iter().map(without_size).collect();
        (rest, made.transfers[0].size_bytes)
    };
    let (light, light_bytes) = drawn(&fixed());
    let (heavy, heavy_bytes) = drawn(&heavy);
    assert_eq!(light, heavy);
    assert_ne!(light_bytes, heavy_bytes);
}

#[test]
fn another_rate_leaves_sizes_as_they_were() {
    let size = json!({ "kind": "exponential", "mean_bytes": 1e6, "truncation": null });
    let sizes = |per_s| {
        let made = among(9, &workload(&poisson(per_s), &size), 20.0).expect("transfers");
        let sizes = made.transfers.iter().map(|transfer| transfer.size_bytes);
        sizes.take(100).collect::<Vec<_>>()
    };
    assert_eq!(sizes(50.0), sizes(80.0));
}

#[test]
fn a_longer_run_begins_as_the_shorter() {
    let workload = workload(&poisson(50.0), &fixed());
    let short = among(9, &workload, 20.0).expect("transfers").transfers;
    let long = among(9, &workload, 40.0).expect("transfers").transfers;
    assert!(long.len() > short.len());
    assert_eq!(long[..short.len()], short);
}

/// Gaps and sizes are both exponential, but one does not follow from the other: their correlation is zero,
/// within four of its deviations 1/√n.
#[test]
fn sizes_do_not_follow_from_gaps() {
    let size = json!({ "kind": "exponential", "mean_bytes": 1e9, "truncation": null });
    let made = among(1, &workload(&poisson(50.0), &size), 101.0).expect("transfers");
    let mut before_s = 1.0;
    let products = made
        .transfers
        .iter()
        .zip(times_s(&made))
        .map(|(transfer, time_s)| {
            let gap = (time_s - before_s) * 50.0;
            before_s = time_s;
            let size = transfer.size_bytes.expect("a size") as f64 / 1e9;
            (gap - 1.0) * (size - 1.0)
        });
    let count = made.transfers.len() as f64;
    assert!((products.sum::<f64>() / count).abs() < 4.0 / count.sqrt());
}

#[test]
fn periodic_arrivals_are_at_equal_distances() {
    let periodic = json!({ "kind": "periodic", "every_s": 0.25 });
    let made = among(1, &workload(&periodic, &fixed()), 2.0).expect("transfers");
    assert_eq!(times_s(&made), [1.0, 1.25, 1.5, 1.75]);
}

#[test]
fn a_one_shot_workload_has_each_pair_within_the_jitter() {
    let once = |jitter_s| {
        workload(
            &json!({ "kind": "once", "jitter_s": jitter_s }),
            &json!(null),
        )
    };
    let made = among(3, &once(0.0), 9.0).expect("transfers");
    assert_eq!(times_s(&made), [1.0; 3]);
    let ends: Vec<_> = made
        .transfers
        .iter()
        .map(|transfer| transfer.ends)
        .collect();
    assert_eq!(ends, [0, 1, 2].map(Ends::Path));

    let made = among(1000, &once(2.0), 9.0).expect("transfers");
    let times_s = times_s(&made);
    assert!(times_s.is_sorted());
    assert!(times_s[0] >= 1.0 && times_s[999] < 3.0);
    let mean = times_s.iter().sum::<f64>() / 1000.0;
    assert!((mean - 2.0).abs() < 4.0 * (4.0_f64 / 12.0 / 1000.0).sqrt());
}

#[test]
fn no_transfer_starts_at_or_after_the_stop() {
    let mut workload = workload(&json!({ "kind": "periodic", "every_s": 0.5 }), &fixed());
    workload.stop = Some(Time::from_seconds(2.0));
    let made = among(1, &workload, 9.0).expect("transfers");
    assert_eq!(times_s(&made), [1.0, 1.5]);
    assert_eq!(made.stop, Time::from_seconds(2.0));
    let made = among(1, &workload, 1.5).expect("transfers");
    assert_eq!(made.stop, Time::from_seconds(1.5));
    assert_eq!(times_s(&made), [1.0]);
    workload.stop = Some(workload.start);
    assert!(matches!(
        among(1, &workload, 9.0),
        Err(WorkloadError::StopsBeforeStart { .. })
    ));
}

#[test]
fn too_many_transfers_are_rejected_with_their_number() {
    let error = among(1, &workload(&poisson(1e6), &fixed()), 21.0).expect_err("too many");
    assert_eq!(
        error.to_string(),
        "poisson arrivals over 20.000000 s give about 20000000 transfers, but at most 10000000 are possible"
    );
    let all = json!({ "kind": "once", "jitter_s": 0 });
    let nodes: Vec<u32> = (0..3200).collect();
    let population = Population::Nodes {
        sources: &nodes,
        destinations: &nodes,
        pairing: Pairing::All,
    };
    let error = generate(
        &workload(&all, &fixed()),
        population,
        Time::from_seconds(9.0),
        1,
        0,
    );
    assert!(error
        .expect_err("too many")
        .to_string()
        .contains("about 10236800"));
}

#[test]
fn arrivals_with_random_ends_are_drawn_lazily() {
    for arrivals in [poisson(10.0), json!({ "kind": "periodic", "every_s": 0.1 })] {
        let workload = workload(&arrivals, &fixed());
        let (population, span) = (Population::Paths(3), Time::from_seconds(20.0));
        let all = generate(&workload, population, span, 7, 0).expect("transfers");
        let Ok(Supply::Arriving(mut arriving)) = supply(&workload, population, span, 7, 0) else {
            panic!("{arrivals} were drawn ahead");
        };
        assert_eq!(
            (arriving.len(), arriving.stop()),
            (all.transfers.len(), all.stop)
        );
        assert_eq!(arriving.next().as_ref(), all.transfers.first());
        assert!(arriving.eq(all.transfers[1..].iter().copied()));
    }
}

/// The expected number fits, the drawn one does not.
#[test]
fn the_limit_applies_to_lazy_arrivals() {
    let workload = workload(&poisson(10.0), &fixed());
    let streams = Streams { seed: 1, stream: 0 };
    let within = |most| {
        let duration = Time::from_seconds(101.0);
        supply_limited(most, &workload, Population::Paths(1), duration, streams).map(Supply::drawn)
    };
    let count = within(2000).expect("transfers").transfers.len() as u64;
    assert!(
        count > 1000,
        "this seed draws {count}, no more than expected"
    );
    assert!(within(count).is_ok());
    assert!(matches!(
        within(count - 1),
        Err(WorkloadError::TooMany { .. })
    ));
}

#[test]
fn mistakes_are_named() {
    let think = |s: f64| json!({ "kind": "fixed", "s": s });
    let sources =
        |s: f64| json!({ "kind": "sources", "jitter_s": 0, "think": think(s), "transfers": null });
    let incast = |senders, every_s: Value| json!({ "kind": "incast", "senders": senders, "every_s": every_s, "rounds": null });
    let web = |parallel: u32| {
        json!({
            "kind": "web", "jitter_s": 0, "think": think(1.0), "pages": null, "size_main": null,
            "objects": { "kind": "fixed", "n": 3 }, "parallel": parallel,
        })
    };
    for (arrivals, size, message) in [
        (poisson(0.0), fixed(), "per_s must be greater than zero"),
        (
            json!({ "kind": "periodic", "every_s": 0 }),
            fixed(),
            "every_s must be greater than zero",
        ),
        (
            sources(0.0),
            fixed(),
            "sources arrivals without think time never end; give transfers",
        ),
        (
            sources(-1.0),
            fixed(),
            "s is -1; expected a number of at least zero",
        ),
        (
            sources(1.0),
            json!(null),
            "sources arrivals require a size: the next transfer waits for the end of the previous one",
        ),
        (web(0), fixed(), "parallel must be greater than zero"),
        (
            incast(2, json!(null)),
            fixed(),
            "incast arrivals without every_s never end; give rounds",
        ),
        (
            incast(0, json!(1)),
            fixed(),
            "senders must be greater than zero",
        ),
        (
            incast(3, json!(1)),
            fixed(),
            "incast of 3 senders, but there are 2",
        ),
    ] {
        let error = among(2, &workload(&arrivals, &size), 9.0).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}
