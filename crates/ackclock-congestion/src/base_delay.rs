//! The base delay of a path: the smallest delay of the last minutes.
//!
//! RFC 6817 section 2.4.2: the smallest delay of each of the last minutes is kept, so that a path that became longer is
//! noticed after so many minutes.

use std::collections::VecDeque;

use ackclock_core::Time;

/// The base delays are kept by the minute.
const MINUTE_S: f64 = 60.0;

/// The smallest delay of each of the last minutes.
#[derive(Clone, Debug)]
pub struct BaseDelay {
    /// `BASE_HISTORY`, in minutes.
    history: usize,
    /// The present minute last.
    delays: VecDeque<Time>,
    /// The minute of the last of them.
    minute: u64,
}

impl BaseDelay {
    /// A history of so many minutes.
    pub fn new(history: u32) -> BaseDelay {
        BaseDelay {
            history: history as usize,
            delays: VecDeque::new(),
            minute: 0,
        }
    }

    /// Add a delay.
    pub fn update(&mut self, delay: Time, now: Time) {
        let minute = (now.seconds() / MINUTE_S) as u64;
        match self.delays.back_mut() {
            Some(last) if minute == self.minute => *last = delay.min(*last),
            _ => self.delays.push_back(delay),
        }
        self.minute = minute;
        if self.delays.len() > self.history {
            self.delays.pop_front();
        }
    }

    /// The smallest delay; none before the first.
    pub fn min(&self) -> Option<Time> {
        self.delays.iter().min().copied()
    }
}
