//! The plan of a workload: complete numbers in SI units, no defaults.
//!
//! Each field is required in the JSON (`null` where a quantity is absent); an unknown field is an error.

use ackclock_core::Time;
use serde::Deserialize;

use crate::error::{check_max, positive};
use crate::{Count, Duration, Size, WorkloadError, MAX_TRANSFERS};

#[cfg(test)]
mod tests;

/// The generator of one workload.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// When it begins.
    #[serde(rename = "start_s")]
    pub start: Time,
    /// No transfer begins at or after this; `null` is the end of the run.
    #[serde(rename = "stop_s", deserialize_with = "Option::deserialize")]
    pub stop: Option<Time>,
    /// When transfers begin.
    pub arrivals: Arrivals,
    /// The size of each transfer; `null` is endless. For a web page, of the embedded objects.
    #[serde(deserialize_with = "Option::deserialize")]
    pub size: Option<Size>,
}

/// When transfers begin.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// One transfer for each pair of the population, at the start.
    Once {
        /// Each start moves by a uniform draw from [0, this).
        #[serde(rename = "jitter_s")]
        jitter: Time,
    },
    /// A Poisson process from the start on; each arrival draws its ends.
    Poisson {
        /// Mean number of arrivals in a second.
        per_s: f64,
    },
    /// At the start and then at equal distances; each arrival draws its ends.
    Periodic {
        /// From one arrival to the next.
        #[serde(rename = "every_s")]
        every: Time,
    },
    /// A closed loop: each pair of the population transfers, thinks, transfers, …
    Sources {
        /// The first transfer's start moves by a uniform draw from [0, this).
        #[serde(rename = "jitter_s")]
        jitter: Time,
        /// From the end of a transfer to the start of the next.
        think: Duration,
        /// Transfers of each pair, at most; `null` is no limit and needs a think time.
        #[serde(deserialize_with = "Option::deserialize")]
        transfers: Option<u32>,
    },
    /// Web pages: each pair of the population is a user, the source being the server.
    Web(Web),
    /// Rounds: several senders to one destination, all at once.
    ///
    /// Of paths, the first `senders` ones. Of nodes with the pairing `random`, each round draws its
    /// destination and then its senders, all different; with `in_turn`, the destinations take turns and
    /// the senders are the first sources other than the destination.
    Incast {
        /// Senders of a round.
        senders: u32,
        /// From the start of a round to that of the next; `null`: a round starts when all transfers of
        /// the last one are complete (a barrier).
        #[serde(rename = "every_s", deserialize_with = "Option::deserialize")]
        every: Option<Time>,
        /// Rounds, at most; `null` is no limit and needs `every_s`.
        #[serde(deserialize_with = "Option::deserialize")]
        rounds: Option<u32>,
    },
}

/// Pages of the web, user by user.
///
/// A page is a main object, then the embedded objects over parallel lanes: object i takes lane i modulo
/// the number of lanes, and a lane takes its objects one after the other. When all are there, the user
/// thinks and requests the next page.
///
/// A browser gives the next object to the lane that is free first; here the lanes are dealt ahead, so
/// that a page's requests do not depend on the network.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// The first page's start moves by a uniform draw from [0, this).
    #[serde(rename = "jitter_s")]
    pub jitter: Time,
    /// From the end of a page to the start of the next.
    pub think: Duration,
    /// Pages of each user, at most; `null` is no limit and needs a think time.
    #[serde(deserialize_with = "Option::deserialize")]
    pub pages: Option<u32>,
    /// Size of the main object; `null` is as the embedded ones.
    #[serde(deserialize_with = "Option::deserialize")]
    pub size_main: Option<Size>,
    /// Embedded objects of a page.
    pub objects: Count,
    /// Lanes.
    pub parallel: u32,
}

impl Workload {
    /// Reject what cannot be generated, whatever the population. Sizes are checked when their samplers
    /// are made.
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        if let Some(stop) = self.stop.filter(|&stop| stop <= self.start) {
            let start = self.start;
            return Err(WorkloadError::StopsBeforeStart { start, stop });
        }
        self.arrivals.check()?;
        if self.size.is_none() && self.arrivals.waits_for_ends() {
            return Err(WorkloadError::Endless(self.arrivals.kind()));
        }
        Ok(())
    }
}

impl Arrivals {
    /// The name in the plan.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Arrivals::Once { .. } => "once",
            Arrivals::Poisson { .. } => "poisson",
            Arrivals::Periodic { .. } => "periodic",
            Arrivals::Sources { .. } => "sources",
            Arrivals::Web(_) => "web",
            Arrivals::Incast { .. } => "incast",
        }
    }

    /// Return true if some transfers begin when others are complete.
    fn waits_for_ends(&self) -> bool {
        match self {
            Arrivals::Once { .. } | Arrivals::Poisson { .. } | Arrivals::Periodic { .. } => false,
            Arrivals::Sources { .. } | Arrivals::Web(_) => true,
            Arrivals::Incast { every, .. } => every.is_none(),
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        match *self {
            Arrivals::Once { .. } => Ok(()),
            Arrivals::Poisson { per_s } => positive("per_s", per_s),
            Arrivals::Periodic { every } => positive("every_s", every.seconds()),
            Arrivals::Sources {
                think, transfers, ..
            } => self.check_loop(think, "transfers", transfers),
            Arrivals::Web(ref web) => {
                web.objects.check()?;
                positive("parallel", f64::from(web.parallel))?;
                self.check_loop(web.think, "pages", web.pages)
            }
            Arrivals::Incast {
                senders,
                every,
                rounds,
            } => {
                positive("senders", f64::from(senders))?;
                check_max("senders", f64::from(senders), MAX_TRANSFERS as f64)?;
                positive("every_s", every.map_or(1.0, Time::seconds))?;
                self.check_limit(every.is_some(), "every_s", "rounds", rounds)
            }
        }
    }

    fn check_loop(
        &self,
        think: Duration,
        limit: &'static str,
        most: Option<u32>,
    ) -> Result<(), WorkloadError> {
        think.check()?;
        self.check_limit(think.mean_s() > 0.0, "think time", limit, most)
    }

    /// A loop needs either something that takes time or a limit.
    fn check_limit(
        &self,
        takes_time: bool,
        missing: &'static str,
        limit: &'static str,
        most: Option<u32>,
    ) -> Result<(), WorkloadError> {
        match most {
            Some(most) => positive(limit, f64::from(most)),
            None if takes_time => Ok(()),
            None => Err(WorkloadError::Unbounded {
                kind: self.kind(),
                missing,
                limit,
            }),
        }
    }

    /// Return the expected number of transfers among `pairs` pairs in `span_s` seconds, if transfers took no time.
    pub(crate) fn expected(&self, pairs: f64, span_s: f64) -> f64 {
        let limited =
            |count: f64, most: Option<u32>| count.min(most.map_or(f64::INFINITY, f64::from));
        match *self {
            Arrivals::Once { .. } => pairs,
            Arrivals::Poisson { per_s } => per_s * span_s,
            Arrivals::Periodic { every } => span_s / every.seconds(),
            Arrivals::Sources {
                think, transfers, ..
            } => pairs * limited(1.0 + span_s / think.mean_s(), transfers),
            Arrivals::Web(ref web) => {
                let pages = limited(1.0 + span_s / web.think.mean_s(), web.pages);
                pairs * pages * (1.0 + web.objects.mean())
            }
            Arrivals::Incast {
                senders,
                every,
                rounds,
            } => {
                let by_time = every.map_or(f64::INFINITY, |every| span_s / every.seconds());
                f64::from(senders) * limited(by_time, rounds)
            }
        }
    }
}
