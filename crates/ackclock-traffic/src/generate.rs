//! From a workload to its transfers.

mod incast;
mod loops;
mod open;

use std::sync::Arc;

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;

use crate::generated::Builder;
use crate::population::Pairs;
use crate::random::Streams;
use crate::{
    Arrivals, Ends, Generated, Population, Purpose, Size, SizeSampler, Start, Transfer, Workload,
    WorkloadError, MAX_TRANSFERS,
};

pub use open::Arriving;

#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

/// The source of a workload's transfers.
#[derive(Debug)]
pub enum Supply {
    /// They are drawn one after the other: arrivals that draw their ends (Poisson, periodic).
    Arriving(Arriving),
    /// They were drawn ahead.
    Drawn(Generated),
}

/// The transfers of a workload in a run of this duration, each drawn as late as possible.
///
/// `stream` separates the workloads of a run. The same arguments give the same transfers.
///
/// Closed loops are drawn ahead: as transfers take no negative time, a pair has no more of them than
/// fit when each takes none. Those that the run does not come to never begin.
///
/// # Errors
/// Parameters that make no distribution, a population without pairs, a loop that nothing bounds, more
/// than [`MAX_TRANSFERS`] transfers.
pub fn supply(
    workload: &Workload,
    population: Population<'_>,
    duration: Time,
    seed: u64,
    stream: u64,
) -> Result<Supply, WorkloadError> {
    let streams = Streams { seed, stream };
    supply_limited(MAX_TRANSFERS, workload, population, duration, streams)
}

/// Generate all transfers of a workload ahead, as [`supply`] draws them.
///
/// # Errors
/// As [`supply`].
pub fn generate(
    workload: &Workload,
    population: Population<'_>,
    duration: Time,
    seed: u64,
    stream: u64,
) -> Result<Generated, WorkloadError> {
    supply(workload, population, duration, seed, stream).map(Supply::drawn)
}

impl Supply {
    /// All transfers.
    fn drawn(self) -> Generated {
        match self {
            Supply::Arriving(arriving) => Generated {
                stop: arriving.stop(),
                transfers: arriving.collect(),
                gates: Vec::new(),
            },
            Supply::Drawn(made) => made,
        }
    }
}

/// Supply a workload with another limit on its transfers.
fn supply_limited(
    limit: u64,
    workload: &Workload,
    population: Population<'_>,
    duration: Time,
    streams: Streams,
) -> Result<Supply, WorkloadError> {
    workload.check()?;
    let sampler = workload.size.as_ref().map(Size::sampler).transpose()?;
    let (start, arrivals) = (workload.start, &workload.arrivals);
    let end = workload.stop.map_or(duration, |stop| stop.min(duration));
    let work = Work {
        start,
        end,
        streams,
        sizes: Sizes::new(sampler.map(Arc::new), streams.of(Purpose::Sizes)),
        ends: streams.of(Purpose::Ends),
        made: Builder::new(arrivals.kind(), end.since(start), limit),
    };
    work.supply(arrivals, population)
}

/// A workload on its way to transfers.
struct Work {
    start: Time,
    end: Time,
    streams: Streams,
    sizes: Sizes,
    /// Draws the ends.
    ends: Pcg64Mcg,
    made: Builder,
}

impl Work {
    fn supply(
        mut self,
        arrivals: &Arrivals,
        population: Population<'_>,
    ) -> Result<Supply, WorkloadError> {
        let span_s = self.end.since(self.start).seconds();
        if let Arrivals::Incast {
            senders,
            every,
            rounds,
        } = *arrivals
        {
            self.made.expect(arrivals.expected(1.0, span_s))?;
            self.incast(senders, every, rounds, population)?;
            return Ok(Supply::Drawn(self.made.finish(self.end)));
        }
        let pairs = Pairs::of(population, &mut self.ends)?;
        let count = pairs.count() as f64;
        self.made.expect(arrivals.expected(count, span_s))?;
        if let Some(gaps) = self.gaps(arrivals) {
            return self.arriving(gaps, pairs).map(Supply::Arriving);
        }
        self.draw(arrivals, &pairs)?;
        Ok(Supply::Drawn(self.made.finish(self.end)))
    }

    /// Draw the transfers of all pairs.
    fn draw(&mut self, arrivals: &Arrivals, pairs: &Pairs) -> Result<(), WorkloadError> {
        match arrivals {
            Arrivals::Once { jitter } => self.single_transfers(*jitter, pairs),
            Arrivals::Sources {
                jitter,
                think,
                transfers,
            } => self.sources(*jitter, *think, *transfers, pairs),
            Arrivals::Web(web) => self.web(web, pairs),
            Arrivals::Poisson { .. } | Arrivals::Periodic { .. } | Arrivals::Incast { .. } => {
                Ok(())
            }
        }
    }

    /// A transfer whose end nothing waits for. One that comes too late draws its size all the same: the
    /// end of the run does not move the others.
    fn transfer_at(&mut self, time: Time, ends: Ends) -> Result<(), WorkloadError> {
        let size_bytes = self.sizes.draw();
        if time >= self.end {
            return Ok(());
        }
        self.made.transfer(Transfer {
            start: Start::At(time),
            size_bytes,
            ends,
            completes: None,
        })
    }
}

/// Draws sizes, one after the other.
#[derive(Clone, Debug)]
struct Sizes {
    sampler: Option<Arc<SizeSampler>>,
    random: Pcg64Mcg,
}

impl Sizes {
    fn new(sampler: Option<Arc<SizeSampler>>, random: Pcg64Mcg) -> Sizes {
        Sizes { sampler, random }
    }

    /// The next size; `None` is endless.
    fn draw(&mut self) -> Option<u64> {
        let sampler = self.sampler.as_ref()?;
        Some(sampler.draw(&mut self.random))
    }
}
