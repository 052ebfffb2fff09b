//! Generated transfers.

use ackclock_core::Rate;
use ackclock_traffic::{Pairing, Population, Workload};
use serde::Deserialize;

use crate::network::PathPairPlan;

/// TCP transfers that are drawn from the seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// Priority of the packets, both ways, 0 to 15.
    pub priority: u8,
    /// Bytes of the request, if the receivers open the connections; `null`: the senders open them.
    #[serde(deserialize_with = "Option::deserialize")]
    pub request_bytes: Option<u32>,
    /// Rate at which each application writes; `null` is as fast as TCP takes it.
    #[serde(
        rename = "application_rate_bps",
        deserialize_with = "Option::deserialize"
    )]
    pub application_rate: Option<Rate>,
    /// Between whom.
    pub population: PopulationPlan,
    /// Transfers and their times.
    pub workload: Workload,
}

/// Between whom transfers are.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PopulationPlan {
    /// Paths that are given, each pair with a sender and a receiver of its own.
    Paths {
        /// Forward and reverse paths.
        paths: Vec<PathPairPlan>,
    },
    /// Hosts, between which the engine finds the paths: indexes into the plan's nodes.
    Nodes {
        /// Sources.
        sources: Vec<u32>,
        /// Destinations.
        destinations: Vec<u32>,
        /// Pairing of sources and destinations.
        pairing: Pairing,
    },
}

impl TrafficPlan {
    /// The pairs of paths that are given.
    pub fn paths(&self) -> &[PathPairPlan] {
        match &self.population {
            PopulationPlan::Paths { paths } => paths,
            PopulationPlan::Nodes { .. } => &[],
        }
    }

    /// Population for the generator.
    pub fn population(&self) -> Population<'_> {
        match &self.population {
            PopulationPlan::Paths { paths } => Population::Paths(paths.len() as u32),
            PopulationPlan::Nodes {
                sources,
                destinations,
                pairing,
            } => Population::Nodes {
                sources,
                destinations,
                pairing: *pairing,
            },
        }
    }
}
