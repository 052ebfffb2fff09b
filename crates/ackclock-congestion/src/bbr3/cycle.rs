//! Probing for bandwidth: DOWN, CRUISE, REFILL, UP (draft-ietf-ccwg-bbr section 5.3.3).

use ackclock_core::Time;
use rand_core::RngCore;

use super::super::bbr::path::full_pipe::FullPipe;
use super::bounds::ShortTerm;
use super::{Ack, Bbr3, Sample, State};

/// The feedback phase of the last probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProbeFeedback {
    #[default]
    None,
    /// The probe has begun; ACKs are still for what was sent before.
    Starting,
    /// ACKs are for what the probe sent.
    Coming,
    /// The probe is over; ACKs are still for what it sent.
    Stopping,
}

/// The progress through the cycle, and what is remembered of the last probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycle {
    /// Cycles so far.
    pub count: u64,
    /// Rounds since the last probe, and a random one more or not.
    pub rounds: u64,
    /// When DOWN began.
    start: Time,
    /// The time from then to the next probe.
    wait: Time,
    feedback: ProbeFeedback,
    /// True if a flight too large would be the probe's doing.
    is_sample: bool,
    /// The last probe lost too much.
    was_too_high: bool,
    /// The last probe was broken off at the level that had lost too much.
    was_precautionary: bool,
}

impl Cycle {
    /// A dip of the window: what follows is no probe's.
    pub fn stop_sampling(&mut self) {
        self.feedback = ProbeFeedback::Stopping;
    }
}

impl Bbr3 {
    /// `UpdateProbeBWCyclePhase`.
    #[inline]
    pub(super) fn follow_cycle(&mut self, ack: &Ack, sample: &Sample) {
        if !self.full_reached || self.adapt_long_term(ack, sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => {
                self.refill(ack.delivered);
            }
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.path.rounds.started => {
                self.cycle.is_sample = true;
                self.go_up(ack, sample);
            }
            State::Up => self.probe(ack, sample),
            _ => {}
        }
    }

    // ---- the four states ----

    pub(super) fn go_down(&mut self, now: Time, delivered: u64) {
        self.signals.reset();
        self.long_term.stop_growing();
        self.pick_wait();
        self.cycle.start = now;
        self.cycle.feedback = ProbeFeedback::Stopping;
        self.path.rounds.restart(delivered);
        self.state = State::Down;
    }

    pub(super) fn refill(&mut self, delivered: u64) {
        self.short_term = ShortTerm::NONE;
        self.long_term.refill();
        self.cycle.was_precautionary = false;
        self.cycle.feedback = ProbeFeedback::None;
        self.path.rounds.restart(delivered);
        self.state = State::Refill;
    }

    fn go_up(&mut self, ack: &Ack, sample: &Sample) {
        self.cycle.feedback = ProbeFeedback::Starting;
        self.path.rounds.restart(ack.delivered);
        self.path.full = FullPipe::from(sample.bandwidth);
        self.long_term.steepen(f64::from(self.cwnd));
        self.state = State::Up;
    }

    fn probe(&mut self, ack: &Ack, sample: &Sample) {
        if self.is_time_to_go_down(ack, sample) {
            self.cycle.was_too_high = false;
            self.go_down(ack.now, ack.delivered);
        }
    }

    /// `PickProbeWait`: chance keeps flows apart.
    fn pick_wait(&mut self) {
        let chance = f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        let parameters = &self.parameters;
        let wait_s = parameters.probe_wait_s + chance * parameters.probe_wait_spread_s;
        self.cycle.wait = Time::from_seconds(wait_s);
        self.cycle.rounds = u64::from(self.random.next_u32() % 2);
    }

    // ---- when to change ----

    /// Seconds have passed, or as many rounds as Reno would need to grow back by half its window.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let rounds = (self.target_in_flight() as u64).min(self.parameters.reno_rounds);
        now > self.cycle.start + self.cycle.wait || self.cycle.rounds >= rounds
    }

    /// `TargetInflight`: the BDP, unless congestion has cut the window below it.
    fn target_in_flight(&self) -> f64 {
        self.volume(self.bandwidth(), 1.0).min(f64::from(self.cwnd))
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        let in_flight = f64::from(ack.in_flight);
        let bandwidth = self.path.bandwidth.get();
        let headroom = self.parameters.headroom;
        in_flight <= self.long_term.with_headroom(headroom)
            && in_flight <= self.with_room_for_batches(self.volume(bandwidth, 1.0))
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
        let bound = self.long_term.volume.floor();
        if self.cycle.was_too_high && f64::from(ack.in_flight) >= bound {
            self.cycle.was_precautionary = true;
            return true;
        }
        if ack.window_limited && f64::from(self.cwnd) >= bound {
            // The bound and not the path limits the bandwidth: no plateau yet.
            self.path.full = FullPipe::from(sample.bandwidth);
            return false;
        }
        self.path.full.now
    }

    // ---- what probes teach ----

    /// `AdaptLongTermModel`; returns whether it changed the state.
    #[inline]
    fn adapt_long_term(&mut self, ack: &Ack, sample: &Sample) -> bool {
        if self.path.rounds.started && self.follow_feedback(ack, sample) {
            return true;
        }
        if !self.is_too_high(sample) && self.long_term.volume.is_finite() {
            let long_term = &mut self.long_term;
            long_term.admit(sample.flight.in_flight);
            if self.state == State::Up {
                let started = self.path.rounds.started;
                long_term.grow(ack, f64::from(self.cwnd), started);
            }
        }
        false
    }

    fn follow_feedback(&mut self, ack: &Ack, sample: &Sample) -> bool {
        match self.cycle.feedback {
            ProbeFeedback::Starting => self.cycle.feedback = ProbeFeedback::Coming,
            ProbeFeedback::Stopping => {
                self.cycle.is_sample = false;
                self.cycle.feedback = ProbeFeedback::None;
                let probing = self.state.is_probe_bw();
                self.cycle.count += u64::from(probing && !sample.limited);
                if probing && self.cycle.was_precautionary && !self.cycle.was_too_high {
                    self.refill(ack.delivered);
                    return true;
                }
            }
            ProbeFeedback::None | ProbeFeedback::Coming => {}
        }
        false
    }

    fn is_too_high(&self, sample: &Sample) -> bool {
        sample.flight.is_too_high(self.parameters.loss_threshold)
    }

    /// `HandleLostPacket`, for the losses that an ACK reports.
    pub(super) fn on_reported_loss(&mut self, ack: &Ack, sample: &Sample) {
        if !self.signals.lost {
            self.save_state();
        }
        self.signals.note_loss(ack.delivered);
        if !self.cycle.is_sample || !self.is_too_high(sample) {
            return;
        }
        self.cycle.was_too_high = true;
        self.cycle.is_sample = false;
        if !sample.limited {
            let threshold = self.parameters.loss_threshold;
            let volume = sample.flight.volume_at_loss(ack.newly_lost, threshold);
            let least = self.target_in_flight() * self.parameters.beta;
            self.long_term.volume = volume.max(least);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.go_down(ack.now, ack.delivered);
        }
    }
}
