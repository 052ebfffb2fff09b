//! Pairs: who meets whom, and how often.

use super::*;
use crate::random::{stream, Purpose};

fn population<'a>(sources: &'a [u32], destinations: &'a [u32], pairing: Pairing) -> Population<'a> {
    Population::Nodes {
        sources,
        destinations,
        pairing,
    }
}

fn each(population: Population<'_>, seed: u64) -> Result<Vec<Ends>, WorkloadError> {
    let mut random = stream(seed, 0, Purpose::Ends);
    let pairs = Pairs::of(population, &mut random)?;
    let each = pairs.each(&mut random)?;
    assert_eq!(each.len() as u64, pairs.count());
    Ok(each)
}

fn both(ends: Ends) -> (u32, u32) {
    match ends {
        Ends::Nodes {
            source,
            destination,
        } => (source, destination),
        Ends::Path(path) => panic!("path {path}"),
    }
}

#[test]
fn a_permutation_gives_each_node_one_partner_and_never_itself() {
    let nodes: Vec<u32> = (10..26).collect();
    for seed in 0..200 {
        let pairs = each(population(&nodes, &nodes, Pairing::Permutation), seed).expect("pairs");
        let (from, mut to): (Vec<u32>, Vec<u32>) = pairs.into_iter().map(both).unzip();
        assert_eq!(from, nodes);
        assert!(from.iter().zip(&to).all(|(from, to)| from != to));
        to.sort_unstable();
        assert_eq!(to, nodes);
    }
}

/// Four nodes have nine permutations without a fixed point. χ² with 8 degrees of freedom is above 26.1
/// once in a thousand.
#[test]
fn all_permutations_are_alike() {
    let nodes = [0, 1, 2, 3];
    let mut counts = std::collections::BTreeMap::new();
    let samples = 9000;
    for seed in 0..samples {
        let pairs = each(population(&nodes, &nodes, Pairing::Permutation), seed).expect("pairs");
        let to: Vec<u32> = pairs.into_iter().map(|ends| both(ends).1).collect();
        *counts.entry(to).or_insert(0.0) += 1.0;
    }
    assert_eq!(counts.len(), 9);
    let expected = samples as f64 / 9.0;
    let squares = counts
        .values()
        .map(|count: &f64| (count - expected).powi(2));
    assert!(squares.sum::<f64>() / expected < 26.1, "{counts:?}");
}

#[test]
fn a_permutation_finds_the_only_way() {
    let pairs = each(population(&[1, 2], &[1, 3], Pairing::Permutation), 5).expect("pairs");
    assert_eq!(pairs, [nodes(1, 3), nodes(2, 1)]);
}

#[test]
fn all_is_everyone_with_every_other() {
    let pairs = each(population(&[1, 2, 3], &[1, 2], Pairing::All), 1).expect("pairs");
    let expected = [(1, 2), (2, 1), (3, 1), (3, 2)].map(|(from, to)| nodes(from, to));
    assert_eq!(pairs, expected);
}

#[test]
fn in_turn_keeps_the_order() {
    let pairs = each(population(&[5, 6], &[8, 7], Pairing::InTurn), 1).expect("pairs");
    assert_eq!(pairs, [nodes(5, 8), nodes(6, 7)]);
}

#[test]
fn random_gives_each_source_another_node() {
    let nodes = [1, 2, 3, 4, 5];
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let pairs = each(population(&nodes, &nodes, Pairing::Random), seed).expect("pairs");
        assert!(pairs.iter().map(|&ends| both(ends).0).eq(nodes));
        seen.extend(pairs.into_iter().map(both));
    }
    assert_eq!(seen.len(), 20);
    assert!(seen.iter().all(|(from, to)| from != to));
}

/// χ² with 11 degrees of freedom is above 31.3 once in a thousand.
#[test]
fn drawn_pairs_are_all_alike() {
    let nodes = [1, 2, 3, 4];
    let mut random = stream(3, 0, Purpose::Ends);
    let pairs = Pairs::of(population(&nodes, &nodes, Pairing::Random), &mut random).expect("pairs");
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..12_000 {
        *counts.entry(both(pairs.draw(&mut random))).or_insert(0.0) += 1.0;
    }
    assert_eq!(counts.len(), 12);
    let squares = counts.values().map(|count: &f64| (count - 1000.0).powi(2));
    assert!(squares.sum::<f64>() / 1000.0 < 31.3, "{counts:?}");
}

#[test]
fn paths_are_pairs() {
    let pairs = each(Population::Paths(3), 1).expect("pairs");
    assert_eq!(pairs, [0, 1, 2].map(Ends::Path));
}

#[test]
fn populations_without_pairs_are_rejected() {
    let refused = |sources: &[u32], destinations: &[u32], pairing| {
        each(population(sources, destinations, pairing), 1).expect_err("an error")
    };
    let none = WorkloadError::NoPair;
    assert_eq!(each(Population::Paths(0), 1), Err(none.clone()));
    assert_eq!(refused(&[], &[1], Pairing::All), none);
    assert_eq!(refused(&[1], &[1], Pairing::Permutation), none);
    let unequal = WorkloadError::Unequal {
        sources: 2,
        destinations: 1,
    };
    assert_eq!(refused(&[1, 2], &[3], Pairing::Permutation), unequal);
    assert_eq!(refused(&[1, 2], &[3], Pairing::InTurn), unequal);
    assert_eq!(
        refused(&[1, 2], &[3, 2], Pairing::InTurn),
        WorkloadError::ToItself(2)
    );
    assert_eq!(
        refused(&[2, 1], &[1], Pairing::Random),
        WorkloadError::ToItself(1)
    );
    let twice = WorkloadError::Repeated {
        node: 4,
        list: "destinations",
    };
    assert_eq!(refused(&[1, 2], &[4, 3, 4], Pairing::All), twice);
}
