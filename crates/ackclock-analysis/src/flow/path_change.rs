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
    min_ns: i64,
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
    least_ns: i64,
    min_ns: i64,
    max_ns: i64,
    samples: u32,
}

impl RttStep {
    /// Process a round-trip time.
    #[inline]
    pub fn on_sample(&mut self, now_ns: i64, rtt_ns: i64) {
        if self.found.is_some() {
            return;
        }
        match &mut self.candidate {
            None => self.begin(now_ns, rtt_ns),
            Some(candidate) if rtt_ns < candidate.least_ns => {
                *self = Self {
                    min_ns: self.min_ns,
                    ..Self::default()
                };
            }
            Some(candidate) => {
                candidate.samples += 1;
                candidate.min_ns = candidate.min_ns.min(rtt_ns);
                candidate.max_ns = candidate.max_ns.max(rtt_ns);
                let step_ns = candidate.min_ns - candidate.before_ns;
                let is_level = MAX_SPREAD * (candidate.max_ns - candidate.min_ns) <= step_ns;
                if candidate.samples >= MIN_HOLD_SAMPLES
                    && now_ns - candidate.begin_ns >= MIN_HOLD_NS
                    && is_level
                {
                    self.found = Some((candidate.begin_ns, candidate.before_ns, candidate.min_ns));
                }
            }
        }
    }

    #[inline]
    fn begin(&mut self, now_ns: i64, rtt_ns: i64) {
        if self.count >= LEVEL && rtt_ns - self.recent[(self.count - 1) % LEVEL] >= MIN_STEP_NS {
            let (mut low_ns, mut high_ns) = (i64::MAX, 0);
            for &one in &self.recent {
                low_ns = low_ns.min(one);
                high_ns = high_ns.max(one);
            }
            let step_ns = rtt_ns - high_ns;
            if step_ns >= MIN_STEP_NS.max(high_ns / MIN_STEP_SHARE) && high_ns - low_ns < step_ns {
                self.candidate = Some(Candidate {
                    begin_ns: now_ns,
                    before_ns: self.min_ns,
                    least_ns: high_ns + step_ns / 2,
                    min_ns: rtt_ns,
                    max_ns: rtt_ns,
                    samples: 1,
                });
                return;
            }
        }
        self.min_ns = if self.min_ns == 0 {
            rtt_ns
        } else {
            self.min_ns.min(rtt_ns)
        };
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
        let mut step = RttStep::default();
        for number in 0..samples {
            step.on_sample(10 * MS * number as i64, MS * rtt_ms(number));
        }
        step.found
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
