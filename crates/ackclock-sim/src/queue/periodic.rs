//! The times at which a control law is updated, however seldom packets come by.

use ackclock_core::Time;

/// When the next update is due.
#[derive(Clone, Copy, Debug)]
pub struct Updates {
    next: Time,
    period: Time,
}

/// Whether updates can have this period.
pub fn is_period(time: Time) -> bool {
    time > Time::ZERO && !time.is_never()
}

impl Updates {
    /// One each `period` from `first` on.
    pub fn new(first: Time, period: Time) -> Updates {
        Updates {
            next: first,
            period,
        }
    }

    /// Carries out the updates up to `now`, each at its time. Once `update` says that those after it change
    /// nothing, they are left out.
    #[inline]
    pub fn catch_up(&mut self, now: Time, mut update: impl FnMut(Time) -> bool) {
        while self.next <= now {
            let mut updates = 1;
            if !update(self.next) {
                updates += now.since(self.next).picoseconds() / self.period.picoseconds();
            }
            self.next += Time::from_picoseconds(updates * self.period.picoseconds());
        }
    }

    /// When the next one is due.
    #[cfg(test)]
    pub fn next(&self) -> Time {
        self.next
    }

    /// No more updates.
    #[cfg(test)]
    pub fn stop(&mut self) {
        self.next = Time::NEVER;
    }
}
