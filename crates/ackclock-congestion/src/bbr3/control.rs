//! Pacing rate and window (draft-ietf-ccwg-bbr section 5.6).

use ackclock_core::Time;

use super::super::bbr::path::pipe::MIN_WINDOW;
use super::{Ack, Bbr3, State};

impl Bbr3 {
    pub(super) fn pacing_gain(&self) -> f64 {
        let parameters = &self.parameters;
        match self.state {
            State::Startup => parameters.startup_gain,
            State::Drain => parameters.drain_gain,
            State::Down => parameters.down_gain,
            State::Up => parameters.up_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.parameters.up_cwnd_gain,
            State::ProbeRtt => self.parameters.probe_rtt_cwnd_gain,
            _ => self.parameters.cwnd_gain,
        }
    }

    #[inline]
    pub(super) fn pace(&mut self, gain: f64) {
        let margin = 1.0 - self.parameters.pacing_margin;
        let rate = self.path.pipe.bytes_per_s(self.bandwidth() * gain) * margin;
        self.pacing.follow(rate, self.full_reached);
    }

    pub(super) fn pace_first(&mut self, srtt: Time) {
        let gain = self.parameters.startup_gain;
        let rate = self.path.pipe.first_pacing_bytes_per_s(srtt, gain);
        self.pacing.begin(rate, srtt);
    }

    pub(super) fn save_window(&mut self) {
        let was_cut = self.was_in_loss || self.state == State::ProbeRtt;
        self.saved.save(self.cwnd, was_cut);
    }

    /// `SetCwnd`.
    #[inline]
    pub(super) fn set_window(&mut self, ack: &Ack) {
        let volume = self.volume(self.bandwidth(), self.cwnd_gain());
        let most = self.with_room_for_batches(volume + self.path.aggregation.excess()) as u32;
        let first = u64::from(self.path.pipe.initial_window);
        let grown = self.cwnd.saturating_add(ack.newly_acked);
        if self.full_reached {
            self.cwnd = grown.min(most);
        } else if self.cwnd < most || ack.delivered < first {
            self.cwnd = grown;
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.cwnd = self.cwnd.min(self.window_bound()).max(MIN_WINDOW);
    }

    /// `BoundCwndForModel`.
    #[inline]
    fn window_bound(&self) -> u32 {
        let long_term = &self.long_term;
        let bound = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => long_term.volume,
            State::Cruise | State::ProbeRtt => long_term.with_headroom(self.parameters.headroom),
        };
        bound.min(self.short_term.volume) as u32
    }
}
