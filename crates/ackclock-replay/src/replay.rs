//! A controller is driven with a flow's own acknowledgements, losses and RTTs: the window that it would have had.
//!
//! It is never told the window that was seen. Its errors fade nevertheless, as losses and delays come at the flow's
//! times and a loss keeps a share only of what is wrong.
//!
//! What a capture does not tell is made of what it does: smoothed RTT and least RTT (RFC 6298), delivery rates from the
//! times of delivery (Cheng et al., draft-ietf-ccwg-bbr section 4.1) with the sending times that RTTs give.

use std::collections::VecDeque;

use ackclock_congestion::{Ack, Controller, Feedback, Loss, Opening, Restart};
use ackclock_units::{Rate, Time};

use crate::pacing::Paced;
use crate::series::{Phase, Series, Signal, Step};

/// What a controller allows after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowed {
    /// Its congestion window, segments.
    pub cwnd: f64,
    /// What may be in flight until the next step: the window, or what its pacing rate has let go since the oldest
    /// outstanding segment was sent, if that is less.
    pub in_flight: f64,
}

/// What growth counts in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Acknowledged segments.
    #[default]
    Segments,
    /// ACKs, of however many segments: BIC, Scalable TCP and others in Linux before 5.7, and RFC 5681 allows it.
    Acks,
}

/// Where a replayed window comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The connection's opening: the window seen is never looked at again.
    #[default]
    Opening,
    /// The window seen before the first loss: for captures that begin later, and for a stack that leaves slow start
    /// in a way of its own.
    FirstLoss,
}

/// How a controller is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// What growth counts.
    pub counting: Counting,
    /// Where the window comes from.
    pub origin: Origin,
}

/// Makes a controller with a window in segments.
pub type Make<'a> = &'a dyn Fn(u32) -> Box<dyn Controller>;

/// What a sender tells its controller with a step: the same for every controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    ack: Ack,
    /// Segments of it that are reported as marked.
    marked: u32,
    /// A recovery ends with it.
    recovered: bool,
    signal: Option<Signal>,
    /// Until when what it allows holds.
    end: Time,
    oldest_sent: Time,
    /// Nothing was in flight after it, and more was sent then.
    restart: Option<Restart>,
}

/// A flow as every candidate is driven with it, prepared once for all.
#[derive(Debug)]
pub struct Prepared {
    mss_bytes: u32,
    uses_ecn: bool,
    opening: Opening,
    initial_window: Option<u32>,
    /// Where the first loss is, and the window seen before it.
    first_loss: Option<(usize, Option<u32>)>,
    /// Where controllers begin, at the opening or else at the first loss; from there on all that they are told.
    begin: usize,
    told: Vec<Told>,
}

impl Prepared {
    /// Of a flow.
    pub fn new(series: &Series) -> Self {
        let steps = &series.steps;
        let mut sender = Sender::new(series);
        let opening = sender.opening(steps.first());
        let first_loss = steps.iter().position(|step| step.signal.is_some());
        let open = |step: &&Step| step.phase == Phase::Open;
        let window = |before: usize| {
            let last = steps[..before].iter().rev().find(open);
            last.map(|step| step.window.clamp(1, MOST_SEGMENTS))
        };
        let first_loss = first_loss.map(|place| (place, window(place)));
        let begin = match (series.initial_window, first_loss) {
            (Some(_), _) => 0,
            (None, Some((place, Some(_)))) => place,
            _ => steps.len(),
        };
        let mut told = Vec::with_capacity(steps.len() - begin);
        let mut now = Time::ZERO;
        for (place, step) in steps.iter().enumerate() {
            // A sender's clock does not go back, and no window holds more than RFC 7323 can say.
            now = now.max(step.time);
            let step = plausible(step, now);
            let end = steps.get(place + 1).map_or(step.time, |next| next.time);
            sender.measure(&step);
            if place >= begin {
                told.push(sender.tell(&step, end.max(now)));
            }
        }
        Self {
            mss_bytes: sender.mss_bytes,
            uses_ecn: series.steps.iter().any(|step| step.marked > 0),
            opening,
            initial_window: series.initial_window,
            first_loss,
            begin,
            told,
        }
    }

    /// The flow uses ECN: something of it was marked.
    pub fn uses_ecn(&self) -> bool {
        self.uses_ecn
    }

    /// The course of a controller, one value a step; none before its origin.
    pub fn replay(&self, make: Make, manner: Manner) -> Vec<Option<Allowed>> {
        let mut replay = self.started(make, manner);
        replay.advance(usize::MAX);
        replay.course
    }

    /// The same, to be done in parts.
    pub fn started<'a>(&'a self, make: Make<'a>, manner: Manner) -> Replay<'a> {
        let mut controller = self.initial_window.map(make);
        if let Some(controller) = &mut controller {
            controller.on_open(&self.opening);
        }
        Replay {
            flow: self,
            make,
            origin: manner.origin,
            driver: Driver::new(manner.counting, self.uses_ecn, self.mss_bytes),
            controller,
            course: vec![None; self.begin],
        }
    }

    /// The course of what allows nothing, from where controllers begin.
    pub fn blank(&self) -> Vec<Option<Allowed>> {
        let nothing = Some(Allowed {
            cwnd: 0.0,
            in_flight: 0.0,
        });
        let mut course = vec![nothing; self.steps()];
        course[..self.begin].fill(None);
        course
    }

    /// Steps.
    pub fn steps(&self) -> usize {
        self.begin + self.told.len()
    }
}

/// A controller on its way along a flow.
pub struct Replay<'a> {
    flow: &'a Prepared,
    make: Make<'a>,
    origin: Origin,
    driver: Driver,
    controller: Option<Box<dyn Controller>>,
    /// What it allowed so far, one value a step; none before its origin.
    pub course: Vec<Option<Allowed>>,
}

impl Replay<'_> {
    /// Goes on until so many steps are done.
    pub fn advance(&mut self, steps: usize) {
        let done = self.course.len();
        let until = steps.min(self.flow.steps()).max(done);
        self.course.reserve(until - done);
        for place in done..until {
            let first = self.flow.first_loss.filter(|&(first, _)| first == place);
            if let Some((_, window)) = first {
                if self.origin == Origin::FirstLoss || self.controller.is_none() {
                    self.controller = window.map(self.make).or(self.controller.take());
                }
            }
            let told = &self.flow.told[place - self.flow.begin];
            let controller = self.controller.as_mut();
            let allowed = controller.map(|one| self.driver.follow(one.as_mut(), told));
            self.course.push(allowed);
        }
    }
}

/// The largest window of RFC 7323 section 2.3, bytes; of segments there are fewer.
const MOST_SEGMENTS: u32 = 1 << 30;

/// The step as a sender could have had it.
fn plausible(step: &Step, now: Time) -> Step {
    Step {
        time: now,
        delivered: step.delivered.min(MOST_SEGMENTS),
        advanced: step.advanced.min(MOST_SEGMENTS),
        marked: step.marked.min(step.delivered),
        prior_in_flight: step.prior_in_flight.min(MOST_SEGMENTS),
        in_flight: step.in_flight.min(MOST_SEGMENTS),
        window: step.window.min(MOST_SEGMENTS),
        outstanding: step.outstanding.min(MOST_SEGMENTS),
        ..*step
    }
}

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

    fn opening(&self, first: Option<&Step>) -> Opening {
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
            repairing: step.phase == Phase::Repair,
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

/// Drives a controller.
pub(crate) struct Driver {
    counting: Counting,
    uses_ecn: bool,
    mss_bytes: u32,
    paced: Paced,
}

impl Driver {
    pub(crate) fn new(counting: Counting, uses_ecn: bool, mss_bytes: u32) -> Self {
        Self {
            counting,
            uses_ecn,
            mss_bytes,
            paced: Paced::default(),
        }
    }

    #[inline]
    pub(crate) fn follow(&mut self, controller: &mut dyn Controller, told: &Told) -> Allowed {
        let ack = &told.ack;
        if self.uses_ecn {
            controller.on_feedback(&Feedback {
                delivered: ack.newly_acked,
                marked: told.marked,
                next: ack.next,
                unacknowledged: ack.unacknowledged,
            });
        }
        if told.recovered {
            controller.on_recovered(ack.now);
        }
        if let Some(signal) = told.signal.filter(|&signal| signal != Signal::Timeout) {
            controller.on_loss(&loss(ack, signal == Signal::Mark));
        }
        if self.counting == Counting::Acks && controller.cwnd() >= controller.ssthresh() {
            controller.on_ack(&Ack {
                newly_acked: ack.newly_acked.min(1),
                ..*ack
            });
        } else {
            controller.on_ack(ack);
        }
        if told.signal == Some(Signal::Timeout) {
            controller.on_timeout(ack.now, ack.in_flight);
        }
        if let Some(restart) = &told.restart {
            controller.on_restart(restart);
        }
        // What is sent is whole.
        let cwnd = controller.cwnd().floor().max(1.0);
        self.paced
            .advance(told.end, controller.pacing_rate(), self.mss_bytes);
        Allowed {
            cwnd,
            in_flight: self.paced.since(told.oldest_sent).min(cwnd),
        }
    }
}

/// What left the pipe without having been delivered.
fn newly_lost(step: &Step) -> u32 {
    let left = step.prior_in_flight.saturating_sub(step.in_flight);
    let lost = left.saturating_sub(step.delivered);
    lost.max(u32::from(step.signal == Some(Signal::Loss)))
}

fn loss(ack: &Ack, marked: bool) -> Loss {
    Loss {
        now: ack.now,
        in_flight: ack.prior_in_flight,
        srtt: ack.srtt,
        min_rtt: ack.min_rtt,
        delivered: ack.delivered,
        marked,
    }
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
}
