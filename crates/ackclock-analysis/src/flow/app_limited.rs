//! An application that writes at a rate of its own. What it writes goes out at once while the window has room (such a
//! sender is application-limited, RFC 7661), evenly, and at no time of an acknowledgement's. A control that paces sends
//! so, too. But a retransmission holds an application back: afterwards acknowledgements let out what waits, several
//! segments together, and then the rate is again what it was. Who paces never sends so, or at another rate then.

/// Rates are the same that differ by less than this share.
const MAX_DIFFERENCE: f64 = 0.01;
/// By more than this, one is another.
const OTHER: f64 = 0.02;
/// Segments that tell a rate.
const SENDS: u32 = 4;
/// The number of ACK-clocked segments in a row that shows that the sender does not pace,
const MIN_ACK_CLOCKED: u32 = 8;
/// if so many of them left together with the one before.
const MIN_BATCHED: u32 = 2;
/// Rounds after which a rate is known.
const MIN_ROUNDS: u32 = 2;
/// A segment comes evenly if it is no nearer to the one before, or further from it, than makes this share of a rate.
const MAX_SPACING_ERROR: f64 = 0.25;
/// The share of a round's segments that must be evenly spaced.
const MIN_EVEN_SHARE: f64 = 0.75;

/// A segment, and the acknowledgement before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendEvent {
    /// When it was seen.
    pub now_ns: i64,
    /// All up to here is sent.
    pub next: u64,
    /// It was sent so long after the acknowledgement.
    pub after_ns: i64,
    /// The first after that.
    pub first: bool,
    /// It was sent before.
    pub is_retransmission: bool,
    /// Recovery is in progress.
    pub in_recovery: bool,
}

/// At what rate a sender sends what no acknowledgement lets out.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppLimitedDetector {
    from: (i64, u64),
    sends: u32,
    unclocked: u32,
    bps: f64,
    is_established: bool,
    ack_clocked: u32,
    batched: u32,
    is_interrupted: bool,
    has_returned: bool,
}

impl AppLimitedDetector {
    /// A segment was sent; `unclocked`: no acknowledgement has let it out.
    #[inline]
    pub fn sent(&mut self, sent: &SendEvent, unclocked: bool) {
        self.sends += 1;
        self.unclocked += u32::from(unclocked);
        self.count_ack_clocked(sent, unclocked);
        if self.sends == SENDS {
            let now = (sent.now_ns, sent.next);
            if self.from.0 > 0 && 2 * self.unclocked > SENDS {
                self.rate(rate(self.from, now));
            }
            self.from = now;
            self.sends = 0;
            self.unclocked = 0;
        }
    }

    /// The rate is the same as before acknowledgements let out segments.
    pub fn has_returned(&self) -> bool {
        self.has_returned
    }

    #[inline]
    fn count_ack_clocked(&mut self, sent: &SendEvent, unclocked: bool) {
        if unclocked || sent.is_retransmission || sent.in_recovery {
            self.ack_clocked = 0;
            self.batched = 0;
            return;
        }
        self.ack_clocked += 1;
        self.batched += u32::from(!sent.first);
        self.is_interrupted |= self.is_established
            && self.ack_clocked >= MIN_ACK_CLOCKED
            && self.batched >= MIN_BATCHED;
    }

    fn rate(&mut self, bps: f64) {
        if same(bps, self.bps) {
            self.is_established = true;
            self.has_returned |= std::mem::take(&mut self.is_interrupted);
        } else if self.unclocked == SENDS {
            *self = Self {
                bps,
                ..Self::default()
            };
        }
    }
}

/// The same where it is unknown what let segments out: the rate of each round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecurringRate {
    bps: f64,
    /// Rounds at that rate, and those at others since the last.
    limits: u32,
    other_rounds: u32,
    is_interrupted: bool,
    has_returned: bool,
    until: (i64, u64),
    sends: u32,
    even: u32,
    retransmitted: bool,
}

impl RecurringRate {
    /// New data up to `next` was sent.
    #[inline]
    pub fn sent(&mut self, now_ns: i64, next: u64) {
        let bps = rate(self.until, (now_ns, next));
        self.even += u32::from((bps - self.bps).abs() < MAX_SPACING_ERROR * self.bps);
        self.sends += 1;
        self.until = (now_ns, next);
    }

    /// Something was retransmitted.
    pub fn retransmitted(&mut self) {
        self.retransmitted = true;
    }

    /// A round, or some, had this rate. Says whether it is what it was before a retransmission and others since.
    /// Without a retransmission, nothing holds an application back that could send so fast.
    pub fn round(&mut self, bps: f64) -> bool {
        let evenly = f64::from(self.even) >= MIN_EVEN_SHARE * f64::from(self.sends);
        let retransmitted = std::mem::take(&mut self.retransmitted);
        self.even = 0;
        self.sends = 0;
        if evenly && same(bps, self.bps) {
            self.limits += 1;
            self.other_rounds = 0;
            self.has_returned |= std::mem::take(&mut self.is_interrupted);
            return self.has_returned;
        }
        self.other_rounds += 1;
        self.is_interrupted |= retransmitted && self.limits >= MIN_ROUNDS;
        let changed = !self.is_interrupted && (bps - self.bps).abs() > OTHER * self.bps;
        if changed || self.other_rounds > self.limits {
            *self = Self {
                bps,
                until: self.until,
                ..Self::default()
            };
        }
        false
    }

    /// The last round had the rate of the one before, evenly.
    pub fn stays(&self) -> bool {
        self.limits > 0 && self.other_rounds == 0
    }
}

fn same(bps: f64, other_bps: f64) -> bool {
    (bps - other_bps).abs() < MAX_DIFFERENCE * other_bps
}

/// Return the rate between two points (time in ns, bytes), in bit/s.
pub fn rate(from: (i64, u64), until: (i64, u64)) -> f64 {
    let spent_s = (until.0 - from.0).max(1) as f64 * 1e-9;
    until.1.saturating_sub(from.1) as f64 * 8.0 / spent_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;
    const APART_NS: i64 = 1_000_000;

    /// Segments that no acknowledgement lets out, so far apart.
    fn write(detector: &mut AppLimitedDetector, count: u64, apart_ns: i64, last: &mut SendEvent) {
        for _ in 0..count {
            last.now_ns += apart_ns;
            last.next += SEGMENT;
            detector.sent(last, true);
        }
    }

    /// Acknowledgements that let out so many segments each.
    fn let_out(detector: &mut AppLimitedDetector, acks: u64, each: u64, last: &mut SendEvent) {
        for _ in 0..acks {
            last.now_ns += APART_NS;
            for number in 0..each {
                last.next += SEGMENT;
                let sent = SendEvent {
                    first: number == 0,
                    ..*last
                };
                detector.sent(&sent, false);
            }
        }
    }

    fn returns(each: u64, apart_ns: i64) -> bool {
        let (mut detector, mut last) = (AppLimitedDetector::default(), SendEvent::default());
        write(&mut detector, 20, APART_NS, &mut last);
        let_out(&mut detector, 12, each, &mut last);
        write(&mut detector, 20, apart_ns, &mut last);
        detector.has_returned()
    }

    #[test]
    fn an_application_rate_returns_after_ack_clocked_segments() {
        assert!(returns(2, APART_NS));
        assert!(!returns(2, APART_NS * 9 / 10), "at another rate");
        assert!(!returns(1, APART_NS), "one by one, as who paces may");
    }

    #[test]
    fn a_different_rate_is_not_the_applications() {
        let (mut detector, mut last) = (AppLimitedDetector::default(), SendEvent::default());
        write(&mut detector, 20, APART_NS, &mut last);
        let_out(&mut detector, 12, 2, &mut last);
        write(&mut detector, 20, APART_NS, &mut last);
        assert!(detector.has_returned());
        write(&mut detector, 20, APART_NS * 5 / 4, &mut last);
        assert!(!detector.has_returned(), "it probes");
    }

    /// Rounds of ten segments that take so long each, evenly or all at the end.
    fn limits(recurring: &mut RecurringRate, count: u32, apart_ns: i64, evenly: bool) -> bool {
        let mut at_rate = false;
        for _ in 0..count {
            let (begun_ns, begun) = recurring.until;
            for number in 1..=10 {
                let ago_ns = if evenly { number } else { 10 };
                let now_ns = begun_ns + ago_ns * apart_ns;
                recurring.sent(now_ns, begun + number as u64 * SEGMENT);
            }
            at_rate = recurring.round(rate((begun_ns, begun), recurring.until));
        }
        at_rate
    }

    #[test]
    fn an_evenly_spaced_rate_returns_after_a_retransmission() {
        let back = |retransmitted: bool, evenly: bool| {
            let mut recurring = RecurringRate::default();
            assert!(!limits(&mut recurring, 6, APART_NS, evenly));
            assert_eq!(recurring.stays(), evenly);
            if retransmitted {
                recurring.retransmitted();
            }
            limits(&mut recurring, 2, APART_NS / 2, evenly);
            limits(&mut recurring, 2, APART_NS, evenly)
        };
        assert!(back(true, true));
        assert!(!back(false, true), "nothing held it back");
        assert!(!back(true, false), "windows are sent as bursts");
    }
}
