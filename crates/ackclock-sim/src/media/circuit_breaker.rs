//! The circuit breaker of RTP: a sender ceases where the path is gone, or where it takes far more than TCP would.
//!
//! RFC 8083, an instance of the network transport circuit breakers of RFC 8084. At each reporting interval Td, in which
//! something was sent, the sender judges (section numbers of RFC 8083):
//!
//! ```text
//!   4.1 RTCP timeout    no report for 3 Td
//!   4.2 media timeout   MEDIA_TIMEOUT = ceil(k max(Tf, Tr, Tdr) / Tdr) intervals with reports and nothing new in them
//!   4.3 congestion      over CB_INTERVAL intervals more than 10 X, where X = s / (Tr sqrt(2 b p / 3)) is TCP's rate
//!                       CB_INTERVAL = ceil(3 min(max(10 G Tf, 10 Tr, 3 Tdr), max(15 s, 3 Td)) / (3 Tdr))
//! ```
//!
//! Tf is the interval of frames, Tr the RTT, s the mean size of packets and p the ratio of losses over the same
//! intervals; a CE mark counts as a loss (section 7). Then the flow ceases for good (section 4.5).
//!
//! Choices: Td = Tdr = 5 s, RTCP's minimum interval (RFC 3550 section 6.2); k = 5, G = 1, b = 1. The counts of an
//! interval are sums over the per-packet reports of RFC 8888 in it. Media usability (section 4.4) is the application's
//! and not here; nor is a gradual reduction before the flow ceases.
//!
//! The text was at hand in quotations only.

use std::collections::VecDeque;

use ackclock_congestion::realtime::PacketReport;
use ackclock_core::Time;

/// Td and Tdr: the interval of RTCP's reports.
pub const REPORT_INTERVAL: Time = Time::from_milliseconds(5000);
/// Intervals without a report after which the sender ceases.
const RTCP_TIMEOUT: u32 = 3;
/// k: reports without progress that suffice where they are the slowest of all.
const NON_REPORTING_THRESHOLD: f64 = 5.0;
/// Shortest upper bound of the time over which congestion is judged.
const MAX_CONGESTED_S: f64 = 15.0;
/// Largest multiple of TCP's rate: an order of magnitude.
const TCP_FACTOR: f64 = 10.0;

/// Why a flow ceased; the discriminants are the values of its event, by the sections of RFC 8083.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trip {
    /// No reports.
    RtcpTimeout = 1,
    /// Reports, but nothing new in them.
    MediaTimeout = 2,
    /// Too much loss for the rate.
    Congestion = 3,
}

/// Counts of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    sent_packets: u64,
    sent_bytes: u64,
    reports: u32,
    reported_packets: u64,
    lost_packets: u64,
    /// Sum over the reports with packets, s.
    rtt_sum_s: f64,
    rtt_samples: u32,
}

/// The breaker of a flow.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    /// Tf, in s.
    frame_interval_s: f64,
    next_check: Time,
    current: Interval,
    /// Intervals in which something was sent, the newest last.
    recent: VecDeque<Interval>,
    without_reports: u32,
    without_progress: u32,
}

impl CircuitBreaker {
    /// The breaker of a flow that starts at `now`.
    pub fn new(now: Time, frames_per_s: f64) -> CircuitBreaker {
        CircuitBreaker {
            frame_interval_s: 1.0 / frames_per_s,
            next_check: now + REPORT_INTERVAL,
            current: Interval::default(),
            recent: VecDeque::new(),
            without_reports: 0,
            without_progress: 0,
        }
    }

    /// End of the present interval.
    pub fn next_check(&self) -> Time {
        self.next_check
    }

    /// Count a packet that was sent.
    pub fn on_sent(&mut self, bytes: u32) {
        self.current.sent_packets += 1;
        self.current.sent_bytes += u64::from(bytes);
    }

    /// Count a report and its packets.
    pub fn on_report(&mut self, packets: &[PacketReport], rtt: Option<Time>) {
        let sums = &mut self.current;
        sums.reports += 1;
        sums.reported_packets += packets.len() as u64;
        let gone = |packet: &&PacketReport| packet.arrival.is_none() || packet.marked;
        sums.lost_packets += packets.iter().filter(gone).count() as u64;
        if let Some(rtt) = rtt.filter(|_| !packets.is_empty()) {
            sums.rtt_sum_s += rtt.seconds();
            sums.rtt_samples += 1;
        }
    }

    /// Judge the interval that ends; returns why the flow must cease, if it must.
    pub fn check(&mut self) -> Option<Trip> {
        self.next_check += REPORT_INTERVAL;
        let interval = std::mem::take(&mut self.current);
        if interval.sent_packets == 0 {
            return None;
        }
        self.recent.push_back(interval);
        self.without_reports = count(self.without_reports, interval.reports == 0);
        if self.without_reports >= RTCP_TIMEOUT {
            return Some(Trip::RtcpTimeout);
        }
        let is_stuck = interval.reports > 0 && interval.reported_packets == 0;
        self.without_progress = count(self.without_progress, is_stuck);
        let rtt_s = self.rtt_s();
        let known_s = rtt_s.unwrap_or(0.0);
        if self.without_progress >= media_timeout(self.frame_interval_s, known_s) {
            return Some(Trip::MediaTimeout);
        }
        let intervals = cb_interval(self.frame_interval_s, known_s) as usize;
        while self.recent.len() > intervals {
            self.recent.pop_front();
        }
        let is_full = self.recent.len() == intervals;
        (is_full && self.is_congested(rtt_s?)).then_some(Trip::Congestion)
    }

    /// Mean RTT of the intervals that are kept; none before the first sample.
    fn rtt_s(&self) -> Option<f64> {
        let samples: u32 = self.recent.iter().map(|each| each.rtt_samples).sum();
        let sum: f64 = self.recent.iter().map(|each| each.rtt_sum_s).sum();
        (samples > 0).then(|| sum / f64::from(samples))
    }

    fn is_congested(&self, rtt_s: f64) -> bool {
        let sum = |field: fn(&Interval) -> u64| self.recent.iter().map(field).sum::<u64>() as f64;
        let (lost, reported) = (sum(|i| i.lost_packets), sum(|i| i.reported_packets));
        let (bytes, packets) = (sum(|i| i.sent_bytes), sum(|i| i.sent_packets));
        if lost <= 0.0 {
            return false;
        }
        let span_s = self.recent.len() as f64 * REPORT_INTERVAL.seconds();
        let tcp = tcp_throughput(bytes / packets, rtt_s, lost / reported);
        bytes / span_s > TCP_FACTOR * tcp
    }
}

/// The count of consecutive intervals of a kind.
fn count(before: u32, is_another: bool) -> u32 {
    if is_another {
        before + 1
    } else {
        0
    }
}

/// X in bytes per second, the simplified equation of section 4.3.
fn tcp_throughput(packet_bytes: f64, rtt_s: f64, loss_ratio: f64) -> f64 {
    packet_bytes / (rtt_s * (2.0 * loss_ratio / 3.0).sqrt())
}

/// `MEDIA_TIMEOUT`, in reports.
fn media_timeout(frame_interval_s: f64, rtt_s: f64) -> u32 {
    let td = REPORT_INTERVAL.seconds();
    let slowest = frame_interval_s.max(rtt_s).max(td);
    (NON_REPORTING_THRESHOLD * slowest / td).ceil() as u32
}

/// `CB_INTERVAL`, in reports.
fn cb_interval(frame_interval_s: f64, rtt_s: f64) -> u32 {
    let td = REPORT_INTERVAL.seconds();
    let slowest = (10.0 * frame_interval_s).max(10.0 * rtt_s).max(3.0 * td);
    let bound = MAX_CONGESTED_S.max(3.0 * td);
    (slowest.min(bound) / td).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Time = Time::from_milliseconds(100);

    fn packets(count: u64, lost_each: u64) -> Vec<PacketReport> {
        let packet = |sequence: u64| PacketReport {
            sequence,
            sent: Time::ZERO,
            arrival: (lost_each == 0 || !sequence.is_multiple_of(lost_each)).then_some(TENTH),
            bytes: 1250,
            marked: false,
        };
        (0..count).map(packet).collect()
    }

    /// Send packets of 1250 bytes in an interval, report them with 100 ms, and judge.
    fn interval(breaker: &mut CircuitBreaker, count: u64, lost_each: u64) -> Option<Trip> {
        (0..count).for_each(|_| breaker.on_sent(1250));
        breaker.on_report(&packets(count, lost_each), Some(TENTH));
        breaker.check()
    }

    fn breaker() -> CircuitBreaker {
        CircuitBreaker::new(Time::ZERO, 30.0)
    }

    /// p = 0.1 and 100 ms: X = 1250 / (0.1 · sqrt(0.2/3)) = 48,412 bytes/s, ten times which is 387 packets/s.
    #[test]
    fn congestion_is_ten_times_the_rate_of_tcp_over_three_intervals() {
        assert!((tcp_throughput(1250.0, 0.1, 0.1) - 48_412.29).abs() < 0.01);
        let mut slow = breaker();
        assert!((0..9).all(|_| interval(&mut slow, 5 * 380, 10).is_none()));
        let mut fast = breaker();
        assert_eq!(interval(&mut fast, 5 * 400, 10), None);
        assert_eq!(interval(&mut fast, 5 * 400, 10), None);
        assert_eq!(interval(&mut fast, 5 * 400, 10), Some(Trip::Congestion));
        let mut lossless = breaker();
        assert!((0..9).all(|_| interval(&mut lossless, 5 * 400, 0).is_none()));
    }

    #[test]
    fn marks_count_as_losses() {
        let mut breaker = breaker();
        let mut marked = packets(2000, 0);
        marked.iter_mut().step_by(10).for_each(|p| p.marked = true);
        let trips: Vec<_> = (0..3)
            .map(|_| {
                (0..2000).for_each(|_| breaker.on_sent(1250));
                breaker.on_report(&marked, Some(TENTH));
                breaker.check()
            })
            .collect();
        assert_eq!(trips, [None, None, Some(Trip::Congestion)]);
    }

    #[test]
    fn three_intervals_without_reports_are_a_timeout() {
        let mut breaker = breaker();
        assert_eq!(interval(&mut breaker, 10, 0), None);
        let mut silent = |is_sending: bool| {
            if is_sending {
                breaker.on_sent(1250);
            }
            breaker.check()
        };
        assert_eq!((silent(true), silent(true)), (None, None));
        assert_eq!(silent(false), None, "nothing was sent");
        assert_eq!(silent(true), Some(Trip::RtcpTimeout));
    }

    #[test]
    fn five_intervals_with_reports_of_nothing_are_a_timeout() {
        let mut breaker = breaker();
        assert_eq!(interval(&mut breaker, 10, 0), None);
        let trips: Vec<_> = (0..5)
            .map(|_| {
                breaker.on_sent(1250);
                breaker.on_report(&[], Some(TENTH));
                breaker.check()
            })
            .collect();
        assert_eq!(trips[..4], [None; 4]);
        assert_eq!(trips[4], Some(Trip::MediaTimeout));
    }

    /// With Td = 5 s: 3 intervals, and no more for long RTTs, since 15 s are the bound; 10 s of RTT are 10 reports.
    #[test]
    fn intervals_by_the_formulas() {
        assert_eq!((cb_interval(0.033, 0.1), cb_interval(0.033, 3.0)), (3, 3));
        assert_eq!(
            (media_timeout(0.033, 0.1), media_timeout(0.033, 10.0)),
            (5, 10)
        );
    }
}
