//! Without SACK: what each duplicate acknowledgement stands for.
//!
//! A receiver acknowledges at once what comes above a hole, and what it has already (RFC 5681 section 4.2). Those of the
//! first kind are taken by the segments that are acknowledged together with what filled the hole, in their order. One
//! that is left when all is acknowledged that was sent before it is of the second kind: a copy was sent for nothing.
//!
//! Deviation: a segment that an acknowledgement delayed is taken for one that waited, if one may have.

use std::collections::VecDeque;

use super::Sending;

/// Duplicates that wait at once.
const MOST: usize = 4096;

/// An acknowledgement that repeats the one before it.
#[derive(Clone, Copy, Debug)]
struct Duplicate {
    heard_ns: i64,
    /// What was sent by then.
    next: u64,
}

/// Those that stand for nothing yet.
#[derive(Debug, Default)]
pub struct Duplicates {
    heard: VecDeque<Duplicate>,
    /// Those that can stand for nothing that waited.
    needless: VecDeque<i64>,
}

impl Duplicates {
    /// One more, when so much was sent.
    pub fn repeated(&mut self, heard_ns: i64, next: u64) {
        if self.heard.len() < MOST {
            self.heard.push_back(Duplicate { heard_ns, next });
        }
    }

    /// Whether one stands for a segment that waited above a hole, and was heard of at that time or later.
    pub fn waited(&mut self, soonest_ns: i64) -> bool {
        while let Some(first) = self.heard.pop_front() {
            if first.heard_ns >= soonest_ns {
                return true;
            }
            self.needless.push_back(first.heard_ns);
        }
        false
    }

    /// When the next one was heard that stands for no segment that waited, now that all before a position is
    /// acknowledged.
    fn take_needless(&mut self, una: u64) -> Option<i64> {
        let over = self.heard.front().is_some_and(|first| first.next <= una);
        if over {
            let first = self.heard.pop_front()?;
            self.needless.push_back(first.heard_ns);
        }
        self.needless.pop_front()
    }
}

impl Sending {
    /// Copies that came for nothing, as far as is known.
    pub(super) fn needless(&mut self) {
        while let Some(heard_ns) = self.duplicates.take_needless(self.una) {
            let soon_ns = self.soon_ns();
            self.settling
                .came_for_nothing(heard_ns, soon_ns, self.smoothed.srtt_ns);
        }
    }
}
