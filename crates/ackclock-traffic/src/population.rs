//! Between whom transfers are.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::WorkloadError;

#[cfg(test)]
mod tests;

/// The participants of a workload.
#[derive(Clone, Copy, Debug)]
pub enum Population<'a> {
    /// Paths that are given, numbered from 0: this many, > 0. Each is one pair.
    Paths(u32),
    /// Nodes of a network.
    Nodes {
        /// The nodes that send, each once.
        sources: &'a [u32],
        /// The nodes that receive, each once. A node may be in both lists; it never sends to itself.
        destinations: &'a [u32],
        /// The pairing of senders and receivers.
        pairing: Pairing,
    },
}

/// The pairing of senders and receivers.
///
/// Arrivals that draw their ends (Poisson, periodic) draw one of the pairs, all alike. The others
/// (once, sources, web) go through all pairs. Incast has a reading of its own, see
/// [`Arrivals::Incast`](crate::Arrivals::Incast).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Drawn arrivals: any source and any other destination. Otherwise: each source and one other
    /// destination drawn for it.
    Random,
    /// Each source and a destination of its own, drawn once; no host sends to itself.
    Permutation,
    /// Every source and every other destination.
    All,
    /// Source i and destination i.
    InTurn,
}

/// The two ends of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The path of this number.
    Path(u32),
    /// Two nodes.
    Nodes {
        /// The node that sends.
        source: u32,
        /// The node that receives.
        destination: u32,
    },
}

/// The pairs of a population.
#[derive(Clone, Debug)]
pub(crate) enum Pairs {
    Paths(u32),
    /// Each source with a destination of its own.
    OneToOne(Vec<Ends>),
    /// Sources and destinations that may meet; `all` do, or each source meets one.
    Crossed {
        sources: Vec<u32>,
        destinations: Vec<u32>,
        all: bool,
    },
}

impl Pairs {
    /// Check a population and find its pairs.
    pub fn of(population: Population<'_>, random: &mut Pcg64Mcg) -> Result<Self, WorkloadError> {
        let (sources, destinations, pairing) = match population {
            Population::Paths(0) => return Err(WorkloadError::NoPair),
            Population::Paths(paths) => return Ok(Pairs::Paths(paths)),
            Population::Nodes {
                sources,
                destinations,
                pairing,
            } => (sources, destinations, pairing),
        };
        check_nodes(sources, destinations)?;
        match pairing {
            Pairing::Random | Pairing::All => Ok(Pairs::Crossed {
                sources: sources.to_vec(),
                destinations: destinations.to_vec(),
                all: pairing == Pairing::All,
            }),
            Pairing::InTurn => one_to_one(sources, destinations).map(Pairs::OneToOne),
            Pairing::Permutation => permutation(sources, destinations, random).map(Pairs::OneToOne),
        }
    }

    /// Return the number of pairs of one-shot, source and web workloads.
    pub fn count(&self) -> u64 {
        match self {
            Pairs::Paths(paths) => u64::from(*paths),
            Pairs::OneToOne(pairs) => pairs.len() as u64,
            Pairs::Crossed {
                sources,
                destinations,
                all: true,
            } => pairs_of_all(sources, destinations),
            Pairs::Crossed { sources, .. } => sources.len() as u64,
        }
    }

    /// All pairs, in order.
    pub fn each(&self, random: &mut Pcg64Mcg) -> Result<Vec<Ends>, WorkloadError> {
        match self {
            Pairs::Paths(paths) => Ok((0..*paths).map(Ends::Path).collect()),
            Pairs::OneToOne(pairs) => Ok(pairs.clone()),
            Pairs::Crossed {
                sources,
                destinations,
                all: true,
            } => Ok(all(sources, destinations)),
            Pairs::Crossed {
                sources,
                destinations,
                ..
            } => sources
                .iter()
                .map(|&source| other(source, destinations, random))
                .collect(),
        }
    }

    /// One of the pairs, all alike.
    pub fn draw(&self, random: &mut Pcg64Mcg) -> Ends {
        match self {
            Pairs::Paths(paths) => Ends::Path(random.gen_range(0..*paths)),
            Pairs::OneToOne(pairs) => pairs[random.gen_range(0..pairs.len())],
            // There is a pair: check_nodes has seen to that.
            Pairs::Crossed {
                sources,
                destinations,
                ..
            } => loop {
                let source = one_of(sources, random);
                let destination = one_of(destinations, random);
                if source != destination {
                    return nodes(source, destination);
                }
            },
        }
    }
}

/// A transfer's ends.
pub(crate) fn nodes(source: u32, destination: u32) -> Ends {
    Ends::Nodes {
        source,
        destination,
    }
}

/// One of the nodes, all alike.
pub(crate) fn one_of(nodes: &[u32], random: &mut Pcg64Mcg) -> u32 {
    nodes[random.gen_range(0..nodes.len())]
}

/// Reject nodes listed twice, and lists without a pair.
pub(crate) fn check_nodes(sources: &[u32], destinations: &[u32]) -> Result<(), WorkloadError> {
    for (list, nodes) in [("sources", sources), ("destinations", destinations)] {
        let mut seen = BTreeSet::new();
        if let Some(&node) = nodes.iter().find(|&&node| !seen.insert(node)) {
            return Err(WorkloadError::Repeated { node, list });
        }
    }
    if pairs_of_all(sources, destinations) == 0 {
        return Err(WorkloadError::NoPair);
    }
    Ok(())
}

/// Return the number of pairs of a source and another destination.
fn pairs_of_all(sources: &[u32], destinations: &[u32]) -> u64 {
    let sending: BTreeSet<_> = sources.iter().collect();
    let both = destinations.iter().filter(|node| sending.contains(node));
    sources.len() as u64 * destinations.len() as u64 - both.count() as u64
}

fn all(sources: &[u32], destinations: &[u32]) -> Vec<Ends> {
    let of = |&source: &u32| {
        let others = destinations.iter().filter(move |&&node| node != source);
        others.map(move |&destination| nodes(source, destination))
    };
    sources.iter().flat_map(of).collect()
}

/// The source and another destination, all alike.
fn other(source: u32, destinations: &[u32], random: &mut Pcg64Mcg) -> Result<Ends, WorkloadError> {
    if destinations == [source] {
        return Err(WorkloadError::ToItself(source));
    }
    loop {
        let destination = one_of(destinations, random);
        if destination != source {
            return Ok(nodes(source, destination));
        }
    }
}

/// Source i and destination i.
fn one_to_one(sources: &[u32], destinations: &[u32]) -> Result<Vec<Ends>, WorkloadError> {
    if sources.len() != destinations.len() {
        return Err(WorkloadError::Unequal {
            sources: sources.len(),
            destinations: destinations.len(),
        });
    }
    let pairs = sources.iter().zip(destinations);
    match pairs
        .clone()
        .find(|(source, destination)| source == destination)
    {
        Some((&node, _)) => Err(WorkloadError::ToItself(node)),
        None => Ok(pairs.map(|(&from, &to)| nodes(from, to)).collect()),
    }
}

/// Shuffles the destinations until no host sends to itself: all such permutations are alike. With the
/// same nodes on both sides a shuffle in e = 2.72 is one.
fn permutation(
    sources: &[u32],
    destinations: &[u32],
    random: &mut Pcg64Mcg,
) -> Result<Vec<Ends>, WorkloadError> {
    let mut shuffled = destinations.to_vec();
    loop {
        shuffled.shuffle(random);
        match one_to_one(sources, &shuffled) {
            Err(WorkloadError::ToItself(_)) => {}
            pairs_or_unequal => return pairs_or_unequal,
        }
    }
}
