//! Gaps in the clock of a host: a process that reads it every millisecond detects when nothing ran, and mostly why.
//!
//! A watch sleeps until the next millisecond of the monotonic clock, again and again. A wake-up that is late is a gap,
//! from the last time that it was awake to this one. The kinds are distinguished in this order:
//!
//! | kind | evidence |
//! |---|---|
//! | pause | the time stamp counter, or the clock that counts suspension, went on while the monotonic clock stood still |
//! | stop | SIGCONT came (signal(7)): the watch itself was stopped, and who stopped it mostly stopped more |
//! | steal | `/proc/stat` (proc(5)) counted the hypervisor's other guests for half of it; it counts in ticks, so shorter gaps than two ticks are not classified |
//! | scheduler | the watch waited for a processor for half of it: `/proc/thread-self/schedstat` |
//! | pause | none of these, on a virtual machine; else the scheduler: interrupts were off |
//! | step | the wall clock moved against the monotonic one: somebody set it. Not a gap of the host, but one of its log |

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::thread::{clock_nanosleep_absolute, ClockId as SleepClock};
use rustix::time::{clock_gettime, ClockId, Timespec};

use crate::error::Tried;
use crate::{sys, Error};

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
/// The unit of steal time: a tick of USER_HZ, which is 100 on every machine that Linux runs on but the Alpha.
const TICK_NS: i64 = 10_000_000;
/// `/proc/stat` is read so often, in wakes: it takes as long as a few hundred wakes' other calls.
const STAT_EVERY: u32 = 100;
/// The counter's rate is known well enough for gaps after so much time.
const LEARNT_NS: i64 = 50_000_000;

/// Why the clock had a gap; the dataset's words, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel ran something else.
    Scheduler,
    /// The hypervisor did.
    Steal,
    /// The watch was stopped.
    Stop,
    /// The machine was.
    Pause,
    /// Somebody set the clock.
    Step,
}

impl Kind {
    /// The words of the codes.
    pub const CODES: [&'static str; 5] = ["scheduler", "steal", "stop", "pause", "step"];
}

/// A gap, with the evidence of its kind. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The monotonic clock when the watch was last awake.
    pub start_ns: i64,
    /// The wall clock then, since 1970.
    pub wall_ns: i64,
    /// Its duration; of a step forwards, its size; of one backwards 0.
    pub duration_ns: i64,
    /// Why.
    pub kind: Kind,
    /// The time the watch waited for a processor.
    pub waited_ns: i64,
    /// The time a processor was stolen by other guests.
    pub stolen_ns: i64,
    /// By how much the wall clock was set forwards.
    pub stepped_ns: i64,
    /// By how much longer the machine's own counters went on than the monotonic clock.
    pub clock_stopped_ns: i64,
}

/// The clocks and counters at one wake-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    monotonic_ns: i64,
    wall_ns: i64,
    boot_ns: i64,
    /// Ticks of the time stamp counter, where there is one that never stops.
    counter: Option<u64>,
    waited_ns: i64,
    stolen_ns: i64,
    continued: u32,
}

/// The thresholds of a gap.
#[derive(Clone, Copy, Debug)]
struct Rule {
    period_ns: i64,
    /// Beyond the period.
    min_gap_ns: i64,
    virtual_machine: bool,
}

impl Rule {
    /// The gaps between two wakes: none, one, or one and a step of the wall clock.
    fn gaps(&self, before: &Reading, now: &Reading, counter_hz: Option<f64>) -> Vec<Gap> {
        let awake_ns = now.monotonic_ns - before.monotonic_ns;
        let stepped_ns = now.wall_ns - before.wall_ns - awake_ns;
        let suspended_ns = now.boot_ns - before.boot_ns - awake_ns;
        let counted_ns = counted_ns(before, now, counter_hz).map_or(0, |ns| ns - awake_ns);
        let clock_stopped_ns = suspended_ns.max(counted_ns).max(0);
        let gap = Gap {
            start_ns: before.monotonic_ns,
            wall_ns: before.wall_ns,
            duration_ns: awake_ns,
            kind: Kind::Scheduler,
            waited_ns: now.waited_ns - before.waited_ns,
            stolen_ns: now.stolen_ns - before.stolen_ns,
            stepped_ns: 0,
            clock_stopped_ns: 0,
        };
        let mut gaps = Vec::new();
        let paused = clock_stopped_ns > self.min_gap_ns;
        if paused {
            let duration_ns = awake_ns + clock_stopped_ns;
            gaps.push(Gap {
                duration_ns,
                kind: Kind::Pause,
                clock_stopped_ns,
                ..gap
            });
        } else if awake_ns > self.period_ns + self.min_gap_ns {
            let stopped = now.continued != before.continued;
            gaps.push(Gap {
                kind: self.kind(&gap, stopped),
                ..gap
            });
        }
        // After a pause the wall clock is moved forward by the missed time: it was not set by hand.
        let missed_ns = if paused { clock_stopped_ns } else { 0 };
        let by_hand =
            (stepped_ns - missed_ns).abs() > self.min_gap_ns && stepped_ns.abs() > self.min_gap_ns;
        if by_hand {
            let duration_ns = stepped_ns.max(0);
            gaps.push(Gap {
                duration_ns,
                kind: Kind::Step,
                stepped_ns,
                ..gap
            });
        }
        gaps
    }

    fn kind(&self, gap: &Gap, stopped: bool) -> Kind {
        let half_ns = gap.duration_ns / 2;
        if stopped {
            Kind::Stop
        } else if gap.duration_ns >= 2 * TICK_NS && gap.stolen_ns >= half_ns {
            Kind::Steal
        } else if gap.waited_ns >= half_ns || !self.virtual_machine {
            Kind::Scheduler
        } else {
            Kind::Pause
        }
    }
}

fn counted_ns(before: &Reading, now: &Reading, counter_hz: Option<f64>) -> Option<i64> {
    let ticks = now.counter?.checked_sub(before.counter?)?;
    Some((ticks as f64 * NANOSECONDS_PER_SECOND as f64 / counter_hz?) as i64)
}

/// The rate of the counter by the monotonic clock, over the time in which there was no gap.
#[derive(Clone, Copy, Debug, Default)]
struct CounterRate {
    ticks: f64,
    time_ns: i64,
}

impl CounterRate {
    fn learn(&mut self, before: &Reading, now: &Reading) {
        if let (Some(then), Some(ticks)) = (before.counter, now.counter) {
            self.ticks += ticks.wrapping_sub(then) as f64;
            self.time_ns += now.monotonic_ns - before.monotonic_ns;
        }
    }

    fn hz(&self) -> Option<f64> {
        let known = self.time_ns >= LEARNT_NS;
        known.then(|| self.ticks * NANOSECONDS_PER_SECOND as f64 / self.time_ns as f64)
    }
}

/// Looks at the clock again and again.
#[derive(Debug)]
pub struct Watch {
    rule: Rule,
    stat: Option<File>,
    schedule: Option<File>,
    has_counter: bool,
    rate: CounterRate,
    wakes: u32,
    last: Reading,
}

impl Watch {
    /// A watch that wakes once in a `period`; what is later than that by more than `min_gap` is a gap.
    ///
    /// # Errors
    /// The kernel does not let this thread sleep exactly, or SIGCONT be counted.
    pub fn new(period: Duration, min_gap: Duration) -> Result<Watch, Error> {
        sys::wake_exactly().tried(|| "timer slack".to_owned())?;
        sys::count_continuations().tried(|| "SIGCONT".to_owned())?;
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let is_local = |flag: &str| processor.split_whitespace().any(|word| word == flag);
        let mut watch = Watch {
            rule: Rule {
                period_ns: period.as_nanos() as i64,
                min_gap_ns: min_gap.as_nanos() as i64,
                virtual_machine: is_local("hypervisor"),
            },
            stat: File::open("/proc/stat").ok(),
            schedule: None,
            has_counter: is_local("constant_tsc") && is_local("nonstop_tsc"),
            rate: CounterRate::default(),
            wakes: 0,
            last: Reading::default(),
        };
        watch.last = watch.read(0);
        watch.last.stolen_ns = watch.stolen_ns();
        Ok(watch)
    }

    /// Return true if the machine has a counter that goes on when its clocks are held.
    pub fn has_counter(&self) -> bool {
        self.has_counter
    }

    /// The monotonic and the wall clock when it was last awake, in nanoseconds.
    pub fn clocks_ns(&self) -> (i64, i64) {
        (self.last.monotonic_ns, self.last.wall_ns)
    }

    /// Watch for a while: the gaps, in the order of time. What happened since the last call belongs to it.
    pub fn watch(&mut self, time: Duration) -> Vec<Gap> {
        // This thread's; it may be another one than last time.
        self.schedule = File::open("/proc/thread-self/schedstat").ok();
        self.last.waited_ns = self.waited_ns();
        let until_ns = monotonic_ns() + time.as_nanos() as i64;
        let mut gaps = Vec::new();
        while self.last.monotonic_ns < until_ns {
            let due_ns = self.last.monotonic_ns + self.rule.period_ns;
            // Whatever wakes it, it looks.
            let _ = clock_nanosleep_absolute(SleepClock::Monotonic, &timespec(due_ns));
            self.check(&mut gaps);
        }
        gaps
    }

    fn check(&mut self, gaps: &mut Vec<Gap>) {
        let mut now = self.read(self.last.stolen_ns);
        let late =
            now.monotonic_ns - self.last.monotonic_ns > self.rule.period_ns + self.rule.min_gap_ns;
        self.wakes += 1;
        if late || self.wakes.is_multiple_of(STAT_EVERY) {
            now.stolen_ns = self.stolen_ns();
        }
        let new = self.rule.gaps(&self.last, &now, self.rate.hz());
        if new.is_empty() {
            self.rate.learn(&self.last, &now);
        }
        gaps.extend(new);
        self.last = now;
    }

    fn read(&self, stolen_ns: i64) -> Reading {
        // The two that are compared with the monotonic clock are read next to it, before anything slow.
        let counter = self.has_counter.then(sys::time_stamp_counter);
        Reading {
            monotonic_ns: monotonic_ns(),
            wall_ns: nanoseconds(clock_gettime(ClockId::Realtime)),
            boot_ns: nanoseconds(clock_gettime(ClockId::Boottime)),
            counter,
            waited_ns: self.waited_ns(),
            stolen_ns,
            continued: sys::continuations(),
        }
    }

    /// Return the time this thread has waited for a processor.
    fn waited_ns(&self) -> i64 {
        let text = self.schedule.as_ref().and_then(read_start);
        let word = text
            .as_deref()
            .and_then(|text| text.split_whitespace().nth(1));
        word.and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// Return the steal time of the processor from which most was taken, since idle ones lose nothing.
    fn stolen_ns(&self) -> i64 {
        let text = self.stat.as_ref().and_then(read_start);
        let ticks = text.as_deref().map_or(0, max_stolen);
        ticks as i64 * TICK_NS
    }
}

/// Return the largest steal time of the lines `cpuN user nice system idle iowait irq softirq steal …`, in ticks.
fn max_stolen(stat: &str) -> u64 {
    let processors = stat
        .lines()
        .take_while(|line| line.starts_with("cpu"))
        .skip(1);
    let stolen = processors.filter_map(|line| line.split_whitespace().nth(8)?.parse().ok());
    stolen.max().unwrap_or(0)
}

/// Read the start of a file of /proc.
fn read_start(file: &File) -> Option<String> {
    let mut bytes = vec![0; 1 << 14];
    let read = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok()
}

fn monotonic_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const HZ: Option<f64> = Some(2e9);
    const RULE: Rule = Rule {
        period_ns: MS,
        min_gap_ns: MS,
        virtual_machine: true,
    };

    /// All clocks have gone on by that much since zero.
    fn after(ns: i64) -> Reading {
        Reading {
            monotonic_ns: ns,
            wall_ns: 1_700_000_000 * NANOSECONDS_PER_SECOND + ns,
            boot_ns: ns,
            counter: Some(2 * ns as u64),
            ..Reading::default()
        }
    }

    fn only(now: Reading) -> Gap {
        let gaps = RULE.gaps(&after(0), &now, HZ);
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        gaps[0]
    }

    #[test]
    fn a_wake_in_time_is_no_gap() {
        assert!(RULE.gaps(&after(0), &after(MS), HZ).is_empty());
        assert!(RULE.gaps(&after(0), &after(2 * MS), HZ).is_empty());
    }

    #[test]
    fn each_kind_is_classified_by_its_evidence() {
        let late = after(40 * MS);
        let continued = Reading {
            continued: 1,
            ..late
        };
        let stolen = Reading {
            stolen_ns: 30 * MS,
            ..late
        };
        let waited = Reading {
            waited_ns: 39 * MS,
            ..late
        };
        let kinds = [continued, stolen, waited, late].map(|now| only(now).kind);
        assert_eq!(
            kinds,
            [Kind::Stop, Kind::Steal, Kind::Scheduler, Kind::Pause]
        );
        let iron = Rule {
            virtual_machine: false,
            ..RULE
        };
        assert_eq!(iron.gaps(&after(0), &late, HZ)[0].kind, Kind::Scheduler);
    }

    #[test]
    fn a_short_gap_is_not_blamed_on_others_by_a_count_of_ticks() {
        let late = Reading {
            stolen_ns: 10 * MS,
            waited_ns: 9 * MS,
            ..after(12 * MS)
        };
        assert_eq!(only(late).kind, Kind::Scheduler);
    }

    #[test]
    fn a_stopped_machine_is_detected_by_running_counters() {
        let held = Reading {
            counter: Some(2 * 501 * MS as u64),
            ..after(MS)
        };
        let gap = only(held);
        assert_eq!((gap.kind, gap.duration_ns), (Kind::Pause, 501 * MS));
        let suspended = Reading {
            boot_ns: 3000 * MS,
            wall_ns: after(3000 * MS).wall_ns,
            ..after(MS)
        };
        let gap = only(suspended);
        assert_eq!((gap.kind, gap.duration_ns), (Kind::Pause, 3000 * MS));
    }

    #[test]
    fn a_clock_that_is_set_is_a_step() {
        let forwards = Reading {
            wall_ns: after(700 * MS).wall_ns,
            ..after(MS)
        };
        let gap = only(forwards);
        assert_eq!(
            (gap.kind, gap.duration_ns, gap.stepped_ns),
            (Kind::Step, 699 * MS, 699 * MS)
        );
        let backwards = Reading {
            wall_ns: after(0).wall_ns - 299 * MS,
            ..after(MS)
        };
        let gap = only(backwards);
        assert_eq!(
            (gap.kind, gap.duration_ns, gap.stepped_ns),
            (Kind::Step, 0, -300 * MS)
        );
    }

    #[test]
    fn a_counter_that_goes_back_is_ignored() {
        let other = Reading {
            counter: Some(0),
            ..after(MS)
        };
        let before = Reading {
            counter: Some(9),
            ..after(0)
        };
        assert!(RULE.gaps(&before, &other, HZ).is_empty());
    }

    #[test]
    fn the_largest_steal_time_is_read() {
        let stat = "cpu  1 2 3 4 5 6 7 80 0 0\ncpu0 1 2 3 4 5 6 7 50 0 0\ncpu1 1 2 3 4 5 6 7 30 0 0\nintr 9 9 9 9 9 9 9 99\n";
        assert_eq!(max_stolen(stat), 50);
        assert_eq!(max_stolen(""), 0);
    }

    #[test]
    fn a_watch_returns_in_time() {
        let mut watch =
            Watch::new(Duration::from_millis(1), Duration::from_millis(1)).expect("a clock");
        let (begun_ns, _) = watch.clocks_ns();
        let gaps = watch.watch(Duration::from_millis(30));
        let (ended_ns, wall_ns) = watch.clocks_ns();
        assert!(ended_ns - begun_ns >= 30 * MS);
        assert!(wall_ns > 1_500_000_000 * NANOSECONDS_PER_SECOND);
        assert!(gaps
            .iter()
            .all(|gap| gap.start_ns >= begun_ns
                && gap.start_ns + gap.duration_ns <= ended_ns + 30 * MS));
    }
}
