//! Filling the pipe and draining the queue of it (draft-ietf-ccwg-bbr sections 5.3.1 and 5.3.2).

use super::{Ack, Bbr3, Sample, State};

/// Reports of loss in a round that end Startup (`StartupFullLossCnt`).
const STARTUP_LOSSES: u32 = 6;
/// Rounds after which Drain ends whatever is in flight (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;

impl Bbr3 {
    #[inline]
    pub(super) fn check_full_pipe(&mut self, ack: &Ack, sample: &Sample) {
        if self.path.rounds.started && !sample.limited {
            self.path.full.observe(sample.bandwidth);
            self.full_reached |= self.path.full.now;
        }
        if self.state == State::Startup {
            self.check_high_loss(ack, sample);
            if self.full_reached {
                self.state = State::Drain;
                self.drain_start = self.path.rounds.count;
                let bdp = self.volume(self.bandwidth(), 1.0);
                self.ssthresh = self.with_room_for_batches(bdp);
            }
        }
    }

    /// A whole round of recovery with losses above the threshold, reported by six ACKs.
    fn check_high_loss(&mut self, ack: &Ack, sample: &Sample) {
        let signals = &self.signals;
        let lossy = signals.round.started && signals.reports >= STARTUP_LOSSES;
        if lossy && ack.recovering && sample.flight.is_too_high(self.parameters.loss_threshold) {
            let delivered = signals.latest.volume;
            self.undo.state = Some(State::Startup);
            self.full_reached = true;
            self.long_term.volume = self.volume(self.bandwidth(), 1.0).max(delivered);
        }
    }

    #[inline]
    pub(super) fn check_drained(&mut self, ack: &Ack) {
        if self.state != State::Drain {
            return;
        }
        let bdp = self.with_room_for_batches(self.volume(self.bandwidth(), 1.0));
        let late = self.path.rounds.count > self.drain_start + DRAIN_ROUNDS;
        if late || f64::from(ack.in_flight) <= bdp {
            self.go_down(ack.now, ack.delivered);
        }
    }
}
