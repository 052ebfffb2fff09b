//! Changes of the path while a connection uses it: hop counts and levels of the round-trip time.

/// Packets with one hop count in a row that make it the route's: a packet of another may have been a middlebox's.
const MIN_RUN: u32 = 8;
/// Round-trip times whose range is the level that a step is measured from.
const LEVEL: usize = 16;
/// A step adds at least this to the highest of them, which is beyond a wireless link's jitter, and this share of it.
const MIN_STEP_NS: i64 = 15_000_000;
const MIN_STEP_SHARE: i64 = 4;
/// The new level must hold for so long, and for so many samples: a queue that filled while a link paused drains.
const MIN_HOLD_NS: i64 = 2_000_000_000;
const MIN_HOLD_SAMPLES: u32 = 32;
/// The samples of the new level are within this share of the step: those of a queue that stays vary with its windows.
const MAX_SPREAD: i64 = 2;
/// The least samples of its parts differ by this share of the step, or so much: those of a queue drift with windows.
const PARTS: usize = 4;
const MAX_FLOOR_SPREAD: i64 = 32;
const MAX_FLOOR_JITTER_NS: i64 = 1_000_000;

/// The number of hops of one direction's packets, by their TTL or hop limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct HopCount {
    current: u8,
    candidate: u8,
    run: u32,
    /// The number of times that another hop count took over.
    pub changes: u32,
}

impl HopCount {
    /// Process the TTL of a packet.
    #[inline]
    pub fn on_packet(&mut self, hops: u8) {
        if hops != self.candidate {
            self.candidate = hops;
            self.run = 0;
        }
        self.run = self.run.saturating_add(1);
        if self.run == MIN_RUN && hops != self.current {
            self.changes += u32::from(self.current != 0);
            self.current = hops;
        }
    }
}

/// A rise of the round-trip time between two consecutive samples that stays. A queue grows from segment to segment, and
/// drains again.
#[derive(Clone, Debug, Default)]
pub struct RttStep {
    recent: [i64; LEVEL],
    count: usize,
    candidate: Option<Candidate>,
    /// The first step: when it was, and the least round-trip times before and since.
    pub found: Option<(i64, i64, i64)>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    begin_ns: i64,
    before_ns: i64,
    /// Samples below this end it.
    end_below_ns: i64,
    level: Level,
    /// The queue before the step may have drained behind it: the level is a second one.
    has_drained: bool,
}

/// The samples since a time: how many, the greatest, and the least of each part of the time.
#[derive(Clone, Copy, Debug)]
struct Level {
    since_ns: i64,
    samples: u32,
    max_ns: i64,
    floors_ns: [i64; PARTS],
}

impl Level {
    fn new(now_ns: i64, rtt_ns: i64) -> Self {
        let mut level = Self {
            since_ns: now_ns,
            samples: 0,
            max_ns: 0,
            floors_ns: [i64::MAX; PARTS],
        };
        level.add(now_ns, rtt_ns);
        level
    }

    fn add(&mut self, now_ns: i64, rtt_ns: i64) {
        self.samples += 1;
        self.max_ns = self.max_ns.max(rtt_ns);
        let part = (now_ns - self.since_ns).max(0) * PARTS as i64 / MIN_HOLD_NS;
        let floor_ns = &mut self.floors_ns[(part as usize).min(PARTS - 1)];
        *floor_ns = (*floor_ns).min(rtt_ns);
    }

    fn is_complete(&self, now_ns: i64) -> bool {
        self.samples >= MIN_HOLD_SAMPLES && now_ns - self.since_ns >= MIN_HOLD_NS
    }

    /// Return the least sample if this is the level of a path, above one of `before_ns`.
    fn floor_ns(&self, before_ns: i64) -> Option<i64> {
        let (mut low_ns, mut high_ns) = (i64::MAX, 0);
        for &floor_ns in &self.floors_ns {
            low_ns = low_ns.min(floor_ns);
            high_ns = high_ns.max(floor_ns);
        }
        let step_ns = low_ns - before_ns;
        let jitter_ns = MAX_FLOOR_JITTER_NS.max(step_ns / MAX_FLOOR_SPREAD);
        let is_level =
            high_ns - low_ns <= jitter_ns && MAX_SPREAD * (self.max_ns - low_ns) <= step_ns;
        is_level.then_some(low_ns)
    }
}

impl Candidate {
    /// Process a sample; return the least of the new level once it holds.
    fn on_sample(&mut self, now_ns: i64, rtt_ns: i64) -> Option<i64> {
        self.level.add(now_ns, rtt_ns);
        if !self.level.is_complete(now_ns) {
            return None;
        }
        let floor_ns = self.level.floor_ns(self.before_ns);
        if floor_ns.is_none() && !self.has_drained {
            self.has_drained = true;
            self.level = Level::new(now_ns, rtt_ns);
        }
        floor_ns
    }
}

impl RttStep {
    /// Process a round-trip time; `min_ns` is the least so far.
    #[inline]
    pub fn on_sample(&mut self, now_ns: i64, rtt_ns: i64, min_ns: i64) {
        if self.found.is_some() {
            return;
        }
        match &mut self.candidate {
            None => self.begin(now_ns, rtt_ns, min_ns),
            Some(candidate) if rtt_ns < candidate.end_below_ns => *self = Self::default(),
            Some(candidate) => {
                if let Some(floor_ns) = candidate.on_sample(now_ns, rtt_ns) {
                    self.found = Some((candidate.begin_ns, candidate.before_ns, floor_ns));
                }
            }
        }
    }

    #[inline]
    fn begin(&mut self, now_ns: i64, rtt_ns: i64, min_ns: i64) {
        if self.count >= LEVEL && rtt_ns - self.recent[(self.count - 1) % LEVEL] >= MIN_STEP_NS {
            let (mut low_ns, mut high_ns, mut sum_ns) = (i64::MAX, 0, 0);
            for &one in &self.recent {
                low_ns = low_ns.min(one);
                high_ns = high_ns.max(one);
                sum_ns += one;
            }
            let least_step = |level_ns: i64| MIN_STEP_NS.max(level_ns / MIN_STEP_SHARE);
            let step_ns = rtt_ns - high_ns;
            if step_ns >= least_step(high_ns) && high_ns - low_ns < step_ns {
                let mean_ns = sum_ns / LEVEL as i64;
                self.candidate = Some(Candidate {
                    begin_ns: now_ns,
                    before_ns: min_ns,
                    end_below_ns: mean_ns + least_step(mean_ns),
                    level: Level::new(now_ns, rtt_ns),
                    has_drained: false,
                });
                return;
            }
        }
        self.recent[self.count % LEVEL] = rtt_ns;
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Samples every 10 ms of which each has the round-trip time of its number.
    fn step_in(samples: usize, rtt_ms: impl Fn(usize) -> i64) -> Option<(i64, i64, i64)> {
        step_at(samples, &rtt_ms, 0)
    }

    #[test]
    fn a_sudden_lasting_rise_is_a_step() {
        let found = step_in(600, |number| {
            40 + (number % 5) as i64 + if number >= 300 { 30 } else { 0 }
        });
        assert_eq!(found, Some((3000 * MS, 40 * MS, 70 * MS)));
    }

    #[test]
    fn queues_pauses_and_jitter_are_no_steps() {
        let sawtooth = |number: usize| 40 + (number % 100) as i64;
        assert_eq!(step_in(1000, sawtooth), None);
        let fills = |number: usize| 40 + (number as i64).min(400);
        assert_eq!(step_in(1000, fills), None);
        let pause = |number: usize| {
            40 + (100 - (number as i64 - 300)).clamp(0, 100) * i64::from(number >= 300)
        };
        assert_eq!(step_in(1000, pause), None, "it drains");
        // Others fill a drop-tail queue between two samples, and their windows move it: 80 to 110 ms.
        let stays = |number: usize| 40 + i64::from(number >= 300) * (40 + (number % 31) as i64);
        assert_eq!(step_in(1000, stays), None);
        let jitter = |number: usize| 40 + (number * 7 % 11) as i64;
        assert_eq!(step_in(1000, jitter), None);
    }

    /// The same for samples that take so long, and whose packets leave every 10 ms.
    fn step_of(samples: usize, rtt_ms: impl Fn(usize) -> i64) -> Option<(i64, i64, i64)> {
        step_at(samples, &rtt_ms, 1)
    }

    fn step_at(samples: usize, rtt_ms: impl Fn(usize) -> i64, own: i64) -> Option<(i64, i64, i64)> {
        let (mut step, mut min_ns) = (RttStep::default(), i64::MAX);
        for number in 0..samples {
            let sample_ns = MS * rtt_ms(number);
            min_ns = min_ns.min(sample_ns);
            step.on_sample(10 * MS * number as i64 + own * sample_ns, sample_ns, min_ns);
        }
        step.found
    }

    #[test]
    fn the_queue_before_a_step_may_drain_behind_it() {
        // 30 ms and a queue of 100 ms become 200 ms and that queue, which drains.
        let queued = |number: usize| match number {
            0..100 => 30 + number as i64,
            100..300 => 130 + (number % 5) as i64,
            300..320 => 300,
            320..330 => 300 - 9 * (number as i64 - 320),
            _ => 205 + (number % 5) as i64,
        };
        let (at_ns, from_ns, to_ns) = step_of(900, queued).unwrap();
        assert_eq!((from_ns, to_ns), (30 * MS, 205 * MS));
        assert!((3_000 * MS..3_400 * MS).contains(&at_ns));
    }

    #[test]
    fn a_queue_that_fills_and_stays_full_is_no_step() {
        // Arrivals at twice the rate of the link fill it, and windows of many flows keep it full: they grow slowly.
        let full = |number: usize| match number {
            0..300 => 40 + (number % 5) as i64,
            300..320 => 40 + 20 * (number as i64 - 300),
            _ => 300 + number as i64 / 10 + (number % 5) as i64,
        };
        assert_eq!(step_of(900, full), None);
        // It fills at once, and then follows the windows of others.
        let windows = |number: usize| match number {
            0..300 => 40 + (number % 5) as i64,
            300..320 => 240,
            _ => 120 + (number % 90) as i64,
        };
        assert_eq!(step_of(900, windows), None);
        // It fills at once, and drains to the level before.
        let drained = |number: usize| match number {
            0..300 => 130 + (number % 5) as i64,
            300..320 => 300,
            _ => 135 + (number % 5) as i64,
        };
        assert_eq!(step_of(900, drained), None);
    }

    #[test]
    fn a_hop_count_that_stays_is_another_route() {
        let mut hops = HopCount::default();
        let packets = |hops: &mut HopCount, ttl: u8, count: u32| {
            for _ in 0..count {
                hops.on_packet(ttl);
            }
        };
        packets(&mut hops, 60, 20);
        packets(&mut hops, 255, 1); // a middlebox's
        packets(&mut hops, 60, 20);
        assert_eq!(hops.changes, 0);
        packets(&mut hops, 57, 20);
        assert_eq!(hops.changes, 1);
    }
}
