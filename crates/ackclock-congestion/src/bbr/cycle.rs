//! The state machine of version 1: Startup, Drain, the gain cycle and the dips (draft-cardwell-00 section 4.3).

use ackclock_core::Time;
use rand_core::RngCore;

use super::path::min_rtt::ProbeRtt;
use super::path::pipe::MIN_WINDOW;
use super::{Ack, Bbr, Mode, DRAINING_PHASE};

/// Phases of the gain cycle: one probes, one drains, six cruise (draft section 4.3.4.1).
pub const PHASES: u32 = 8;

/// The phase of the gain cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycle {
    pub phase: u32,
    since: Time,
}

impl Bbr {
    #[inline]
    pub(super) fn follow_cycle(&mut self, ack: &Ack) {
        if self.mode == Mode::ProbeBw && self.phase_is_over(ack) {
            self.next_phase();
        }
    }

    /// A phase lasts a propagation delay. Probing goes on until what is in flight shows it, or losses do;
    /// draining ends as soon as the queue is gone (draft section 4.3.4.3).
    fn phase_is_over(&self, ack: &Ack) -> bool {
        let min_rtt = self.path.min_rtt.get();
        let full_length = self.delivered_at.since(self.cycle.since) > min_rtt;
        let gain = self.pacing_gain();
        if gain > 1.0 {
            full_length
                && (ack.newly_lost > 0
                    || self.in_flight_at_departure(ack.prior_in_flight, ack)
                        >= f64::from(self.target_in_flight(gain)))
        } else if gain < 1.0 {
            full_length
                || self.in_flight_at_departure(ack.prior_in_flight, ack)
                    <= f64::from(self.target_in_flight(1.0))
        } else {
            full_length
        }
    }

    fn next_phase(&mut self) {
        self.cycle = Cycle {
            phase: (self.cycle.phase + 1) % PHASES,
            since: self.delivered_at,
        };
    }

    /// Begin the gain cycle in any phase but the draining one, so that flows do not probe together.
    pub(super) fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        let choice = self.random.next_u32() % (PHASES - 1);
        self.cycle.phase = (DRAINING_PHASE + choice) % PHASES;
        self.next_phase();
    }

    #[inline]
    pub(super) fn check_full_pipe(&mut self, ack: &Ack, limited: bool) {
        let path = &mut self.path;
        if !path.full.now && path.rounds.started && !limited {
            path.full.observe(path.bandwidth.get());
        }
        if self.mode == Mode::Startup && self.path.full.now {
            self.mode = Mode::Drain;
            self.ssthresh = f64::from(self.target_in_flight(1.0));
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(ack.in_flight, ack)
                <= f64::from(self.target_in_flight(1.0))
        {
            self.enter_probe_bw();
        }
    }

    /// Dips to four segments when no RTT as small was seen for the window (draft section 4.3.5).
    #[inline]
    pub(super) fn measure_min_rtt(&mut self, ack: &Ack) {
        let due = self.path.min_rtt.observe(ack.now, ack.rtt);
        if due && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.window.save(false);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            let path = &mut self.path;
            path.held_back.mark(ack);
            let duration = Time::from_seconds(self.parameters.probe_rtt_duration_s);
            if self
                .probe_rtt
                .follow(ack, MIN_WINDOW, duration, &mut path.rounds)
            {
                self.leave_probe_rtt(ack.now);
            }
        }
        self.idle_restart &= ack.newly_acked == 0;
    }

    pub(super) fn leave_probe_rtt(&mut self, now: Time) {
        self.path.min_rtt.refresh(now);
        self.window.restore();
        if self.path.full.now {
            self.enter_probe_bw();
        } else {
            self.mode = Mode::Startup;
        }
    }
}
