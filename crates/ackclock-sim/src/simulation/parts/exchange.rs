//! Exchange of packets between parts, in rounds.
//!
//! In each round every part sends packets, posts the time of its next event, and waits for the others. Then it reads what
//! the others have sent and posted, while they may already write for the next round: so there are two of everything,
//! for even and for odd rounds.
//!
//! A part that has to wait polls for a while, because waking a thread takes longer than a short window. Then it sleeps,
//! so that on a machine with other work the part that it waits for gets the core; where many waits were long it
//! sleeps sooner ([`PollLimit`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use ackclock_core::Time;

use crate::network::Handover;

/// Smallest and largest number of polls before a waiting part sleeps: some microseconds, about what a sleep and a wake
/// cost, and some hundred.
const POLLS: [u32; 2] = [200, 20_000];

/// Number of polls before a waiting part sleeps: doubled after a wait that ended meanwhile, halved after one that did not.
pub struct PollLimit(u32);

impl Default for PollLimit {
    fn default() -> PollLimit {
        PollLimit(POLLS[1])
    }
}

impl PollLimit {
    /// Adapt to a wait, which has ended while the part polled or not.
    fn adapt(&mut self, has_ended: bool) {
        let polls = if has_ended { 2 * self.0 } else { self.0 / 2 };
        self.0 = polls.clamp(POLLS[0], POLLS[1]);
    }
}

/// Packets and times that parts give each other.
pub struct Exchange {
    parts: usize,
    /// Packets by parity of the round, sending part and receiving part.
    mail: Vec<Mutex<Vec<Handover>>>,
    /// Posts by parity of the round and part.
    posts: Vec<Post>,
    /// Number of waits that have begun, of all parts.
    arrived: AtomicU64,
    has_failed: AtomicBool,
    /// Number of parts that sleep, or are about to.
    sleeping: AtomicU64,
    sleep: Mutex<()>,
    awake: Condvar,
}

/// Post of a part, apart from the others in the cache.
#[derive(Default)]
#[repr(align(128))]
struct Post {
    /// Time of its next event, in picoseconds.
    next: AtomicU64,
    /// Events of its last window.
    events: AtomicU64,
}

/// Ends the waits of the other parts if this one panics.
pub struct Guard<'a>(&'a Exchange);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.has_failed.store(true, Ordering::SeqCst);
            self.0.wake_all();
        }
    }
}

impl Exchange {
    /// Exchange between `parts` parts.
    pub fn new(parts: usize) -> Exchange {
        Exchange {
            parts,
            mail: (0..2 * parts * parts).map(|_| Mutex::default()).collect(),
            posts: (0..2 * parts).map(|_| Post::default()).collect(),
            arrived: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            sleeping: AtomicU64::new(0),
            sleep: Mutex::default(),
            awake: Condvar::new(),
        }
    }

    /// Guard of a part: without it the others would wait for ever if it panics.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    fn mail(&self, round: u64, (from, to): (usize, usize)) -> MutexGuard<'_, Vec<Handover>> {
        let parity = (round % 2) as usize;
        let index = (parity * self.parts + from) * self.parts + to;
        self.mail[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn posts(&self, round: u64) -> &[Post] {
        let first = (round % 2) as usize * self.parts;
        &self.posts[first..first + self.parts]
    }

    /// Send packets from a part to another; the vector is left empty.
    pub fn send(&self, round: u64, between: (usize, usize), handovers: &mut Vec<Handover>) {
        std::mem::swap(&mut *self.mail(round, between), handovers);
    }

    /// Post the time of a part's next event, and the number of events of its last window.
    pub fn post(&self, round: u64, part: usize, next: Time, events: u64) {
        let post = &self.posts(round)[part];
        post.next.store(next.picoseconds(), Ordering::Relaxed);
        post.events.store(events, Ordering::Relaxed);
    }

    /// Wait until all parts have sent and posted; returns false if one has failed.
    pub fn wait(&self, round: u64, poll_limit: &mut PollLimit) -> bool {
        let all = (round + 1) * self.parts as u64;
        if self.arrived.fetch_add(1, Ordering::SeqCst) + 1 == all {
            self.wake_all();
        } else {
            let has_ended = self.poll(all, poll_limit.0);
            poll_limit.adapt(has_ended);
            if !has_ended {
                self.sleep(all);
            }
        }
        !self.has_failed.load(Ordering::SeqCst)
    }

    /// Poll for the end of a wait for `all` arrivals; returns whether it has ended.
    fn poll(&self, all: u64, polls: u32) -> bool {
        (0..polls).any(|_| {
            std::hint::spin_loop();
            self.is_over(all)
        })
    }

    /// Sleep to the end of a wait for `all` arrivals.
    #[cold]
    fn sleep(&self, all: u64) {
        let mut lock = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        while !self.is_over(all) {
            lock = self
                .awake
                .wait(lock)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    /// True if `all` waits have begun, or a part has failed.
    fn is_over(&self, all: u64) -> bool {
        self.arrived.load(Ordering::SeqCst) >= all || self.has_failed.load(Ordering::SeqCst)
    }

    /// Wake the parts that sleep. One that counts itself as sleeping after this has read the count sees why it need not:
    /// both are sequentially consistent.
    fn wake_all(&self) {
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            let _lock = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
            self.awake.notify_all();
        }
    }

    /// Take the packets that were sent to a part, in the order of the sending parts.
    pub fn receive(&self, round: u64, to: usize, mut take: impl FnMut(Handover)) {
        for from in (0..self.parts).filter(|&from| from != to) {
            self.mail(round, (from, to)).drain(..).for_each(&mut take);
        }
    }

    /// Time of the next event of all parts.
    pub fn earliest(&self, round: u64) -> Time {
        let posts = self.posts(round).iter();
        let next = posts.map(|post| post.next.load(Ordering::Relaxed));
        next.min().map_or(Time::NEVER, Time::from_picoseconds)
    }

    /// Events in the last window: the sum over the parts, and the largest number of a part.
    pub fn events(&self, round: u64) -> (u64, u64) {
        let posts = self.posts(round).iter();
        let events = posts.map(|post| post.events.load(Ordering::Relaxed));
        events.fold((0, 0), |(sum, largest), events| {
            (sum + events, largest.max(events))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_the_earliest_time_of_all_parts() {
        let exchange = Exchange::new(3);
        let run = |part: usize| {
            let mut poll_limit = PollLimit::default();
            (0..1000).all(|round| {
                let next = Time::from_picoseconds(round * 10 + part as u64);
                exchange.post(round, part, next, part as u64);
                let waited = exchange.wait(round, &mut poll_limit);
                let earliest = Time::from_picoseconds(round * 10);
                waited && exchange.earliest(round) == earliest && exchange.events(round) == (3, 2)
            })
        };
        let all = thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|part| scope.spawn(move || run(part))).collect();
            threads
                .into_iter()
                .all(|thread| thread.join().unwrap_or(false))
        });
        assert!(all);
    }

    #[test]
    fn the_poll_limit_adapts_within_its_bounds() {
        let mut poll_limit = PollLimit::default();
        poll_limit.adapt(true);
        assert_eq!(poll_limit.0, POLLS[1]);
        poll_limit.adapt(false);
        assert_eq!(poll_limit.0, POLLS[1] / 2);
        (0..10).for_each(|_| poll_limit.adapt(false));
        assert_eq!(poll_limit.0, POLLS[0]);
        poll_limit.adapt(true);
        assert_eq!(poll_limit.0, 2 * POLLS[0]);
    }

    #[test]
    fn a_sleeping_part_wakes_when_the_last_arrives() {
        let exchange = Exchange::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| exchange.wait(0, &mut PollLimit::default()));
            while exchange.sleeping.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            assert!(exchange.wait(0, &mut PollLimit::default()));
            assert!(waiting.join().is_ok_and(|waited| waited));
        });
        assert_eq!(exchange.sleeping.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_sleeping_part_wakes_when_another_fails() {
        let exchange = Exchange::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| exchange.wait(0, &mut PollLimit::default()));
            while exchange.sleeping.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let failing = scope.spawn(|| {
                let _guard = exchange.guard();
                panic!("as it should");
            });
            assert!(failing.join().is_err());
            assert!(waiting.join().is_ok_and(|waited| !waited));
        });
    }

    #[test]
    fn a_wait_ends_when_a_part_has_failed() {
        let exchange = Exchange::new(2);
        let waited = thread::scope(|scope| {
            let failing = scope.spawn(|| {
                let _guard = exchange.guard();
                panic!("as it should");
            });
            assert!(failing.join().is_err());
            exchange.wait(0, &mut PollLimit::default())
        });
        assert!(!waited);
    }
}
