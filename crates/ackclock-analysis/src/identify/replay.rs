//! A controller is driven with a flow's own acknowledgements, losses and RTTs: the window that it would have had.
//!
//! It never gets the observed window, nor a path model a flight that it would not have allowed: it would
//! wait for it to come down. Its errors fade nevertheless, as losses and delays come at the flow's times and a loss
//! keeps a share only of what is wrong.
//!
//! Missing measurements are derived from others: smoothed RTT and minimum RTT (RFC 6298), delivery rates from
//! the times of delivery (Cheng et al., draft-ietf-ccwg-bbr section 4.1) with the sending times that RTTs give.

use ackclock_congestion::{Ack, Controller, EcnFeedback, Loss, Opening, RecoveryPolicy, Restart};
use ackclock_core::Time;

use crate::identify::pacing::Paced;
use crate::identify::series::{AckSample, CaState, Series, Signal};
pub(crate) use sender::Sender;

mod sender;

/// The window that a controller allows after a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowed {
    /// Its congestion window, segments.
    pub cwnd: f64,
    /// The maximum in flight until the next sample: the window, or the segments that the pacing rate has released since
    /// the oldest outstanding segment was sent, if that is less.
    pub in_flight: f64,
}

/// The unit of growth in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Acknowledged segments.
    #[default]
    Segments,
    /// ACKs, of however many segments: BIC, Scalable TCP and others in Linux before 5.7, and RFC 5681 allows it.
    Acks,
}

/// The origin of a replayed window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The connection's start: the observed window is not used later.
    #[default]
    Opening,
    /// The window seen before the first loss: for captures that begin later, and for a stack that leaves slow start
    /// in a way of its own.
    FirstLoss,
}

/// The options of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// The unit of growth.
    pub counting: Counting,
    /// The origin of the window.
    pub origin: Origin,
}

/// Makes a controller with a window in segments.
pub type Make<'a> = &'a dyn Fn(u32) -> Box<dyn Controller>;

/// The input of a controller for one sample, the same for every controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControllerInput {
    ack: Ack,
    /// Segments of it that are reported as marked.
    marked: u32,
    /// A recovery ends with it, or the reaction to a mark.
    recovered: bool,
    /// The signal with which that began, or the last one.
    episode: Signal,
    signal: Option<Signal>,
    /// The end of the interval for which its window holds.
    end: Time,
    oldest_sent: Time,
    /// The restart, if nothing was in flight after it and more was sent.
    restart: Option<Restart>,
}

/// A flow as every candidate is driven with it, prepared once for all.
#[derive(Debug)]
pub struct Prepared {
    mss_bytes: u32,
    uses_ecn: bool,
    opening: Opening,
    initial_window: Option<u32>,
    /// The index of the first loss, and the window observed before it.
    first_loss: Option<(usize, Option<u32>)>,
    /// The index of the first input: the opening, or else the first loss.
    begin: usize,
    input: Vec<ControllerInput>,
}

impl Prepared {
    /// Prepare a flow.
    pub fn new(series: &Series) -> Self {
        let samples = &series.samples;
        let mut sender = Sender::new(series);
        let opening = sender.opening(samples.first());
        let first_loss = samples.iter().position(|sample| sample.signal.is_some());
        let open = |sample: &&AckSample| sample.ca_state == CaState::Open;
        let window = |before: usize| {
            let last = samples[..before].iter().rev().find(open);
            last.map(|sample| sample.window.clamp(1, MAX_SEGMENTS))
        };
        let first_loss = first_loss.map(|place| (place, window(place)));
        let begin = match (series.initial_window, first_loss) {
            (Some(_), _) => 0,
            (None, Some((place, Some(_)))) => place,
            _ => samples.len(),
        };
        let mut input = Vec::with_capacity(samples.len() - begin);
        let mut now = Time::ZERO;
        for (place, sample) in samples.iter().enumerate() {
            // A sender's clock does not go back, and no window holds more than RFC 7323 can say.
            now = now.max(sample.time);
            let sample = plausible(sample, now);
            let end = samples.get(place + 1).map_or(sample.time, |next| next.time);
            sender.measure(&sample);
            if place >= begin {
                input.push(sender.controller_input(&sample, end.max(now)));
            }
        }
        Self {
            mss_bytes: series.mss_bytes.max(1),
            uses_ecn: series.samples.iter().any(|sample| sample.marked > 0),
            opening,
            initial_window: series.initial_window,
            first_loss,
            begin,
            input,
        }
    }

    /// The flow uses ECN: something of it was marked.
    pub fn uses_ecn(&self) -> bool {
        self.uses_ecn
    }

    /// The first window that was seen, and the one that a controller sets itself; none if it leaves that to the stack.
    pub fn opening_of(&self, make: Make) -> Option<(u32, u32)> {
        let observed = self.initial_window.filter(|&observed| observed > 0)?;
        let first = |of_stack: u32| {
            let mut controller = make(of_stack);
            controller.on_established(&self.opening);
            controller.cwnd() as u32
        };
        let own = first(observed);
        (own == first(observed.saturating_add(1))).then_some((observed, own))
    }

    /// The course of a controller, one value a sample; none before its origin.
    pub fn replay(&self, make: Make, manner: Manner) -> Vec<Option<Allowed>> {
        let mut replay = self.started(make, manner);
        replay.advance(usize::MAX);
        replay.course
    }

    /// The same, to be done in parts.
    pub fn started<'a>(&'a self, make: Make<'a>, manner: Manner) -> Replay<'a> {
        let mut controller = self.initial_window.map(make);
        if let Some(controller) = &mut controller {
            controller.on_established(&self.opening);
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
        let mut course = vec![nothing; self.samples()];
        course[..self.begin].fill(None);
        course
    }

    /// Samples.
    pub fn samples(&self) -> usize {
        self.begin + self.input.len()
    }
}

/// A controller on its way along a flow.
pub struct Replay<'a> {
    flow: &'a Prepared,
    make: Make<'a>,
    origin: Origin,
    driver: Driver,
    controller: Option<Box<dyn Controller>>,
    /// The windows so far, one a sample; none before the origin.
    pub course: Vec<Option<Allowed>>,
}

impl Replay<'_> {
    /// Advance until `samples` samples are done.
    pub fn advance(&mut self, samples: usize) {
        let done = self.course.len();
        let until = samples.min(self.flow.samples()).max(done);
        self.course.reserve(until - done);
        for place in done..until {
            let first = self.flow.first_loss.filter(|&(first, _)| first == place);
            if let Some((_, window)) = first {
                if self.origin == Origin::FirstLoss || self.controller.is_none() {
                    self.controller = window.map(self.make).or(self.controller.take());
                }
            }
            let input = &self.flow.input[place - self.flow.begin];
            let controller = self.controller.as_mut();
            let allowed = controller.map(|one| self.driver.follow(one.as_mut(), input));
            self.course.push(allowed);
        }
    }
}

/// The largest window of RFC 7323 section 2.3, bytes; of segments there are fewer.
const MAX_SEGMENTS: u32 = 1 << 30;

/// The sample as a sender could have had it.
fn plausible(sample: &AckSample, now: Time) -> AckSample {
    AckSample {
        time: now,
        delivered: sample.delivered.min(MAX_SEGMENTS),
        advanced: sample.advanced.min(MAX_SEGMENTS),
        marked: sample.marked.min(sample.delivered),
        prior_in_flight: sample.prior_in_flight.min(MAX_SEGMENTS),
        in_flight: sample.in_flight.min(MAX_SEGMENTS),
        window: sample.window.min(MAX_SEGMENTS),
        outstanding: sample.outstanding.min(MAX_SEGMENTS),
        ..*sample
    }
}

/// Drives a controller.
pub(crate) struct Driver {
    counting: Counting,
    uses_ecn: bool,
    mss_bytes: u32,
    paced: Paced,
    /// The maximum in flight if the controller had been the sender's.
    flight: u32,
}

impl Driver {
    pub(crate) fn new(counting: Counting, uses_ecn: bool, mss_bytes: u32) -> Self {
        Self {
            counting,
            uses_ecn,
            mss_bytes,
            paced: Paced::default(),
            flight: u32::MAX,
        }
    }

    /// A model of the path waits until its flight has come down to what it allows. The observed flight may not, as
    /// another controller allowed it; the replayed one would have.
    fn with_own_flight(&self, ack: &Ack) -> Ack {
        let prior_in_flight = ack.prior_in_flight.min(self.flight);
        let left = prior_in_flight.saturating_sub(ack.newly_acked);
        Ack {
            prior_in_flight,
            in_flight: ack.in_flight.min(left),
            ..*ack
        }
    }

    #[inline]
    pub(crate) fn follow(
        &mut self,
        controller: &mut dyn Controller,
        input: &ControllerInput,
    ) -> Allowed {
        let is_model = controller.recovery_policy() == RecoveryPolicy::Controller;
        // A model reacts to the feedback of marks itself, and no reaction of the sender's begins.
        let reacts_itself = is_model && input.episode == Signal::Mark;
        let ack = &match controller.recovery_policy() {
            RecoveryPolicy::Controller => Ack {
                recovering: input.ack.recovering && !reacts_itself,
                ..self.with_own_flight(&input.ack)
            },
            _ if is_unused(controller, &input.ack) => Ack {
                window_limited: false,
                ..input.ack
            },
            _ => input.ack,
        };
        if self.uses_ecn {
            controller.on_ecn_feedback(&EcnFeedback {
                delivered: ack.newly_acked,
                marked: input.marked,
                next: ack.next,
                unacknowledged: ack.unacknowledged,
            });
        }
        if input.recovered && !reacts_itself {
            controller.on_recovered(ack.now, ack.rtt);
        }
        match input.signal {
            Some(Signal::Mark) if !reacts_itself => controller.on_loss(&loss(ack, true)),
            Some(Signal::Loss) => controller.on_loss(&loss(ack, false)),
            _ => {}
        }
        if self.counting == Counting::Acks && controller.cwnd() >= controller.ssthresh() {
            controller.on_ack(&Ack {
                newly_acked: ack.newly_acked.min(1),
                ..*ack
            });
        } else {
            controller.on_ack(ack);
        }
        if input.signal == Some(Signal::Timeout) {
            controller.on_timeout(ack.now, ack.in_flight);
        }
        if let Some(restart) = &input.restart {
            controller.on_restart(restart);
        }
        // What is sent is whole.
        let cwnd = controller.cwnd().floor().max(1.0);
        self.paced
            .advance(input.end, controller.pacing_rate(), self.mss_bytes);
        let in_flight = self.paced.since(input.oldest_sent).min(cwnd);
        self.flight = ack.in_flight.max(in_flight.ceil() as u32);
        Allowed { cwnd, in_flight }
    }
}

/// A window in slow start that is twice what was in flight, or more, does not grow (RFC 7661 section 4.3; Linux).
fn is_unused(controller: &dyn Controller, ack: &Ack) -> bool {
    let cwnd = controller.cwnd();
    cwnd < controller.ssthresh() && cwnd >= 2.0 * f64::from(ack.prior_in_flight)
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
    use serde_json::json;

    use super::*;
    use crate::identify::ranking::Candidate;

    #[test]
    fn a_path_model_waits_for_its_own_flight_to_drain() {
        let mut driver = Driver::new(Counting::Segments, false, 1448);
        let mut sender = Sender::new(&Series::default());
        let bbr = json!({
            "startup_gain": 2.885, "probe_gain": 1.25, "cwnd_gain": 2.0, "bandwidth_window": 10,
            "min_rtt_window_s": 10.0, "probe_rtt_duration_s": 0.2, "pacing_margin": 0.01, "policer_detection": true
        });
        let mut bbr = Candidate::new("bbr", &bbr, true)
            .expect("its card")
            .controller(10);
        // A flight of forty that another control keeps up: no RTT is the shortest again, so BBR looks for it each 10 s.
        let cwnd: Vec<f64> = (1..=4000_u64)
            .map(|number| {
                let sample = AckSample {
                    time: Time::from_milliseconds(10 * number),
                    delivered: 1,
                    advanced: 1,
                    rtt: Some(Time::from_milliseconds(if number < 40 { 390 } else { 400 })),
                    prior_in_flight: 40,
                    in_flight: 39,
                    window: 40,
                    outstanding: 39,
                    oldest_sent: Time::from_milliseconds((10 * number).saturating_sub(390)),
                    ..AckSample::default()
                };
                sender.measure(&sample);
                let input = sender.controller_input(&sample, sample.time);
                driver.follow(bbr.as_mut(), &input).cwnd
            })
            .collect();
        let probing = cwnd.iter().filter(|&&cwnd| cwnd == 4.0).count();
        // Three times 0.2 s and a round trip, at 100 segments a second.
        assert!((100..300).contains(&probing), "{probing}");
    }

    #[test]
    fn a_model_reacts_to_the_count_of_marks() {
        let prague = json!({
            "rtt_ref_s": 0.0, "rtt_ref_after": 500, "classic_ecn_fallback": false, "slow_start": "standard"
        });
        let prague = Candidate::new("prague", &prague, false).expect("its card");
        let window = |marked: u32| {
            let mut driver = Driver::new(Counting::Segments, true, 1448);
            let mut sender = Sender::new(&Series::default());
            let mut controller = prague.controller(10);
            for number in 1..=4_u64 {
                let sample = AckSample {
                    time: Time::from_milliseconds(10 * number),
                    delivered: 2,
                    advanced: 2,
                    prior_in_flight: 10,
                    in_flight: 8,
                    outstanding: 8,
                    marked: if number == 1 { marked } else { 0 },
                    signal: (number == 1).then_some(Signal::Mark),
                    ca_state: if number < 4 {
                        CaState::Recovery
                    } else {
                        CaState::Open
                    },
                    ..AckSample::default()
                };
                let input = sender.controller_input(&sample, sample.time);
                driver.follow(controller.as_mut(), &input);
            }
            controller.cwnd()
        };
        // Alpha is 1 at the first mark, which halves the window once; then it grows by two segments of five in each ACK.
        assert_eq!(window(2).floor(), 6.0);
        assert!(window(1) > window(2), "an unmarked segment lets it grow");
        assert_eq!(window(0), 18.0, "slow start goes on");
    }

    #[test]
    fn a_slow_start_window_that_is_half_unused_does_not_grow() {
        let hybla = Candidate::new("hybla", &json!({ "rtt0_s": 0.025 }), true).expect("its card");
        let mut controller = hybla.controller(10);
        let ack = |prior_in_flight| {
            let sample = AckSample {
                delivered: 1,
                advanced: 1,
                prior_in_flight,
                ..AckSample::default()
            };
            Sender::new(&Series::default()).controller_input(&sample, sample.time)
        };
        let mut driver = Driver::new(Counting::Segments, false, 1448);
        let mut after = |flight| driver.follow(controller.as_mut(), &ack(flight)).cwnd;
        assert_eq!(after(5), 10.0);
        assert_eq!(after(6), 11.0, "a segment an ACK, as no RTT was measured");
    }
}
