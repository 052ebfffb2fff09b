//! What a sender knows beside its controller, and tells it.

use std::collections::VecDeque;

use ackclock_congestion::{Ack, Opening, Restart};
use ackclock_core::{Rate, Time};

use super::Told;
use crate::series::{Phase, Series, Signal, Step};

/// Where the sender stood when what is delivered now was sent.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    time: Time,
    sent: Time,
    segments: u64,
}

/// The least variance term of a timeout in Linux, `TCP_RTO_MIN`.
const LEAST_RTO_MARGIN: Time = Time::from_milliseconds(200);

/// What a sender knows beside its controller.
pub(crate) struct Sender {
    mss_bytes: u32,
    initial_window: u32,
    srtt: Time,
    rttvar: Time,
    min_rtt: Time,
    delivered: u64,
    unacknowledged: u64,
    phase: Phase,
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
            phase: Phase::Open,
            deliveries: VecDeque::new(),
        }
    }

    pub(super) fn opening(&self, first: Option<&Step>) -> Opening {
        Opening {
            now: first.map_or(Time::ZERO, |step| step.time),
            srtt: self.srtt,
            mss_bytes: self.mss_bytes,
            seed: 0,
        }
    }

    /// What a controller is told with a step that is measured.
    pub(crate) fn tell(&mut self, step: &Step, end: Time) -> Told {
        self.unacknowledged += u64::from(step.advanced);
        let recovered = self.phase == Phase::Recovery && step.phase == Phase::Open;
        self.phase = step.phase;
        Told {
            ack: self.ack(step),
            marked: step.marked,
            recovered,
            signal: step.signal,
            end,
            oldest_sent: step.oldest_sent,
            restart: self.restart(step),
        }
    }

    /// What is sent once all is acknowledged comes after a rest, however short.
    fn restart(&self, step: &Step) -> Option<Restart> {
        let sent = step.oldest_sent;
        let rested = step.outstanding == 0 && step.window > 0 && sent >= step.time;
        rested.then(|| Restart {
            now: sent,
            idle_since: step.time.since(step.rtt.unwrap_or(self.srtt)),
            rto: self.srtt + self.rttvar.scaled(4.0).max(LEAST_RTO_MARGIN),
            initial_window: self.initial_window,
        })
    }

    /// RFC 6298 section 2, and the smallest RTT so far.
    pub(crate) fn measure(&mut self, step: &Step) {
        self.delivered += u64::from(step.delivered);
        let Some(rtt) = step.rtt else { return };
        self.min_rtt = self.min_rtt.min(rtt);
        let rtt = step.oldest_rtt.unwrap_or(rtt);
        if self.srtt == Time::ZERO {
            (self.srtt, self.rttvar) = (rtt, rtt.scaled(0.5));
            return;
        }
        let off = self.srtt.since(rtt).max(rtt.since(self.srtt));
        self.rttvar = self.rttvar.scaled(0.75) + off.scaled(0.25);
        self.srtt = self.srtt.scaled(0.875) + rtt.scaled(0.125);
    }

    fn ack(&mut self, step: &Step) -> Ack {
        let rtt = step.rtt.unwrap_or(self.srtt);
        let (prior_delivered, delivery_rate) = self.rate(step, rtt);
        Ack {
            now: step.time,
            newly_acked: step.delivered,
            newly_acked_bytes: u64::from(step.delivered) * u64::from(self.mss_bytes),
            advanced: step.advanced > 0,
            cumulatively_acked: step.advanced,
            selective: step.selective,
            opens: false,
            rtt: step.rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_in_flight: step.prior_in_flight,
            in_flight: step.in_flight,
            delivery_rate,
            delivered: self.delivered,
            prior_delivered,
            application_limited: step.limited_elsewhere,
            window_limited: !step.limited_elsewhere,
            newly_lost: newly_lost(step),
            marked_bytes: u64::from(step.marked) * u64::from(self.mss_bytes),
            next: self.unacknowledged + u64::from(step.outstanding),
            unacknowledged: self.unacknowledged,
            recovering: step.phase == Phase::Recovery,
            repairing: step.phase == Phase::Loss,
            paced: false,
            next_departure: step.time,
        }
    }

    /// What had been delivered when the newest segment was sent, and the rate since: over the longer of the times in
    /// which the segments were sent and acknowledged; none over less than the smallest RTT.
    fn rate(&mut self, step: &Step, rtt: Time) -> (u64, Option<Rate>) {
        let sent = step.time.since(rtt);
        while self.deliveries.get(1).is_some_and(|next| next.time <= sent) {
            self.deliveries.pop_front();
        }
        let before = self.deliveries.front().copied();
        if step.delivered > 0 {
            self.deliveries.push_back(Delivered {
                time: step.time,
                sent,
                segments: self.delivered,
            });
        }
        let Some(before) = before.filter(|before| before.time <= sent) else {
            return (0, None);
        };
        let interval = sent.since(before.sent).max(step.time.since(before.time));
        let segments = self.delivered - before.segments;
        let bytes = segments as f64 * f64::from(self.mss_bytes);
        let known = step.rtt.is_some() && interval >= self.min_rtt && interval > Time::ZERO;
        (before.segments, known.then(|| Rate::of(bytes, interval)))
    }
}

/// What left the pipe without having been delivered.
fn newly_lost(step: &Step) -> u32 {
    let left = step.prior_in_flight.saturating_sub(step.in_flight);
    let lost = left.saturating_sub(step.delivered);
    lost.max(u32::from(step.signal == Some(Signal::Loss)))
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
            let step = Step {
                time: at(10 * number),
                delivered: 1,
                advanced: 1,
                rtt: Some(at(100)),
                ..Step::default()
            };
            sender.measure(&step);
            last = sender.ack(&step).delivery_rate;
        }
        let rate = last.expect("a round trip has passed").bytes_per_second();
        assert!((rate - 100_000.0).abs() < 1e-3, "{rate}");
    }

    fn told(step: Step) -> Told {
        let mut sender = Sender::new(&Series {
            mss_bytes: MSS_BYTES,
            initial_window: Some(10),
            handshake: Some(at(100)),
            ..Series::default()
        });
        sender.measure(&step);
        sender.tell(&step, step.time)
    }

    #[test]
    fn what_leaves_the_pipe_undelivered_is_lost() {
        let step = Step {
            delivered: 1,
            prior_in_flight: 20,
            in_flight: 15,
            ..Step::default()
        };
        assert_eq!(told(step).ack.newly_lost, 4);
        let signal = Some(Signal::Loss);
        assert_eq!(told(Step { signal, ..step }).ack.newly_lost, 4);
        let none = Step {
            signal,
            ..Step::default()
        };
        assert_eq!(told(none).ack.newly_lost, 1);
    }

    #[test]
    fn what_is_sent_when_all_is_acknowledged_comes_after_a_rest() {
        let step = Step {
            time: at(1000),
            delivered: 2,
            advanced: 2,
            rtt: Some(at(100)),
            window: 2,
            oldest_sent: at(1300),
            ..Step::default()
        };
        let restart = told(step).restart.expect("nothing was in flight");
        assert_eq!((restart.now, restart.idle_since), (at(1300), at(900)));
        assert_eq!(restart.rto, at(300));
        let busy = Step {
            outstanding: 1,
            ..step
        };
        assert!(told(busy).restart.is_none());
    }
}
