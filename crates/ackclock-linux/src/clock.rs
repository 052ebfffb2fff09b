//! The run's time: seconds since all was set up.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ackclock_core::Time;
use rustix::time::{
    clock_gettime, timerfd_create, timerfd_settime, ClockId, Itimerspec, TimerfdClockId,
    TimerfdFlags, TimerfdTimerFlags, Timespec,
};

use crate::error::Tried;
use crate::run_spec::ClockKind;
use crate::{sys, Error};

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Statistics of the lateness of events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lateness {
    /// At worst, in seconds.
    pub max_s: f64,
    sum_s: f64,
    count: u64,
}

impl Lateness {
    /// Once more.
    pub fn add(&mut self, late: Time) {
        let late_s = late.seconds();
        self.max_s = self.max_s.max(late_s);
        self.sum_s += late_s;
        self.count += 1;
    }

    /// On average, in seconds.
    pub fn mean_s(&self) -> f64 {
        self.sum_s / self.count.max(1) as f64
    }
}

/// A clock that begins at a whole second of the kernel's, and a timer by it.
#[derive(Debug)]
pub struct Clock {
    kind: ClockKind,
    timer: OwnedFd,
    /// Time 0 by the kernel's clocks.
    zero_ns: i64,
    real_zero_ns: i64,
    armed: Time,
}

impl Clock {
    /// A clock whose time 0 is the second whole second from now, so that the kernel's ticks are in the same phase in
    /// each run.
    pub fn new(kind: ClockKind) -> Result<Clock, Error> {
        let now_ns = nanoseconds(clock_gettime(ClockId::Monotonic));
        Clock::at(
            kind,
            (now_ns / NANOSECONDS_PER_SECOND + 2) * NANOSECONDS_PER_SECOND,
        )
    }

    /// A clock whose time 0 is a time of the kernel's monotonic clock.
    pub fn at(kind: ClockKind, zero_ns: i64) -> Result<Clock, Error> {
        sys::wake_exactly().tried(|| "timer slack".to_owned())?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
            .tried(|| "timerfd_create".to_owned())?;
        let now_ns = nanoseconds(clock_gettime(ClockId::Monotonic));
        let real_ns = nanoseconds(clock_gettime(ClockId::Realtime));
        Ok(Clock {
            kind,
            timer,
            zero_ns,
            real_zero_ns: real_ns + zero_ns - now_ns,
            armed: Time::NEVER,
        })
    }

    /// Time 0 by the kernel's monotonic clock.
    pub fn zero_ns(&self) -> i64 {
        self.zero_ns
    }

    /// Return the descriptor that becomes readable at the armed time.
    pub fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Arm the timer for `at`, unless it is armed.
    pub fn arm(&mut self, at: Time) -> Result<(), Error> {
        if self.armed == at {
            return Ok(());
        }
        self.armed = at;
        // A timer of 0 would be none.
        let due_ns = (self.zero_ns + at.picoseconds().div_ceil(1000) as i64).max(1);
        let value = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(due_ns),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)
            .tried(|| "timerfd_settime".to_owned())?;
        Ok(())
    }

    /// The time; 0 before it begins.
    pub fn now(&self) -> Time {
        since_zero(nanoseconds(clock_gettime(ClockId::Monotonic)) - self.zero_ns)
    }

    /// The time, if the timer has just rung.
    pub fn rung(&self) -> Time {
        self.moment(self.armed)
    }

    /// Return the time at which a due task runs: exactly its due time in virtual time.
    pub fn moment(&self, due: Time) -> Time {
        match self.kind {
            ClockKind::Virtual => due,
            ClockKind::Real => self.now().max(due),
        }
    }

    /// The time of a stamp of the kernel's real-time clock.
    pub fn of_real(&self, real_ns: u64) -> Time {
        since_zero(real_ns as i64 - self.real_zero_ns)
    }
}

/// Before time 0 it is time 0.
fn since_zero(nanoseconds: i64) -> Time {
    Time::from_picoseconds(nanoseconds.max(0) as u64 * 1000)
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * NANOSECONDS_PER_SECOND + time.tv_nsec
}

fn timespec(nanoseconds: i64) -> Timespec {
    Timespec {
        tv_sec: nanoseconds / NANOSECONDS_PER_SECOND,
        tv_nsec: nanoseconds % NANOSECONDS_PER_SECOND,
    }
}
