//! The scoreboard against a naive one that looks at every segment each time.

use super::*;
use proptest::prelude::*;

/// State of a segment in the naive scoreboard.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, Default)]
struct NaiveSegment {
    sent: Time,
    sacked: bool,
    lost: bool,
    /// A second sending is in flight.
    retrans_out: bool,
    retransmitted: bool,
}

impl NaiveSegment {
    fn awaits_retransmission(&self) -> bool {
        self.lost && !self.retrans_out
    }
}

/// A plain vector of all segments ever sent; every question is a search.
#[derive(Debug, Default)]
struct Naive {
    segments: Vec<NaiveSegment>,
    unacknowledged: usize,
}

impl Naive {
    fn outstanding(&self) -> &[NaiveSegment] {
        &self.segments[self.unacknowledged..]
    }

    fn count(&self, is: impl Fn(&NaiveSegment) -> bool) -> u32 {
        self.outstanding().iter().filter(|known| is(known)).count() as u32
    }

    fn in_flight(&self) -> u32 {
        self.count(|known| !known.sacked && !known.lost) + self.count(|known| known.retrans_out)
    }

    fn retransmit(&mut self, sequence: u64, now: Time) {
        let known = &mut self.segments[sequence as usize];
        (known.sent, known.retrans_out, known.retransmitted) = (now, true, true);
    }

    /// Deliver `from..to`; returns the segments delivered for the first time.
    fn deliver(&mut self, from: usize, to: usize) -> Vec<(u64, NaiveSegment)> {
        let range = from.max(self.unacknowledged)..to;
        let mut delivered = Vec::new();
        for sequence in range {
            let known = &mut self.segments[sequence];
            if !known.sacked {
                delivered.push((sequence as u64, *known));
                known.sacked = true;
            }
            (known.lost, known.retrans_out) = (false, false);
        }
        delivered
    }

    /// RFC 8985 section 6.2, step 5, and the time of the last verdict that is still to come.
    fn detect_by_time(&mut self, rack: &Rack, window: Time, now: Time) -> (u32, Option<Time>) {
        let (mut lost, mut next) = (0, None::<Time>);
        for sequence in self.unacknowledged..self.segments.len() {
            let known = &mut self.segments[sequence];
            let overtaken = (known.sent, sequence as u64) < (rack.sent, rack.sequence);
            if known.sacked || known.awaits_retransmission() || !overtaken {
                continue;
            }
            let due = known.sent + rack.rtt + window;
            if due > now {
                next = Some(next.map_or(due, |next| next.max(due)));
                continue;
            }
            (known.lost, known.retrans_out) = (true, false);
            lost += 1;
        }
        (lost, next)
    }

    /// RFC 6675 section 2, `IsLost`, for segments sent once.
    fn detect_by_count(&mut self) -> u32 {
        let mut lost = 0;
        for sequence in self.unacknowledged..self.segments.len() {
            let above = self.segments[sequence + 1..].iter();
            let sacked = above.filter(|known| known.sacked).count();
            let known = &mut self.segments[sequence];
            if !known.sacked && !known.lost && !known.retransmitted && sacked >= 3 {
                known.lost = true;
                lost += 1;
            }
        }
        lost
    }

    fn mark_all_lost(&mut self, spare_since: Time) {
        for (index, known) in self.segments[self.unacknowledged..].iter_mut().enumerate() {
            let spared = index > 0 && known.sent >= spare_since;
            if !known.sacked && !spared {
                (known.lost, known.retrans_out) = (true, false);
            }
        }
    }
}

/// One thing that happens to a sender.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize),
    /// A cumulative acknowledgement of this share of what is outstanding, in 1/8.
    Acknowledge(usize),
    /// A block that begins and ends at these shares, in 1/32.
    Sack(usize, usize),
    /// Detection by time with a reordering window of this many ms.
    ByTime(u64),
    ByCount,
    /// Up to so many retransmissions.
    Retransmit(usize),
    /// The last segment again, lost or not.
    TlpProbe,
    /// A timeout that spares what was sent within so many ms.
    Timeout(u64),
    Wait(u64),
}

fn step(by_time: bool) -> impl Strategy<Value = Step> {
    let detect = if by_time {
        (0_u64..30).prop_map(Step::ByTime).boxed()
    } else {
        Just(Step::ByCount).boxed()
    };
    prop_oneof![
        4 => (1_usize..20).prop_map(Step::Send),
        3 => (0_usize..9).prop_map(Step::Acknowledge),
        8 => (1_usize..33, 1_usize..8).prop_map(|(from, length)| Step::Sack(from, from + length)),
        6 => detect,
        4 => (1_usize..6).prop_map(Step::Retransmit),
        1 => Just(Step::TlpProbe),
        1 => (0_u64..50).prop_map(Step::Timeout),
        4 => (1_u64..40).prop_map(Step::Wait),
    ]
}

/// Both scoreboards, and the time.
#[derive(Default)]
struct Pair {
    board: Scoreboard,
    naive: Naive,
    rack: Rack,
    now: Time,
}

impl Pair {
    fn apply(&mut self, step: Step) -> Result<(), TestCaseError> {
        // No two sendings of different steps share a time.
        self.now += Time::from_microseconds(1);
        match step {
            Step::Send(segments) => self.send(segments),
            Step::Acknowledge(eighths) => self.acknowledge(eighths)?,
            Step::Sack(from, to) => self.sack(from, to)?,
            Step::ByTime(window_ms) => self.detect_by_time(Time::from_milliseconds(window_ms))?,
            Step::ByCount => {
                prop_assert_eq!(
                    self.board.detect_by_count().lost,
                    self.naive.detect_by_count()
                );
            }
            Step::Retransmit(segments) => self.retransmit(segments)?,
            Step::TlpProbe => self.tlp(),
            Step::Timeout(spared_ms) => self.time_out(Time::from_milliseconds(spared_ms)),
            Step::Wait(milliseconds) => self.now += Time::from_milliseconds(milliseconds),
        }
        self.agree()
    }

    fn sending(&self) -> Sending {
        Sending {
            now: self.now,
            flight_start: Time::ZERO,
            delivered_at: Time::ZERO,
            delivered: 0,
            application_limited: false,
        }
    }

    fn send(&mut self, segments: usize) {
        for _ in 0..segments {
            self.board.reserve(1);
            self.board.send_next(&self.sending());
            self.naive.segments.push(NaiveSegment {
                sent: self.now,
                ..NaiveSegment::default()
            });
        }
    }

    fn acknowledge(&mut self, eighths: usize) -> Result<(), TestCaseError> {
        let ack = self.naive.unacknowledged + self.naive.outstanding().len() * eighths / 8;
        if ack == self.naive.unacknowledged {
            return Ok(());
        }
        let mut delivery = Delivery::default();
        self.board.acknowledge(ack as u64, &mut delivery);
        let delivered = self.naive.deliver(0, ack);
        self.naive.unacknowledged = ack;
        let once = || delivered.iter().filter(|(_, known)| !known.retransmitted);
        prop_assert_eq!(delivery.oldest, once().map(|(_, known)| known.sent).next());
        prop_assert_eq!(
            delivery.newest,
            once().map(|(_, known)| known.sent).next_back()
        );
        self.check_delivery(&delivery, &delivered)
    }

    fn sack(&mut self, from: usize, to: usize) -> Result<(), TestCaseError> {
        let outstanding = self.naive.outstanding().len();
        let at = |share: usize| self.naive.unacknowledged + outstanding * share.min(32) / 32;
        // A block lies above the first segment, which would be acknowledged otherwise.
        let (start, end) = (at(from).max(self.naive.unacknowledged + 1), at(to));
        let mut delivery = Delivery::default();
        self.board.sack((start as u64, end as u64), &mut delivery);
        let delivered = if start < end {
            self.naive.deliver(start, end)
        } else {
            Vec::new()
        };
        prop_assert_eq!(delivery.sacked as usize, delivered.len());
        let once = || delivered.iter().filter(|(_, known)| !known.retransmitted);
        prop_assert_eq!(
            delivery.oldest_sacked,
            once().map(|(_, known)| known.sent).min()
        );
        prop_assert_eq!(
            delivery.newest_sacked,
            once().map(|(_, known)| known.sent).max()
        );
        self.check_delivery(&delivery, &delivered)
    }

    fn check_delivery(
        &mut self,
        delivery: &Delivery,
        delivered: &[(u64, NaiveSegment)],
    ) -> Result<(), TestCaseError> {
        prop_assert_eq!(delivery.segments as usize, delivered.len());
        prop_assert_eq!(
            delivery.retransmitted,
            delivered.iter().any(|(_, known)| known.retransmitted)
        );
        let latest = delivered
            .iter()
            .map(|&(sequence, known)| (known.sent, sequence))
            .max();
        let losses = delivery.latest.map(|latest| (latest.sent, latest.sequence));
        prop_assert_eq!(losses, latest);
        if let Some((sent, sequence)) = latest {
            self.rack.rtt = self.now.since(sent);
            if (sent, sequence) > (self.rack.sent, self.rack.sequence) {
                (self.rack.sent, self.rack.sequence) = (sent, sequence);
            }
        }
        Ok(())
    }

    fn detect_by_time(&mut self, window: Time) -> Result<(), TestCaseError> {
        let losses = self.board.detect_by_time(&self.rack, window, self.now);
        let expected = self.naive.detect_by_time(&self.rack, window, self.now);
        prop_assert_eq!((losses.lost, losses.next), expected);
        Ok(())
    }

    /// Retransmit the segments that the scoreboard selects, which must be those of the naive one.
    fn retransmit(&mut self, segments: usize) -> Result<(), TestCaseError> {
        for _ in 0..segments {
            let Some(sequence) = self.board.next_lost() else {
                break;
            };
            self.now += Time::from_microseconds(1);
            self.board.retransmit(sequence, &self.sending());
            self.naive.retransmit(sequence, self.now);
            self.agree()?;
        }
        Ok(())
    }

    fn tlp(&mut self) {
        let Some(known) = self.naive.outstanding().last() else {
            return;
        };
        if !known.sacked && !known.lost {
            let last = self.board.next - 1;
            self.board.retransmit(last, &self.sending());
            self.naive.retransmit(last, self.now);
        }
    }

    fn time_out(&mut self, spared: Time) {
        let since = self.now.since(spared);
        self.board.mark_all_lost(|sent| sent >= since);
        self.naive.mark_all_lost(since);
    }

    fn agree(&mut self) -> Result<(), TestCaseError> {
        let (board, naive) = (&mut self.board, &self.naive);
        prop_assert_eq!(board.unacknowledged as usize, naive.unacknowledged);
        prop_assert_eq!(board.outstanding() as usize, naive.outstanding().len());
        prop_assert_eq!(board.sacked, naive.count(|known| known.sacked));
        prop_assert_eq!(board.lost, naive.count(|known| known.lost));
        prop_assert_eq!(board.retrans_out, naive.count(|known| known.retrans_out));
        prop_assert_eq!(board.in_flight(), naive.in_flight());
        if let Some(first) = naive.outstanding().first() {
            prop_assert_eq!(board.head_sent(), first.sent);
        }
        let lowest = (naive.unacknowledged..naive.segments.len())
            .find(|&sequence| naive.segments[sequence].awaits_retransmission());
        prop_assert_eq!(board.next_lost().map(|sequence| sequence as usize), lowest);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_the_naive_one_by_time(steps in prop::collection::vec(step(true), 1..120)) {
        let mut pair = Pair::default();
        for step in steps {
            pair.apply(step)?;
        }
    }

    #[test]
    fn agrees_with_the_naive_one_by_count(steps in prop::collection::vec(step(false), 1..120)) {
        let mut pair = Pair::default();
        for step in steps {
            pair.apply(step)?;
        }
    }
}
