//! The state variables by the names of draft-ietf-ccwg-bbr, for its test cases.

use super::super::Variables;
use super::{Bbr3, State};

impl State {
    /// The name in the draft (section 5.1.3).
    fn name(self) -> &'static str {
        match self {
            State::Startup => "STARTUP",
            State::Drain => "DRAIN",
            State::Down => "PROBE_DOWN",
            State::Cruise => "PROBE_CRUISE",
            State::Refill => "PROBE_REFILL",
            State::Up => "PROBE_UP",
            State::ProbeRtt => "PROBE_RTT",
        }
    }
}

impl Bbr3 {
    /// Volumes are in segments, bandwidths in payload bits per second; true is 1.
    pub(super) fn named_variables(&self) -> Variables {
        let bits_per_s = |segments_per_s: f64| 8.0 * self.path.pipe.bytes_per_s(segments_per_s);
        let min_rtt = self.path.min_rtt.get();
        Variables {
            state: self.state.name(),
            values: vec![
                ("max_bw_bps", bits_per_s(self.path.bandwidth.get())),
                ("bw_shortterm_bps", bits_per_s(self.short_term.bandwidth)),
                ("inflight_shortterm", self.short_term.volume),
                ("inflight_longterm", self.long_term.volume),
                ("bdp", self.volume(self.bandwidth(), 1.0)),
                ("min_rtt_s", min_rtt.seconds()),
                ("extra_acked", self.path.aggregation.excess()),
                ("pacing_gain", self.pacing_gain()),
                ("cwnd_gain", self.cwnd_gain()),
                ("round_count", self.path.rounds.count as f64),
                ("drain_start_round", self.drain_start as f64),
                ("full_bw_count", f64::from(self.path.full.count())),
                ("full_bw_now", f64::from(u8::from(self.path.full.now))),
                ("full_bw_reached", f64::from(u8::from(self.full_reached))),
                ("idle_restart", f64::from(u8::from(self.idle_restart))),
            ],
        }
    }
}
