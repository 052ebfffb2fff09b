//! Rounds of several senders to one destination.

use std::collections::BTreeSet;

use ackclock_core::Time;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::Work;
use crate::population::{check_nodes, nodes, one_of};
use crate::{Ends, Pairing, Population, Start, Transfer, WorkloadError};

/// The participants of the rounds.
enum Table<'a> {
    /// The same paths in each round.
    Paths(u32),
    /// Sources and destinations; drawn for each round, or in turn.
    Nodes {
        sources: Vec<u32>,
        destinations: &'a [u32],
        drawn: bool,
    },
}

impl Work {
    /// Rounds at fixed times, or each when the last is complete.
    pub(super) fn incast(
        &mut self,
        senders: u32,
        every: Option<Time>,
        rounds: Option<u32>,
        population: Population<'_>,
    ) -> Result<(), WorkloadError> {
        let mut table = Table::of(population, senders)?;
        let mut time = self.start;
        let mut start = Start::At(time);
        for round in 0..rounds.unwrap_or(u32::MAX) {
            if time >= self.end {
                break;
            }
            let waits = every.is_none() && rounds != Some(round + 1);
            let gate = waits.then(|| self.made.gate(senders, Time::ZERO));
            for ends in table.ends(round, senders, &mut self.ends) {
                let size_bytes = self.sizes.draw();
                self.made.transfer(Transfer {
                    start,
                    size_bytes,
                    ends,
                    completes: gate,
                })?;
            }
            time += every.unwrap_or(Time::ZERO);
            start = gate.map_or(Start::At(time), Start::Gate);
        }
        Ok(())
    }
}

impl<'a> Table<'a> {
    fn of(population: Population<'a>, senders: u32) -> Result<Table<'a>, WorkloadError> {
        let (sources, destinations, pairing) = match population {
            Population::Paths(paths) => {
                enough(senders, paths as usize)?;
                return Ok(Table::Paths(senders));
            }
            Population::Nodes {
                sources,
                destinations,
                pairing,
            } => (sources, destinations, pairing),
        };
        if !matches!(pairing, Pairing::Random | Pairing::InTurn) {
            return Err(WorkloadError::IncastPairing);
        }
        check_nodes(sources, destinations)?;
        let sending: BTreeSet<_> = sources.iter().collect();
        let sends_too = destinations.iter().any(|node| sending.contains(node));
        enough(senders, sources.len() - usize::from(sends_too))?;
        Ok(Table::Nodes {
            sources: sources.to_vec(),
            destinations,
            drawn: pairing == Pairing::Random,
        })
    }

    /// The ends of a round's transfers.
    fn ends(&mut self, round: u32, senders: u32, random: &mut Pcg64Mcg) -> Vec<Ends> {
        let senders = senders as usize;
        match self {
            Table::Paths(paths) => (0..*paths).map(Ends::Path).collect(),
            Table::Nodes {
                sources,
                destinations,
                drawn: true,
            } => {
                let destination = one_of(destinations, random);
                // One more than needed: the destination may be among them.
                let some = (senders + 1).min(sources.len());
                let (first, _) = sources.partial_shuffle(random, some);
                to(destination, first, senders)
            }
            Table::Nodes {
                sources,
                destinations,
                ..
            } => {
                let turn = round as usize % destinations.len();
                to(destinations[turn], sources, senders)
            }
        }
    }
}

/// From the first `senders` sources other than the destination.
fn to(destination: u32, sources: &[u32], senders: usize) -> Vec<Ends> {
    let others = sources.iter().filter(|&&source| source != destination);
    let ends = others.map(|&source| nodes(source, destination));
    ends.take(senders).collect()
}

fn enough(senders: u32, found: usize) -> Result<(), WorkloadError> {
    if senders as usize <= found {
        Ok(())
    } else {
        Err(WorkloadError::TooFewSenders {
            senders,
            value: found,
        })
    }
}
