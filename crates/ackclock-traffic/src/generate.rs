//! From a workload to its transfers.

mod incast;
mod loops;
mod open;

use ackclock_units::Time;
use rand_pcg::Pcg64Mcg;

use crate::generated::Builder;
use crate::population::Pairs;
use crate::random::Streams;
use crate::{
    Arrivals, Ends, Generated, Population, Purpose, Size, SizeSampler, Start, Transfer, Workload,
    WorkloadError, MOST_TRANSFERS,
};

#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

/// All transfers of a workload in a run of this duration.
///
/// `stream` tells the workloads of a run apart. The same arguments give the same transfers.
///
/// Closed loops are drawn ahead: as transfers take no negative time, a pair has no more of them than
/// fit when each takes none. Those that the run does not come to never begin.
///
/// # Errors
/// Parameters that make no distribution, a population without pairs, a loop that nothing bounds, more
/// than [`MOST_TRANSFERS`] transfers.
pub fn generate(
    workload: &Workload,
    population: Population<'_>,
    duration: Time,
    seed: u64,
    stream: u64,
) -> Result<Generated, WorkloadError> {
    let streams = Streams { seed, stream };
    generate_at_most(MOST_TRANSFERS, workload, population, duration, streams)
}

/// As [`generate`], with another limit.
fn generate_at_most(
    most: u64,
    workload: &Workload,
    population: Population<'_>,
    duration: Time,
    streams: Streams,
) -> Result<Generated, WorkloadError> {
    workload.check()?;
    let sampler = workload.size.as_ref().map(Size::sampler).transpose()?;
    let (start, arrivals) = (workload.start, &workload.arrivals);
    let end = workload.stop.map_or(duration, |stop| stop.min(duration));
    let mut work = Work {
        start,
        end,
        streams,
        sizes: Sizes::new(sampler.as_ref(), streams.of(Purpose::Sizes)),
        ends: streams.of(Purpose::Ends),
        made: Builder::new(arrivals.kind(), end.since(start), most),
    };
    work.arrive(arrivals, population)?;
    Ok(work.made.finish(end))
}

/// A workload on its way to transfers.
struct Work<'a> {
    start: Time,
    end: Time,
    streams: Streams,
    sizes: Sizes<'a>,
    /// Draws the ends.
    ends: Pcg64Mcg,
    made: Builder,
}

impl Work<'_> {
    fn arrive(
        &mut self,
        arrivals: &Arrivals,
        population: Population<'_>,
    ) -> Result<(), WorkloadError> {
        let span_s = self.end.since(self.start).seconds();
        if let Arrivals::Incast {
            senders,
            every,
            rounds,
        } = *arrivals
        {
            self.made.expect(arrivals.expected(1.0, span_s))?;
            return self.incast(senders, every, rounds, population);
        }
        let pairs = Pairs::of(population, &mut self.ends)?;
        let count = pairs.count() as f64;
        self.made.expect(arrivals.expected(count, span_s))?;
        match arrivals {
            Arrivals::Once { jitter } => self.once(*jitter, &pairs),
            Arrivals::Poisson { per_s } => self.poisson(*per_s, &pairs),
            Arrivals::Periodic { every } => self.periodic(*every, &pairs),
            Arrivals::Sources {
                jitter,
                think,
                transfers,
            } => self.sources(*jitter, *think, *transfers, &pairs),
            Arrivals::Web(web) => self.web(web, &pairs),
            Arrivals::Incast { .. } => Ok(()),
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
struct Sizes<'a> {
    sampler: Option<&'a SizeSampler>,
    random: Pcg64Mcg,
}

impl<'a> Sizes<'a> {
    fn new(sampler: Option<&'a SizeSampler>, random: Pcg64Mcg) -> Sizes<'a> {
        Sizes { sampler, random }
    }

    /// The next size; `None` is endless.
    fn draw(&mut self) -> Option<u64> {
        let sampler = self.sampler?;
        Some(sampler.draw(&mut self.random))
    }
}
