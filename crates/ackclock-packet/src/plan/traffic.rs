//! Generated transfers.

use ackclock_traffic::{Pairing, Workload};
use ackclock_units::Rate;
use serde::Deserialize;

use super::{GroupPlan, PathPlan};
use crate::PlanError;

/// TCP transfers that are drawn from the seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// Priority of the packets, both ways, 0 to 15.
    pub priority: u8,
    /// The receivers open the connections and ask with so many bytes; `null`: the senders open them.
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
    /// Which transfers, and when.
    pub workload: Workload,
}

/// Between whom transfers are.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PopulationPlan {
    /// Ways that are given, each with a sender and a receiver of its own.
    Paths {
        /// There and back.
        paths: Vec<WayPlan>,
    },
    /// Hosts, between which the engine finds the ways: indexes into the plan's nodes.
    Nodes {
        /// Those that send.
        sources: Vec<u32>,
        /// Those that receive.
        destinations: Vec<u32>,
        /// Who sends to whom.
        pairing: Pairing,
    },
}

/// A way there and back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WayPlan {
    /// Way of the data.
    pub forward: PathPlan,
    /// Way of the ACKs.
    pub reverse: PathPlan,
}

impl TrafficPlan {
    /// The ways that are given.
    pub fn ways(&self) -> &[WayPlan] {
        match &self.population {
            PopulationPlan::Paths { paths } => paths,
            PopulationPlan::Nodes { .. } => &[],
        }
    }

    /// Its group, which must describe a TCP.
    pub(super) fn check_group(&self, groups: &[GroupPlan]) -> Result<(), PlanError> {
        let group = groups.get(self.group as usize);
        match group.and_then(|group| group.congestion.as_ref().zip(group.tcp.as_ref())) {
            None => Err(PlanError::NoTcp(self.group)),
            Some((_, tcp)) => {
                tcp.check()?;
                tcp.check_request(self.request_bytes)
            }
        }
    }
}
