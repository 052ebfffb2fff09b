//! The sender's state beside its controller, and the input derived from it.

use std::collections::VecDeque;

use ackclock_congestion::{Ack, Opening, Restart};
use ackclock_core::{Rate, Time};

use super::ControllerInput;
use crate::identify::series::{AckSample, CaState, Series, Signal};

/// The sender's delivery state when a now delivered segment was sent.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    time: Time,
    sent: Time,
    segments: u64,
}

/// The least variance term of a timeout in Linux, `TCP_RTO_MIN`.
const MIN_RTO_MARGIN: Time = Time::from_milliseconds(200);

/// The sender's state beside its controller.
pub(crate) struct Sender {
    mss_bytes: u32,
    initial_window: u32,
    srtt: Time,
    rttvar: Time,
    min_rtt: Time,
    delivered: u64,
    unacknowledged: u64,
    ca_state: CaState,
    /// The last congestion signal.
    last_signal: Signal,
    /// The deliveries of the last round trip, and the one before them.
    deliveries: VecDeque<Delivered>,
}

impl Sender {
    pub(crate) fn new(series: &Series) -> Self {
        Self {
            mss_bytes: series.mss_bytes.max(1),
            initial_window: series.initial_window.unwrap_or(1).max(1),
            srtt: series.handshake.unwrap_or(Time::ZERO),
            rttvar: series.handshake.unwrap_or(Time::ZERO).scaled(0.5),
            min_rtt: series.handshake.unwrap_or(Time::NEVER),
            delivered: 0,
            unacknowledged: 0,
            ca_state: CaState::Open,
            last_signal: Signal::Loss,
            deliveries: VecDeque::new(),
        }
    }

    pub(super) fn opening(&self, first: Option<&AckSample>) -> Opening {
        Opening {
            now: first.map_or(Time::ZERO, |sample| sample.time),
            srtt: self.srtt,
            mss_bytes: self.mss_bytes,
            seed: 0,
        }
    }

    /// Return the controller's input for a measured sample.
    pub(crate) fn controller_input(&mut self, sample: &AckSample, end: Time) -> ControllerInput {
        self.unacknowledged += u64::from(sample.advanced);
        let recovered = self.ca_state == CaState::Recovery && sample.ca_state == CaState::Open;
        let last_signal = sample.signal.unwrap_or(self.last_signal);
        let episode = if recovered {
            self.last_signal
        } else {
            last_signal
        };
        self.last_signal = last_signal;
        self.ca_state = sample.ca_state;
        ControllerInput {
            ack: self.ack(sample),
            marked: sample.marked,
            recovered,
            episode,
            signal: sample.signal,
            end,
            oldest_sent: sample.oldest_sent,
            restart: self.restart(sample),
        }
    }

    /// Return the restart if the sample leaves nothing outstanding and more is sent later.
    fn restart(&self, sample: &AckSample) -> Option<Restart> {
        let sent = sample.oldest_sent;
        let rested = sample.outstanding == 0 && sample.window > 0 && sent >= sample.time;
        rested.then(|| Restart {
            now: sent,
            idle_since: sample.time.since(sample.rtt.unwrap_or(self.srtt)),
            rto: self.srtt + self.rttvar.scaled(4.0).max(MIN_RTO_MARGIN),
            initial_window: self.initial_window,
        })
    }

    /// RFC 6298 section 2, and the smallest RTT so far.
    pub(crate) fn measure(&mut self, sample: &AckSample) {
        self.delivered += u64::from(sample.delivered);
        let Some(rtt) = sample.rtt else { return };
        self.min_rtt = self.min_rtt.min(rtt);
        let rtt = sample.oldest_rtt.unwrap_or(rtt);
        if self.srtt == Time::ZERO {
            (self.srtt, self.rttvar) = (rtt, rtt.scaled(0.5));
            return;
        }
        let off = self.srtt.since(rtt).max(rtt.since(self.srtt));
        self.rttvar = self.rttvar.scaled(0.75) + off.scaled(0.25);
        self.srtt = self.srtt.scaled(0.875) + rtt.scaled(0.125);
    }

    fn ack(&mut self, sample: &AckSample) -> Ack {
        let rtt = sample.rtt.unwrap_or(self.srtt);
        let (prior_delivered, delivery_rate) = self.rate(sample, rtt);
        Ack {
            now: sample.time,
            newly_acked: sample.delivered,
            newly_acked_bytes: u64::from(sample.delivered) * u64::from(self.mss_bytes),
            may_raise_cwnd: sample.advanced > 0,
            cumulatively_acked: sample.advanced,
            has_sack: sample.selective,
            window_update: false,
            rtt: sample.rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_in_flight: sample.prior_in_flight,
            in_flight: sample.in_flight,
            delivery_rate,
            delivered: self.delivered,
            prior_delivered,
            application_limited: sample.not_cwnd_limited,
            window_limited: !sample.not_cwnd_limited,
            newly_lost: newly_lost(sample),
            marked_bytes: u64::from(sample.marked) * u64::from(self.mss_bytes),
            next: self.unacknowledged + u64::from(sample.outstanding),
            unacknowledged: self.unacknowledged,
            recovering: sample.ca_state == CaState::Recovery,
            in_loss: sample.ca_state == CaState::Loss,
            paced: false,
            next_departure: sample.time,
        }
    }

    /// Return the segments delivered when the newest segment was sent, and the delivery rate since: over the longer of
    /// the send and the ACK interval.
    fn rate(&mut self, sample: &AckSample, rtt: Time) -> (u64, Option<Rate>) {
        let sent = sample.time.since(rtt);
        while self.deliveries.get(1).is_some_and(|next| next.time <= sent) {
            self.deliveries.pop_front();
        }
        let before = self.deliveries.front().copied();
        if sample.delivered > 0 {
            self.deliveries.push_back(Delivered {
                time: sample.time,
                sent,
                segments: self.delivered,
            });
        }
        let Some(before) = before.filter(|before| before.time <= sent) else {
            return (0, None);
        };
        let interval = sent.since(before.sent).max(sample.time.since(before.time));
        let segments = self.delivered - before.segments;
        let bytes = segments as f64 * f64::from(self.mss_bytes);
        let known = sample.rtt.is_some() && interval >= self.min_rtt && interval > Time::ZERO;
        (before.segments, known.then(|| Rate::of(bytes, interval)))
    }
}

/// Return the segments that left the pipe undelivered.
fn newly_lost(sample: &AckSample) -> u32 {
    let left = sample.prior_in_flight.saturating_sub(sample.in_flight);
    let lost = left.saturating_sub(sample.delivered);
    lost.max(u32::from(sample.signal == Some(Signal::Loss)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS_BYTES: u32 = 1000;

    fn at(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    #[test]
    fn the_delivery_rate_is_that_of_the_last_round_trip() {
        let mut sender = Sender::new(&Series {
            mss_bytes: MSS_BYTES,
            ..Series::default()
        });
        let mut last = None;
        for number in 1..100 {
            let sample = AckSample {
                time: at(10 * number),
                delivered: 1,
                advanced: 1,
                rtt: Some(at(100)),
                ..AckSample::default()
            };
            sender.measure(&sample);
            last = sender.ack(&sample).delivery_rate;
        }
        let rate = last.expect("a round trip has passed").bytes_per_second();
        assert!((rate - 100_000.0).abs() < 1e-3, "{rate}");
    }

    fn input(sample: AckSample) -> ControllerInput {
        let mut sender = Sender::new(&Series {
            mss_bytes: MSS_BYTES,
            initial_window: Some(10),
            handshake: Some(at(100)),
            ..Series::default()
        });
        sender.measure(&sample);
        sender.controller_input(&sample, sample.time)
    }

    #[test]
    fn segments_that_leave_the_pipe_undelivered_are_lost() {
        let sample = AckSample {
            delivered: 1,
            prior_in_flight: 20,
            in_flight: 15,
            ..AckSample::default()
        };
        assert_eq!(input(sample).ack.newly_lost, 4);
        let signal = Some(Signal::Loss);
        assert_eq!(input(AckSample { signal, ..sample }).ack.newly_lost, 4);
        let none = AckSample {
            signal,
            ..AckSample::default()
        };
        assert_eq!(input(none).ack.newly_lost, 1);
    }

    #[test]
    fn transmission_with_nothing_outstanding_is_a_restart() {
        let sample = AckSample {
            time: at(1000),
            delivered: 2,
            advanced: 2,
            rtt: Some(at(100)),
            window: 2,
            oldest_sent: at(1300),
            ..AckSample::default()
        };
        let restart = input(sample).restart.expect("nothing was in flight");
        assert_eq!((restart.now, restart.idle_since), (at(1300), at(900)));
        assert_eq!(restart.rto, at(300));
        let busy = AckSample {
            outstanding: 1,
            ..sample
        };
        assert!(input(busy).restart.is_none());
    }
}
