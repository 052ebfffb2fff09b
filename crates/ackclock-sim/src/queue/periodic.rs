//! Periodic updates of a control law, independent of packets.

use ackclock_core::Time;

/// Schedule of the updates.
#[derive(Clone, Copy, Debug)]
pub struct Updates {
    next: Time,
    period: Time,
}

/// True if updates can have this period.
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

    /// Apply the updates up to `now`, each at its time. Once `update` returns that later ones change
    /// nothing, they are skipped.
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

    /// Time of the next update.
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
