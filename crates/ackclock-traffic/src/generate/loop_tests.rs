//! Closed loops: sources, pages, rounds.

use serde_json::{json, Value};

use super::testing::*;
use super::*;
use crate::Pairing;

fn sources(think: &Value, transfers: Option<u32>) -> Workload {
    let arrivals = json!({
        "kind": "sources", "jitter_s": 0, "think": think, "transfers": transfers,
    });
    workload(&arrivals, &fixed())
}

fn seconds(times: &[Option<Time>]) -> Vec<f64> {
    times.iter().flatten().map(|time| time.seconds()).collect()
}

fn second() -> Time {
    Time::from_seconds(1.0)
}

#[test]
fn a_source_thinks_after_each_transfer() {
    let made =
        among(1, &sources(&json!({ "kind": "fixed", "s": 2 }), None), 10.0).expect("transfers");
    // As though transfers took no time: 1, 3, 5, 7, 9 s.
    assert_eq!(made.transfers.len(), 5);
    assert_eq!(
        seconds(&played(&made, Time::ZERO)),
        [1.0, 3.0, 5.0, 7.0, 9.0]
    );
    assert_eq!(seconds(&played(&made, second())), [1.0, 4.0, 7.0]);
    assert_eq!(made.transfers[4].completes, None);
    // One that could begin no earlier than the end is not made.
    let made =
        among(1, &sources(&json!({ "kind": "fixed", "s": 2 }), None), 9.0).expect("transfers");
    assert_eq!(made.transfers.len(), 4);
}

#[test]
fn each_source_has_think_times_of_its_own() {
    let think = json!({ "kind": "exponential", "mean_s": 1 });
    let made = among(2, &sources(&think, Some(2)), 100.0).expect("transfers");
    assert_eq!(made.gates.len(), 2);
    assert_ne!(made.gates[0].delay, made.gates[1].delay);
}

#[test]
fn a_source_without_think_time_makes_the_given_number_of_transfers() {
    let made = among(
        2,
        &sources(&json!({ "kind": "fixed", "s": 0 }), Some(3)),
        10.0,
    )
    .expect("transfers");
    assert_eq!(made.transfers.len(), 6);
    let begins = played(&made, second());
    assert_eq!(seconds(&begins), [1.0, 1.0, 2.0, 3.0, 2.0, 3.0]);
}

#[test]
fn one_source_more_or_a_longer_run_does_not_move_the_others() {
    let size = json!({ "kind": "exponential", "mean_bytes": 1e6, "truncation": null });
    let arrivals = json!({
        "kind": "sources", "jitter_s": 1, "transfers": null,
        "think": { "kind": "exponential", "mean_s": 1 },
    });
    let workload = workload(&arrivals, &size);
    let of_first = |paths, duration_s| {
        let made = among(paths, &workload, duration_s).expect("transfers");
        let own = made
            .transfers
            .iter()
            .filter(|transfer| transfer.ends == Ends::Path(1));
        let delay = |gate: u32| made.gates[gate as usize].delay;
        let drawn = own.map(|transfer| (transfer.size_bytes, transfer.completes.map(delay)));
        drawn.take(5).collect::<Vec<_>>()
    };
    let two = of_first(2, 30.0);
    assert_eq!(two.len(), 5);
    assert_eq!(two, of_first(3, 30.0));
    assert_eq!(two, of_first(2, 60.0));
}

fn web(objects: u32, parallel: u32) -> Workload {
    let arrivals = json!({
        "kind": "web", "jitter_s": 0, "think": { "kind": "fixed", "s": 5 }, "pages": 2,
        "size_main": { "kind": "fixed", "bytes": 77 },
        "objects": { "kind": "fixed", "n": objects }, "parallel": parallel,
    });
    workload(&arrivals, &fixed())
}

/// Each object takes a second: the main one from 1 s, five in two lanes from 2 s (three and two of them),
/// all there at 5 s, and after 5 s of thinking the next page.
#[test]
fn a_page_is_its_main_object_and_then_lanes() {
    let made = among(1, &web(5, 2), 30.0).expect("transfers");
    let page = [1.0, 2.0, 2.0, 3.0, 3.0, 4.0];
    let next = page.map(|time_s| time_s + 9.0);
    assert_eq!(seconds(&played(&made, second())), [page, next].concat());
    let sizes: Vec<_> = made
        .transfers
        .iter()
        .filter_map(|transfer| transfer.size_bytes)
        .collect();
    assert_eq!(sizes[..7], [77, 1000, 1000, 1000, 1000, 1000, 77]);
}

#[test]
fn more_lanes_than_objects_and_no_objects() {
    let made = among(1, &web(2, 6), 30.0).expect("transfers");
    let expected = [1.0, 2.0, 2.0, 8.0, 9.0, 9.0];
    assert_eq!(seconds(&played(&made, second())), expected);
    let made = among(1, &web(0, 6), 30.0).expect("transfers");
    assert_eq!(seconds(&played(&made, second())), [1.0, 7.0]);
}

fn incast(senders: u32, every_s: &Value, rounds: Option<u32>) -> Workload {
    let arrivals = json!({
        "kind": "incast", "senders": senders, "every_s": every_s, "rounds": rounds,
    });
    workload(&arrivals, &fixed())
}

#[test]
fn a_round_waits_for_the_last_at_a_barrier() {
    let made = among(4, &incast(3, &json!(null), Some(3)), 30.0).expect("transfers");
    assert_eq!(made.transfers.len(), 9);
    assert_eq!(made.gates.len(), 2);
    assert!(made.gates.iter().all(|gate| gate.awaits == 3));
    let begins = seconds(&played(&made, second()));
    assert_eq!(begins, [[1.0; 3], [2.0; 3], [3.0; 3]].concat());
    let ends: Vec<_> = made
        .transfers
        .iter()
        .map(|transfer| transfer.ends)
        .collect();
    assert_eq!(ends[3..6], [0, 1, 2].map(Ends::Path));
}

#[test]
fn rounds_at_fixed_times_do_not_wait() {
    let made = among(2, &incast(2, &json!(0.5), None), 2.5).expect("transfers");
    assert_eq!(times_s(&made), [1.0, 1.0, 1.5, 1.5, 2.0, 2.0]);
    let made = among(2, &incast(2, &json!(0.5), Some(2)), 9.0).expect("transfers");
    assert_eq!(times_s(&made), [1.0, 1.0, 1.5, 1.5]);
}

/// The ends of each round of an incast among nodes, as (sources, destination).
fn rounds(senders: u32, nodes: &[u32], pairing: Pairing) -> Vec<(Vec<u32>, u32)> {
    let population = Population::Nodes {
        sources: nodes,
        destinations: nodes,
        pairing,
    };
    let workload = incast(senders, &json!(0.01), Some(500));
    let made = generate(&workload, population, Time::from_seconds(9.0), 1, 0).expect("transfers");
    let round = |transfers: &[Transfer]| {
        let both = transfers.iter().map(|transfer| match transfer.ends {
            Ends::Nodes {
                source,
                destination,
            } => (source, destination),
            Ends::Path(path) => panic!("path {path}"),
        });
        let (sources, destinations): (Vec<u32>, Vec<u32>) = both.unzip();
        assert!(destinations.iter().all(|&node| node == destinations[0]));
        (sources, destinations[0])
    };
    made.transfers.chunks(senders as usize).map(round).collect()
}

#[test]
fn drawn_rounds_have_different_senders_and_another_destination() {
    let nodes = [3, 4, 5, 6];
    let mut seen = std::collections::BTreeMap::new();
    for (mut sources, destination) in rounds(2, &nodes, Pairing::Random) {
        sources.sort_unstable();
        assert!(sources[0] < sources[1] && !sources.contains(&destination));
        *seen.entry((sources, destination)).or_insert(0.0) += 1.0;
    }
    // Four destinations, three pairs of senders each; χ² with 11 degrees of freedom, one in a thousand.
    assert_eq!(seen.len(), 12);
    let expected = 500.0 / 12.0;
    let squares = seen.values().map(|count: &f64| (count - expected).powi(2));
    assert!(squares.sum::<f64>() / expected < 31.3, "{seen:?}");
}

#[test]
fn in_turn_the_destinations_take_turns() {
    let found = rounds(2, &[3, 4, 5], Pairing::InTurn);
    let expected = [
        (vec![4, 5], 3),
        (vec![3, 5], 4),
        (vec![3, 4], 5),
        (vec![4, 5], 3),
    ];
    assert_eq!(found[..4], expected);
}

#[test]
fn an_incast_requires_enough_senders() {
    let population = |pairing| Population::Nodes {
        sources: &[1, 2, 3],
        destinations: &[3],
        pairing,
    };
    let of = |senders, pairing| {
        let workload = incast(senders, &json!(1), None);
        generate(
            &workload,
            population(pairing),
            Time::from_seconds(9.0),
            1,
            0,
        )
    };
    assert!(of(2, Pairing::Random).is_ok());
    assert_eq!(
        of(3, Pairing::Random),
        Err(WorkloadError::TooFewSenders {
            senders: 3,
            value: 2
        })
    );
    assert_eq!(of(2, Pairing::All), Err(WorkloadError::IncastPairing));
}
