//! When datagrams leave.
//!
//! Times are computed from the start, not added up, so a constant rate does not drift.

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::{stream, Duration, Purpose};

mod adaptive;

use adaptive::Control;

/// When datagrams leave.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DatagramSource {
    /// At a constant rate.
    Constant {
        /// Datagrams in a second.
        per_s: f64,
    },
    /// In bursts at a constant rate, at equal distances.
    Bursts {
        /// Datagrams in a second, during a burst.
        per_s: f64,
        /// Datagrams of a burst.
        packets: u64,
        /// From the start of a burst to that of the next.
        #[serde(rename = "every_s")]
        every: Time,
    },
    /// At a constant rate for a while, then not at all for a while.
    OnOff {
        /// Datagrams in a second while it is on.
        per_s: f64,
        /// The on period.
        on: Duration,
        /// The off period.
        off: Duration,
    },
    /// At a rate that follows the measured delay; the receiver answers each datagram.
    Adaptive {
        /// The queueing delay to hold.
        #[serde(rename = "target_s")]
        target: Time,
        /// The lowest rate, in datagrams a second.
        min_per_s: f64,
        /// The highest.
        max_per_s: f64,
    },
}

/// Highest rate: one datagram a picosecond.
const MAX_PER_S: f64 = 1e12;

/// When the datagrams of one source leave.
#[derive(Debug)]
pub struct Departures {
    law: Law,
    stop: Time,
    next: Time,
    sent: u64,
}

/// When datagrams leave.
#[derive(Debug)]
enum Law {
    Constant {
        start: Time,
        per_s: f64,
    },
    Bursts {
        start: Time,
        per_s: f64,
        packets: u64,
        every: Time,
    },
    OnOff(Box<Periods>),
    Adaptive(Box<Control>),
}

/// The periods of a source that is on and off.
#[derive(Debug)]
struct Periods {
    per_s: f64,
    on: Duration,
    off: Duration,
    random_on: Pcg64Mcg,
    random_off: Pcg64Mcg,
    start: Time,
    end: Time,
    /// Datagrams sent in this period.
    sent: u64,
}

impl Departures {
    /// The departures of a source that starts at `now`; `number` is the source's among those of the plan and tells its
    /// random numbers from theirs. None is at or after `stop`.
    pub fn new(
        source: &DatagramSource,
        now: Time,
        stop: Option<Time>,
        seed: u64,
        number: u64,
    ) -> Departures {
        let law = Law::new(source, now, seed, number);
        Departures {
            next: law.first(now),
            law,
            stop: stop.unwrap_or(Time::NEVER),
            sent: 0,
        }
    }

    /// When the next datagram is due; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        if self.next < self.stop {
            self.next
        } else {
            Time::NEVER
        }
    }

    /// A datagram has left at `now`.
    pub fn sent(&mut self, now: Time) {
        self.sent += 1;
        self.next = self.law.after(self.sent, now);
    }

    /// Datagrams that have left.
    pub fn count(&self) -> u64 {
        self.sent
    }

    /// The answer to a datagram has come after `rtt`; it matters to a source that follows the delay.
    pub fn on_rtt(&mut self, rtt: Time, now: Time) {
        if let Law::Adaptive(control) = &mut self.law {
            if control.on_rtt(rtt, now) {
                self.next = control.departure().max(now);
            }
        }
    }

    /// The last round-trip time, where it is measured.
    pub fn rtt(&self) -> Option<Time> {
        match &self.law {
            Law::Adaptive(control) => control.rtt(),
            _ => None,
        }
    }
}

impl DatagramSource {
    /// Return true if each datagram is answered.
    pub fn has_responses(&self) -> bool {
        matches!(self, DatagramSource::Adaptive { .. })
    }

    /// Return the reason why datagrams cannot be sent, if there is one.
    pub fn fault(&self) -> Option<String> {
        match *self {
            DatagramSource::Constant { per_s } => rate_fault("per_s", per_s),
            DatagramSource::Bursts {
                per_s,
                packets,
                every,
            } => rate_fault("per_s", per_s).or_else(|| burst_fault(per_s, packets, every)),
            DatagramSource::OnOff { per_s, on, off } => rate_fault("per_s", per_s)
                .or_else(|| on.check().err().map(|error| format!("on: {error}")))
                .or_else(|| off.check().err().map(|error| format!("off: {error}")))
                .or_else(|| (on.mean_s() <= 0.0).then(|| "on takes no time".to_owned())),
            DatagramSource::Adaptive {
                target,
                min_per_s,
                max_per_s,
            } => rate_fault("min_per_s", min_per_s)
                .or_else(|| rate_fault("max_per_s", max_per_s))
                .or_else(|| (target == Time::ZERO).then(|| "target_s must be positive".to_owned()))
                .or_else(|| {
                    (min_per_s > max_per_s).then(|| {
                        format!("min_per_s is {min_per_s}, more than max_per_s, {max_per_s}")
                    })
                }),
        }
    }
}

fn rate_fault(name: &str, per_s: f64) -> Option<String> {
    let possible = per_s > 0.0 && per_s <= MAX_PER_S;
    (!possible).then(|| format!("{name} is {per_s}; expected more than 0, at most {MAX_PER_S}"))
}

fn burst_fault(per_s: f64, packets: u64, every: Time) -> Option<String> {
    if packets == 0 {
        return Some("packets must be at least 1".to_owned());
    }
    let takes_s = packets as f64 / per_s;
    (takes_s > every.seconds()).then(|| {
        let every_s = every.seconds();
        format!("a burst takes {takes_s} s, but the next one follows after every_s = {every_s}")
    })
}

impl Law {
    fn new(source: &DatagramSource, start: Time, seed: u64, number: u64) -> Law {
        match *source {
            DatagramSource::Constant { per_s } => Law::Constant { start, per_s },
            DatagramSource::Bursts {
                per_s,
                packets,
                every,
            } => Law::Bursts {
                start,
                per_s,
                packets,
                every,
            },
            DatagramSource::OnOff { per_s, on, off } => Law::OnOff(Box::new(Periods::new(
                (per_s, on, off),
                start,
                stream(seed, number, Purpose::OnPeriods),
                stream(seed, number, Purpose::OffPeriods),
            ))),
            DatagramSource::Adaptive {
                target,
                min_per_s,
                max_per_s,
            } => Law::Adaptive(Box::new(Control::new(target, min_per_s, max_per_s))),
        }
    }

    /// When the first datagram leaves.
    fn first(&self, now: Time) -> Time {
        match self {
            Law::OnOff(periods) => periods.start,
            _ => now,
        }
    }

    /// When the next datagram leaves, after `sent` of them, the last at `now`.
    fn after(&mut self, sent: u64, now: Time) -> Time {
        match self {
            Law::Constant { start, per_s } => *start + span(sent, *per_s),
            Law::Bursts {
                start,
                per_s,
                packets,
                every,
            } => {
                let bursts = u128::from(every.picoseconds()) * u128::from(sent / *packets);
                let before = u64::try_from(bursts).unwrap_or(u64::MAX);
                *start + Time::from_picoseconds(before) + span(sent % *packets, *per_s)
            }
            Law::OnOff(periods) => periods.next(),
            Law::Adaptive(control) => control.after(now),
        }
    }
}

impl Periods {
    fn new(
        (per_s, on, off): (f64, Duration, Duration),
        start: Time,
        random_on: Pcg64Mcg,
        random_off: Pcg64Mcg,
    ) -> Periods {
        let mut periods = Periods {
            per_s,
            on,
            off,
            random_on,
            random_off,
            start,
            end: start,
            sent: 0,
        };
        periods.end = start + periods.on.draw(&mut periods.random_on);
        if periods.end == start {
            periods.turn();
        }
        periods
    }

    /// When the next datagram leaves, one having been sent.
    fn next(&mut self) -> Time {
        self.sent += 1;
        let due = self.start + span(self.sent, self.per_s);
        if due < self.end {
            return due;
        }
        self.turn();
        self.start
    }

    /// Continue to the next period that takes time.
    fn turn(&mut self) {
        self.sent = 0;
        while !self.end.is_never() {
            self.start = self.end + self.off.draw(&mut self.random_off);
            self.end = self.start + self.on.draw(&mut self.random_on);
            if self.end > self.start {
                return;
            }
        }
        self.start = Time::NEVER;
    }
}

/// The time that `packets` take at a rate.
fn span(packets: u64, per_s: f64) -> Time {
    Time::from_seconds(packets as f64 / per_s)
}
