//! BBR, version 1: a model of the path, bandwidth and propagation delay, instead of a reaction to loss.
//!
//! N. Cardwell et al.: BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00. Here as in Linux 6.1 (`tcp_bbr`), which adds to the
//! draft: room for aggregated ACKs, the policer detector, a pacing rate 1 % below the estimate, and
//! room for batches of offloading hosts.
//!
//! Deviations from Linux: gains are not rounded to 1/256 (its drain gain is 0.344, not 0.347), bandwidth not
//! to its fixed point, times not to clock ticks; the excess of aggregated ACKs is the maximum of ten
//! rounds and not of five to ten; losses that a timer finds are not subtracted from the window. Where a
//! flow's gain cycle begins is drawn from the flow's seed.
//!
//! ```text
//!               pipe full            in flight ≤ BDP
//!   Startup ───────────────▶ Drain ───────────────────▶ ProbeBw ◀─┐ next phase
//!                                                           └─────┘
//!   any mode ── 10 s without an RTT as small ──▶ ProbeRtt ── 200 ms and a round ──▶ ProbeBw, or Startup
//! ```

use ackclock_core::{Rate, Time};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use super::{Ack, Controller, Loss, Made, Opening, PriorWindow, RecoveryPolicy, Restart};

mod cycle;
mod lt_bw;
mod parameters;
pub(super) mod path;
mod window;

use cycle::Cycle;
use lt_bw::{LongTermBandwidth, RoundInfo};
use parameters::Parameters;
use path::min_rtt::ProbeRtt;
use path::pacing::Pacing;
use path::pipe::{self, BATCHES, MIN_WINDOW};
use path::{random, Path};
use window::{Goal, Window};

/// The phase that drains; a cycle does not begin with it.
const DRAINING_PHASE: u32 = 1;
/// Rounds over which the excess of aggregated ACKs is remembered.
const AGGREGATION_ROUNDS: u64 = 10;
/// Aggregation is credited with this much time of the bandwidth at most.
const AGGREGATION_MAX_S: f64 = 0.1;
/// Below this rate (1.2 Mb/s, in B/s) a batch may be a single segment.
const SINGLE_SEGMENT_BYTES_PER_S: f64 = 150_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// A BBR sender.
#[derive(Clone, Debug)]
struct Bbr {
    parameters: Parameters,
    path: Path,
    lt_bw: LongTermBandwidth,
    mode: Mode,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    window: Window,
    ssthresh: f64,
    pacing: Pacing,
    idle_restart: bool,
    /// When the newest delivery was seen.
    delivered_at: Time,
    random: Pcg64Mcg,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec, or gains with which there is no probing.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Box::new(Bbr::new(parameters, initial_window)))
}

impl Bbr {
    fn new(parameters: Parameters, initial_window: f64) -> Bbr {
        let window_s = parameters.min_rtt_window_s;
        Bbr {
            parameters,
            path: Path::new(initial_window, window_s, window_s),
            lt_bw: LongTermBandwidth::default(),
            mode: Mode::Startup,
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            window: Window::new(initial_window),
            ssthresh: f64::INFINITY,
            pacing: Pacing::NONE,
            idle_restart: false,
            delivered_at: Time::ZERO,
            random: random(0),
        }
    }

    // ---- the model ----

    /// The maximum of the delivery rate, but for rates that the application or a dip limited (draft section
    /// 4.1.1).
    #[inline]
    fn update_bandwidth(&mut self, ack: &Ack, limited: bool) {
        let path = &mut self.path;
        path.rounds.started = false;
        let Some(rate) = ack.delivery_rate else {
            self.lt_bw.count_lost(ack.newly_lost);
            return;
        };
        path.rounds.observe(ack);
        if self.parameters.policer_detection {
            let round_info = RoundInfo {
                round_started: path.rounds.started,
                limited,
                probing: self.mode == Mode::ProbeBw,
                segment_bytes: path.pipe.bytes_per_s(1.0),
            };
            if self.lt_bw.observe(ack, &round_info) {
                self.enter_probe_bw();
            }
        }
        let path = &mut self.path;
        let bandwidth = path.pipe.segments_per_s(rate);
        if !limited || bandwidth >= path.bandwidth.get() {
            let window = self.parameters.bandwidth_window;
            let round = path.rounds.count;
            path.bandwidth.update(window, round, bandwidth);
        }
    }

    /// Segments per second to send at: the maximum, or a policer's rate.
    #[inline]
    fn bandwidth(&self) -> f64 {
        let policed = self.lt_bw.rate();
        policed.unwrap_or_else(|| self.path.bandwidth.get())
    }

    /// `gain` × BDP of the largest bandwidth, with room for batches.
    fn target_in_flight(&self, gain: f64) -> u32 {
        let volume = self.path.volume(self.path.bandwidth.get(), gain);
        self.with_room_for_batches(pipe::floor_segments(volume))
    }

    /// Room for batches, an even number because of delayed ACKs, and two more to probe a small BDP.
    fn with_room_for_batches(&self, segments: u32) -> u32 {
        let segments = segments.saturating_add(BATCHES * self.batch());
        let probing = self.mode == Mode::ProbeBw && self.cycle.phase == 0;
        segments.next_multiple_of(2) + 2 * u32::from(probing)
    }

    /// Segments that leave together: a millisecond's, at least two but at the lowest rates.
    #[inline]
    fn batch(&self) -> u32 {
        let rate = self.pacing.bytes_per_s;
        self.path.pipe.batch(rate, self.min_tso_segs())
    }

    /// Return the expected flight when pacing releases the next batch, as delivery continues until then.
    fn in_flight_at_departure(&self, in_flight: u32, ack: &Ack) -> f64 {
        let wait_s = ack.next_departure.since(ack.now).seconds();
        let probing = self.mode == Mode::ProbeBw && self.pacing_gain() > 1.0;
        let batch = if probing { self.batch() } else { 0 };
        f64::from(in_flight + batch) - (self.bandwidth() * wait_s).floor()
    }

    // ---- what it controls ----

    #[inline]
    fn pacing_gain(&self) -> f64 {
        let probe = self.parameters.probe_gain;
        match (self.mode, self.cycle.phase) {
            (Mode::Startup, _) => self.parameters.startup_gain,
            (Mode::Drain, _) => 1.0 / self.parameters.startup_gain,
            (Mode::ProbeBw, _) if self.lt_bw.rate().is_some() => 1.0,
            (Mode::ProbeBw, 0) => probe,
            (Mode::ProbeBw, DRAINING_PHASE) => 2.0 - probe,
            _ => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.parameters.startup_gain,
            Mode::ProbeBw => self.parameters.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// Paces at `gain` × bandwidth; before the pipe is full it never slows down.
    #[inline]
    fn pace(&mut self, gain: f64) {
        let margin = 1.0 - self.parameters.pacing_margin;
        let rate = self.path.pipe.bytes_per_s(self.bandwidth() * gain) * margin;
        self.pacing.follow(rate, self.path.full.now);
    }

    /// The first pacing rate: Startup's gain × the initial window per RTT.
    fn pace_first(&mut self, srtt: Time) {
        let gain = self.parameters.startup_gain * (1.0 - self.parameters.pacing_margin);
        let rate = self.path.pipe.first_pacing_bytes_per_s(srtt, gain);
        self.pacing.begin(rate, srtt);
    }

    /// The window to grow to: gain × BDP, what aggregated ACKs need, and room for batches.
    #[inline]
    fn target_window(&self) -> u32 {
        let (path, bandwidth) = (&self.path, self.bandwidth());
        let volume = path.volume(bandwidth, self.cwnd_gain());
        let aggregated = if path.full.now {
            let most = bandwidth * AGGREGATION_MAX_S;
            path.aggregation.excess().min(most)
        } else {
            0.0
        };
        self.with_room_for_batches(pipe::floor_segments(volume).saturating_add(aggregated as u32))
    }
}

impl Controller for Bbr {
    fn on_established(&mut self, opening: &Opening) {
        self.random = random(opening.seed);
        self.path.open(opening);
        self.delivered_at = opening.now;
        self.pace_first(opening.srtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.newly_acked > 0 {
            self.delivered_at = ack.now;
        }
        let limited = self.path.held_back.limits(ack);
        self.update_bandwidth(ack, limited);
        if ack.newly_acked > 0 && ack.delivery_rate.is_some() {
            let (bandwidth, cwnd) = (self.bandwidth(), self.window.cwnd());
            let round = self.path.rounds.count;
            let aggregation = &mut self.path.aggregation;
            aggregation.observe(ack, bandwidth, cwnd, AGGREGATION_ROUNDS, round);
        }
        self.follow_cycle(ack);
        self.check_full_pipe(ack, limited);
        self.measure_min_rtt(ack);
        if self.pacing.takes_first_rtt(ack.srtt) {
            self.pace_first(ack.srtt);
        }
        self.pace(self.pacing_gain());
        if ack.newly_acked > 0 {
            let goal = Goal {
                segments: self.target_window(),
                full: self.path.full.now,
                first: self.path.pipe.initial_window,
            };
            self.window.update(ack, &goal, &mut self.path.rounds);
        }
        if self.mode == Mode::ProbeRtt {
            self.window.bound(MIN_WINDOW);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.save(self.mode == Mode::ProbeRtt);
    }

    fn on_timeout(&mut self, _now: Time, in_flight: u32) {
        self.window.restart(self.mode == Mode::ProbeRtt);
        self.path.full.forget_baseline();
        self.lt_bw.count_lost(in_flight);
    }

    fn on_repeated_timeout(&mut self) {
        self.window.bound(1);
    }

    /// Restart the search for a full pipe and for a policer, as in Linux; the window is restored when recovery ends.
    fn undo(&mut self, _before: &PriorWindow) {
        self.path.full.begin_anew();
        self.lt_bw.reset();
    }

    /// Paces at the bandwidth itself after an idle time; an idle time may also have been the dip.
    fn on_restart(&mut self, restart: &Restart) {
        self.idle_restart = true;
        self.path.aggregation.restart(restart.now);
        if self.mode == Mode::ProbeBw {
            self.pace(1.0);
        } else if self.mode == Mode::ProbeRtt && self.probe_rtt.is_over(restart.now) {
            self.leave_probe_rtt(restart.now);
        }
    }

    fn cwnd(&self) -> f64 {
        f64::from(self.window.cwnd())
    }

    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn recovery_policy(&self) -> RecoveryPolicy {
        RecoveryPolicy::Controller
    }

    fn requires_pacing(&self) -> bool {
        true
    }

    fn min_tso_segs(&self) -> u32 {
        1 + u32::from(self.pacing.bytes_per_s >= SINGLE_SEGMENT_BYTES_PER_S)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing.rate()
    }
}

#[cfg(test)]
mod tests;
