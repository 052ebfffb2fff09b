//! Closed loops: sources and users of the web, who think between transfers.
//!
//! Each pair draws from streams of its own, so that it does the same however many others there are and
//! however long the run is.

use std::sync::Arc;

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;

use super::open::jittered;
use super::{Sizes, Work};
use crate::population::Pairs;
use crate::random::next_pair;
use crate::{Count, Duration, Ends, Purpose, Size, Start, Transfer, Web, WorkloadError};

/// The rounds of one pair: a transfer or a page each.
struct Rounds {
    /// When the next round begins if no transfer takes any time.
    earliest: Time,
    end: Time,
    left: Option<u32>,
    think: Duration,
    random: Pcg64Mcg,
}

impl Rounds {
    /// Draw the think time before the next round; `None`: this is the last.
    fn think(&mut self) -> Option<Time> {
        let think = self.think.draw(&mut self.random);
        self.earliest += think;
        self.left = self.left.map(|left| left - 1);
        (self.left != Some(0) && self.earliest < self.end).then_some(think)
    }
}

/// The requests of one user of the web.
struct User {
    ends: Ends,
    main: Sizes,
    embedded: Sizes,
    objects: Count,
    counts: Pcg64Mcg,
    parallel: u64,
}

impl Work {
    /// Each pair transfers, thinks, transfers, …
    pub(super) fn sources(
        &mut self,
        jitter: Time,
        think: Duration,
        transfers: Option<u32>,
        pairs: &Pairs,
    ) -> Result<(), WorkloadError> {
        let mut arrivals = self.streams.of(Purpose::Arrivals);
        let mut thinks = self.streams.of(Purpose::Thinks);
        for ends in pairs.each(&mut self.ends)? {
            let first = self.start + jittered(jitter, &mut arrivals);
            let mut rounds = self.rounds(first, think, transfers, &mut thinks);
            let mut own = Sizes::new(
                self.sizes.sampler.clone(),
                next_pair(&mut self.sizes.random),
            );
            if first < self.end {
                self.source(ends, first, &mut rounds, &mut own)?;
            }
        }
        Ok(())
    }

    fn source(
        &mut self,
        ends: Ends,
        first: Time,
        rounds: &mut Rounds,
        sizes: &mut Sizes,
    ) -> Result<(), WorkloadError> {
        let mut start = Some(Start::At(first));
        while let Some(now) = start {
            let gate = rounds.think().map(|think| self.made.gate(1, think));
            self.made.transfer(Transfer {
                start: now,
                size_bytes: sizes.draw(),
                ends,
                completes: gate,
            })?;
            start = gate.map(Start::Gate);
        }
        Ok(())
    }

    /// Each pair is a user who loads page after page.
    pub(super) fn web(&mut self, web: &Web, pairs: &Pairs) -> Result<(), WorkloadError> {
        let main = web.size_main.as_ref().map(Size::sampler).transpose()?;
        let main = main.map(Arc::new).or_else(|| self.sizes.sampler.clone());
        let mut arrivals = self.streams.of(Purpose::Arrivals);
        let mut thinks = self.streams.of(Purpose::Thinks);
        let mut main_sizes = self.streams.of(Purpose::MainSizes);
        let mut counts = self.streams.of(Purpose::Objects);
        for ends in pairs.each(&mut self.ends)? {
            let first = self.start + jittered(web.jitter, &mut arrivals);
            let mut rounds = self.rounds(first, web.think, web.pages, &mut thinks);
            let mut user = User {
                ends,
                main: Sizes::new(main.clone(), next_pair(&mut main_sizes)),
                embedded: Sizes::new(
                    self.sizes.sampler.clone(),
                    next_pair(&mut self.sizes.random),
                ),
                objects: web.objects,
                counts: next_pair(&mut counts),
                parallel: u64::from(web.parallel),
            };
            if first < self.end {
                self.pages(&mut user, first, &mut rounds)?;
            }
        }
        Ok(())
    }

    fn pages(
        &mut self,
        user: &mut User,
        first: Time,
        rounds: &mut Rounds,
    ) -> Result<(), WorkloadError> {
        let mut start = Some(Start::At(first));
        while let Some(now) = start {
            let objects = user.objects.draw(&mut user.counts);
            let lanes = user.parallel.min(objects);
            let next = rounds
                .think()
                .map(|think| self.made.gate(lanes.max(1) as u32, think));
            self.page(user, now, objects, lanes, next)?;
            start = next.map(Start::Gate);
        }
        Ok(())
    }

    /// The main object, then the others; the last of each lane completes `next`.
    fn page(
        &mut self,
        user: &mut User,
        start: Start,
        objects: u64,
        lanes: u64,
        next: Option<u32>,
    ) -> Result<(), WorkloadError> {
        let shown = (objects > 0).then(|| self.made.gate(1, Time::ZERO));
        self.made.transfer(Transfer {
            start,
            size_bytes: user.main.draw(),
            ends: user.ends,
            completes: shown.or(next),
        })?;
        let Some(shown) = shown else { return Ok(()) };
        let mut opens = vec![shown; lanes as usize];
        for object in 0..objects {
            let open = &mut opens[(object % lanes) as usize];
            let is_last = object + lanes >= objects;
            let then = if is_last {
                next
            } else {
                Some(self.made.gate(1, Time::ZERO))
            };
            self.made.transfer(Transfer {
                start: Start::Gate(*open),
                size_bytes: user.embedded.draw(),
                ends: user.ends,
                completes: then,
            })?;
            *open = then.unwrap_or(*open);
        }
        Ok(())
    }

    fn rounds(
        &self,
        first: Time,
        think: Duration,
        left: Option<u32>,
        thinks: &mut Pcg64Mcg,
    ) -> Rounds {
        Rounds {
            earliest: first,
            end: self.end,
            left,
            think,
            random: next_pair(thinks),
        }
    }
}
