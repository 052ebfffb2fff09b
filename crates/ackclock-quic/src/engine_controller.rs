//! A controller of the engine in a QUIC stack: what the stack reports, in the terms of TCP's controllers.
//!
//! A segment is the largest UDP payload of the connection. The stack decides what is lost (RFC 9002 section 6), and
//! reports packets that are sent, acknowledged and lost; from these come recovery periods, once for each round trip
//! (section 7.3.2), samples of the RTT and of the delivery rate. The window in bytes is the controller's in whole
//! segments, at least two of them (section 7.2).
//!
//! Deviations from TCP's sender: a reduction takes effect at once, without proportional rate reduction; losses are
//! reported with the next acknowledgement; there is no restart after an idle time; persistent congestion (section 7.6)
//! takes the place of the retransmission timeout.

use std::collections::VecDeque;
use std::fmt;

use ackclock_congestion::{Ack, Controller, Loss, Opening, PriorWindow, RecoveryPolicy};
use ackclock_core::tcp::delivery_rate::{RateSampler, Sample};
use ackclock_core::{Rate, Time};
use ackclock_plan::CongestionPlan;

/// Smallest window, in segments (RFC 9002 section 7.2).
const MIN_WINDOW: u64 = 2;

/// The last recovery period.
#[derive(Clone, Copy, Debug)]
struct Episode {
    start: Time,
    /// False after the first acknowledgement of a packet that was sent in it.
    is_open: bool,
    /// True if persistent congestion is the reason.
    is_collapse: bool,
    /// Window that an undo restores; none after it.
    prior: Option<PriorWindow>,
}

/// The reason why an algorithm is no controller of a stack.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// It cannot be made.
    #[error(transparent)]
    Congestion(#[from] ackclock_congestion::Error),
    /// The stack lacks what it requires.
    #[error("\"{kind}\" {requirement}")]
    Unsupported {
        /// The algorithm.
        kind: String,
        /// The unmet requirement, as a predicate.
        requirement: &'static str,
    },
}

/// Packets of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Acked {
    bytes: u64,
    /// When the newest of them was sent.
    newest: Option<Time>,
}

/// A controller of the engine behind the events of a stack.
pub struct EngineController {
    controller: Box<dyn Controller>,
    segment_bytes: u32,
    seed: u64,
    is_established: bool,
    /// True if the window has held a packet back since the last acknowledgement.
    is_cwnd_limited: bool,
    srtt: Time,
    min_rtt: Time,
    rates: RateSampler,
    /// State at each time of sending of what is in flight, the oldest first.
    sent: VecDeque<Sample>,
    sendings: u64,
    in_flight_bytes: u64,
    acked: Acked,
    /// Acknowledged bytes that are not a segment yet.
    remainder_bytes: u64,
    lost_bytes: u64,
    lost: u64,
    episode: Option<Episode>,
}

impl EngineController {
    /// A controller of a plan; `seed` is that of its random numbers.
    ///
    /// # Errors
    /// An unknown algorithm, other parameters than its spec's, or a requirement that the stack does not meet.
    pub fn new(
        plan: &CongestionPlan,
        segment_bytes: u16,
        initial_window_bytes: u64,
        seed: u64,
    ) -> Result<EngineController, ControllerError> {
        let segments = initial_window_bytes / u64::from(segment_bytes);
        let initial_window = segments.clamp(MIN_WINDOW, u32::MAX.into()) as u32;
        let controller = ackclock_congestion::make(&plan.kind, &plan.parameters, initial_window)?;
        if controller.recovery_policy() == RecoveryPolicy::SlowStart {
            return Err(ControllerError::Unsupported {
                kind: plan.kind.clone(),
                requirement: "takes all that is in flight for lost, which a QUIC stack does not",
            });
        }
        Ok(EngineController {
            controller,
            segment_bytes: segment_bytes.into(),
            seed,
            is_established: false,
            is_cwnd_limited: false,
            srtt: Time::ZERO,
            min_rtt: Time::NEVER,
            rates: RateSampler::default(),
            sent: VecDeque::new(),
            sendings: 0,
            in_flight_bytes: 0,
            acked: Acked::default(),
            remainder_bytes: 0,
            lost_bytes: 0,
            lost: 0,
            episode: None,
        })
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, now: Time, bytes: u64) {
        if self.in_flight_bytes == 0 {
            self.rates.begin_flight(now);
        }
        self.in_flight_bytes += bytes;
        if self.sent.back().is_some_and(|newest| newest.sent == now) {
            return;
        }
        let state = self.rates.sending(now);
        self.sendings += 1;
        self.sent.push_back(Sample {
            sequence: self.sendings,
            sent: now,
            flight_start: state.flight_start,
            delivered_at: state.delivered_at,
            delivered: state.delivered as u32,
            retransmitted: false,
            application_limited: state.application_limited,
        });
    }

    /// The window holds a packet back.
    pub fn on_cwnd_limited(&mut self) {
        self.is_cwnd_limited = true;
    }

    /// A packet that was sent at `sent` is acknowledged; `srtt` is the RTT before this acknowledgement.
    pub fn on_packet_acked(&mut self, sent: Time, bytes: u64, srtt: Time) {
        self.acked.bytes += bytes;
        self.acked.newest = self.acked.newest.max(Some(sent));
        if self.is_established {
            self.srtt = srtt;
        }
    }

    /// All packets of an acknowledgement were reported; `in_flight_bytes` are left.
    pub fn on_end_acks(&mut self, now: Time, in_flight_bytes: u64, application_limited: bool) {
        let acked = std::mem::take(&mut self.acked);
        let prior_in_flight = self.in_flight();
        self.in_flight_bytes = in_flight_bytes;
        let Some(newest) = acked.newest else { return };
        let rtt = now.since(newest);
        self.min_rtt = self.min_rtt.min(rtt);
        if !self.is_established {
            self.establish(now, rtt);
        }
        self.end_episode(now, newest, rtt);
        let newly_acked = self.whole_segments(acked.bytes);
        self.rates.deliver(newly_acked);
        let latest = self.take_sample(newest);
        let prior_delivered = latest.map(|latest| self.rates.delivered_before(&latest));
        let delivery_rate = latest.and_then(|latest| self.measure_rate(&latest, now));
        if application_limited {
            self.rates.limit_by_application(self.in_flight());
        }
        let is_slow_start = self.controller.cwnd() < self.controller.ssthresh();
        let is_window_used = std::mem::take(&mut self.is_cwnd_limited) || is_slow_start;
        let newly_lost = self.count_lost();
        let open = self.episode.filter(|episode| episode.is_open);
        let unacknowledged = self.rates.delivered + self.lost;
        self.controller.on_ack(&Ack {
            now,
            newly_acked,
            newly_acked_bytes: acked.bytes,
            may_raise_cwnd: true,
            cumulatively_acked: newly_acked,
            has_sack: false,
            window_update: false,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_in_flight,
            in_flight: self.in_flight(),
            delivery_rate,
            delivered: self.rates.delivered,
            prior_delivered: prior_delivered.unwrap_or(self.rates.delivered),
            application_limited: latest.is_some_and(|latest| latest.application_limited),
            window_limited: !application_limited && is_window_used,
            newly_lost,
            marked_bytes: 0,
            next: unacknowledged + u64::from(self.in_flight()),
            unacknowledged,
            recovering: open.is_some_and(|episode| !episode.is_collapse),
            in_loss: open.is_some_and(|episode| episode.is_collapse),
            paced: true,
            next_departure: now,
        });
    }

    /// Packets were lost, the newest of which was sent at `sent`; or, with `is_mark`, one was marked.
    pub fn on_congestion(
        &mut self,
        now: Time,
        sent: Time,
        is_persistent: bool,
        is_mark: bool,
        lost_bytes: u64,
    ) {
        let in_flight = self.in_flight();
        self.lost_bytes += lost_bytes;
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(lost_bytes);
        let is_new = self.episode.is_none_or(|episode| sent > episode.start);
        let ignores_mark =
            is_mark && self.controller.recovery_policy() == RecoveryPolicy::Controller;
        if ignores_mark || !(is_new || is_persistent) {
            return;
        }
        let cwnd = self.controller.cwnd();
        self.episode = Some(Episode {
            start: now,
            is_open: true,
            is_collapse: is_persistent,
            prior: Some(PriorWindow {
                cwnd,
                ssthresh: self.controller.ssthresh().max(0.75 * cwnd),
            }),
        });
        if is_persistent {
            return self.controller.on_timeout(now, in_flight);
        }
        self.controller.on_loss(&Loss {
            now,
            in_flight,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            delivered: self.rates.delivered,
            marked: is_mark,
        });
    }

    /// The losses of the last recovery period were spurious.
    pub fn on_spurious_congestion(&mut self) {
        let episode = self.episode.as_mut();
        if let Some(prior) = episode.and_then(|episode| episode.prior.take()) {
            self.controller.undo(&prior);
        }
    }

    /// The congestion window.
    pub fn window_bytes(&self) -> u64 {
        let segments = (self.controller.cwnd() as u64).max(MIN_WINDOW);
        segments.saturating_mul(self.segment_bytes.into())
    }

    /// The slow start threshold; none before the first reduction.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        let segments = self.controller.ssthresh();
        let bytes = segments * f64::from(self.segment_bytes);
        segments.is_finite().then_some(bytes as u64)
    }

    /// The pacing rate; none if it follows from the window.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.controller.pacing_rate()
    }

    /// The first acknowledgement has an RTT.
    fn establish(&mut self, now: Time, rtt: Time) {
        self.is_established = true;
        self.srtt = rtt;
        self.controller.on_established(&Opening {
            now,
            srtt: rtt,
            mss_bytes: self.segment_bytes,
            seed: self.seed,
        });
    }

    /// End the recovery period when a packet is acknowledged that was sent in it (RFC 9002 section 7.3.2).
    fn end_episode(&mut self, now: Time, newest: Time, rtt: Time) {
        let ended = self
            .episode
            .as_mut()
            .filter(|episode| episode.is_open && newest > episode.start);
        if let Some(episode) = ended {
            episode.is_open = false;
            self.controller.on_recovered(now, Some(rtt));
        }
    }

    /// Whole segments in bytes; what is left counts with the next ones.
    fn whole_segments(&mut self, bytes: u64) -> u32 {
        let segment = u64::from(self.segment_bytes);
        let bytes = self.remainder_bytes + bytes;
        self.remainder_bytes = bytes % segment;
        (bytes / segment) as u32
    }

    /// Take the state of the connection at a time of sending, and forget those before it.
    fn take_sample(&mut self, sent: Time) -> Option<Sample> {
        let older = self.sent.partition_point(|sample| sample.sent < sent);
        self.sent.drain(..older);
        self.sent
            .front()
            .copied()
            .filter(|sample| sample.sent == sent)
    }

    /// The delivery rate since the transmission of the newest packet; none over less than an RTT.
    fn measure_rate(&mut self, latest: &Sample, now: Time) -> Option<Rate> {
        let (segments, interval) = self.rates.sample(latest, now);
        let bytes = f64::from(segments) * f64::from(self.segment_bytes);
        (interval >= self.min_rtt && interval > Time::ZERO).then(|| Rate::of(bytes, interval))
    }

    /// Segments lost since the last count.
    fn count_lost(&mut self) -> u32 {
        let lost = self.lost_bytes / u64::from(self.segment_bytes);
        self.lost_bytes %= u64::from(self.segment_bytes);
        self.lost += lost;
        lost as u32
    }

    /// Segments in flight, the last of which may be short.
    fn in_flight(&self) -> u32 {
        self.in_flight_bytes.div_ceil(self.segment_bytes.into()) as u32
    }
}

impl Clone for EngineController {
    fn clone(&self) -> EngineController {
        EngineController {
            controller: self.controller.clone_box(),
            sent: self.sent.clone(),
            ..*self
        }
    }
}

impl fmt::Debug for EngineController {
    fn fmt(&self, into: &mut fmt::Formatter<'_>) -> fmt::Result {
        into.debug_struct("EngineController")
            .field("cwnd", &self.controller.cwnd())
            .field("ssthresh", &self.controller.ssthresh())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
