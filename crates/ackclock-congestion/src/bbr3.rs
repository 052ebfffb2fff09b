//! BBR, version 3: the model of version 1, bounded by what losses say.
//!
//! N. Cardwell, I. Swett, J. Beshay (editors): BBR Congestion Control, draft-ietf-ccwg-bbr-06. The
//! model of the path is that of `bbr/path.rs`.
//!
//! Deviations: the sender reports losses per ACK, not per packet, so the newest segment that an ACK delivers
//! stands for those that it reports lost, and ACKs with losses stand for discontiguous lost ranges in Startup
//! (as in Linux's version 3); losses that a timer finds count at the timeout only.
//! Marks of ECN are ignored: the draft (section 3.7) names no response, but wants a sender that claims ECN to
//! take them for congestion.
//!
//! ```text
//!             pipe full,                in flight ≤ BDP         headroom, in flight ≤ BDP
//!             or much loss              or 3 rounds
//!   Startup ───────────────▶ Drain ───────────────▶ ProbeBW_DOWN ───────▶ ProbeBW_CRUISE
//!                                                        ▲                     │ 2–3 s, or 62–63 rounds
//!                               full, too much loss,     │     a round         ▼
//!                               or the risky level  ProbeBW_UP ◀─────── ProbeBW_REFILL
//!
//!   any state ── 5 s without an RTT as small ──▶ ProbeRTT ── 200 ms and a round ──▶ CRUISE or Startup
//! ```

use ackclock_core::{Rate, Time};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use super::bbr::path::min_rtt::ProbeRtt;
use super::bbr::path::pacing::Pacing;
use super::bbr::path::pipe::{SavedWindow, BATCHES, MIN_WINDOW};
use super::bbr::path::{random, Path};
use super::{
    Ack, Controller, Loss, Made, Opening, PriorWindow, RecoveryPolicy, Restart, Variables,
};

mod bounds;
mod control;
mod cycle;
mod flights;
mod parameters;
mod startup;
mod undo;
mod variables;

use bounds::{LongTerm, ShortTerm, Signals};
use cycle::Cycle;
use flights::{Flight, Flights};
use parameters::Parameters;
use undo::Undo;

/// Cycles before the present one whose bandwidth counts (`MaxBwFilterLen` is this one and the last).
const BANDWIDTH_CYCLES: u64 = 1;
/// Rounds over which the excess of aggregated ACKs is remembered once the pipe is full (`ExtraAckedFilterLen`).
const AGGREGATION_ROUNDS: u64 = 10;
/// A batch has two segments at least (section 5.6.3).
const MIN_TSO_SEGS: u32 = 2;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    fn is_probe_bw(self) -> bool {
        matches!(
            self,
            State::Down | State::Cruise | State::Refill | State::Up
        )
    }

    /// Return true if losses are the price of probing.
    fn accelerates(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// A sample of the path from an ACK.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Delivery rate in segments per second, zero if there is none.
    bandwidth: f64,
    /// True if the application or the sender itself limited it.
    limited: bool,
    flight: Flight,
}

/// A BBR sender.
#[derive(Clone, Debug)]
struct Bbr3 {
    parameters: Parameters,
    path: Path,
    /// True if the pipe was ever full.
    full_reached: bool,
    flights: Flights,
    signals: Signals,
    short_term: ShortTerm,
    long_term: LongTerm,
    state: State,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    drain_start: u64,
    cwnd: u32,
    saved: SavedWindow,
    was_in_loss: bool,
    ssthresh: f64,
    pacing: Pacing,
    idle_restart: bool,
    undo: Undo,
    random: Pcg64Mcg,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec, or that make no sense.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Box::new(Bbr3::new(parameters, initial_window)))
}

impl Bbr3 {
    fn new(parameters: Parameters, initial_window: f64) -> Bbr3 {
        let (window_s, interval_s) = (parameters.min_rtt_window_s, parameters.probe_rtt_interval_s);
        let path = Path::new(initial_window, window_s, interval_s);
        Bbr3 {
            parameters,
            path,
            full_reached: false,
            flights: Flights::default(),
            signals: Signals::default(),
            short_term: ShortTerm::NONE,
            long_term: LongTerm::NONE,
            state: State::Startup,
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            drain_start: 0,
            cwnd: path.pipe.initial_window,
            saved: SavedWindow::default(),
            was_in_loss: false,
            ssthresh: f64::INFINITY,
            pacing: Pacing::NONE,
            idle_restart: false,
            undo: Undo::NONE,
            random: random(0),
        }
    }

    // ---- the model (section 5.5) ----

    #[inline]
    fn sample(&mut self, ack: &Ack) -> Sample {
        self.flights.count_lost(ack.newly_lost);
        Sample {
            bandwidth: ack
                .delivery_rate
                .map_or(0.0, |rate| self.path.pipe.segments_per_s(rate)),
            limited: self.path.held_back.limits(ack),
            flight: self.flights.lookup(ack),
        }
    }

    /// `UpdateLatestDeliverySignals`, `UpdateCongestionSignals`.
    #[inline]
    fn update_signals(&mut self, ack: &Ack, sample: &Sample) {
        self.signals.observe(ack, sample.bandwidth);
        self.path.rounds.observe(ack);
        self.cycle.rounds += u64::from(self.path.rounds.started);
        let rises = sample.bandwidth >= self.path.bandwidth.get();
        if sample.bandwidth > 0.0 && (rises || !sample.limited) {
            let (window, cycle) = (BANDWIDTH_CYCLES, self.cycle.count);
            self.path.bandwidth.update(window, cycle, sample.bandwidth);
        }
        if self.signals.round.started {
            if self.signals.lost && !self.state.accelerates() {
                let (bandwidth, cwnd) = (self.path.bandwidth.get(), f64::from(self.cwnd));
                let (latest, beta) = (self.signals.latest, self.parameters.beta);
                self.short_term.reduce(bandwidth, cwnd, &latest, beta);
            }
            self.signals.lost = false;
        }
    }

    /// Segments per second to send at (`BoundBWForModel`).
    #[inline]
    fn bandwidth(&self) -> f64 {
        self.path.bandwidth.get().min(self.short_term.bandwidth)
    }

    /// `BDPMultiple`.
    #[inline]
    fn volume(&self, bandwidth: f64, gain: f64) -> f64 {
        self.path.volume(bandwidth, gain)
    }

    /// `QuantizationBudget`.
    #[inline]
    fn with_room_for_batches(&self, volume: f64) -> f64 {
        let batch = self.path.pipe.batch(self.pacing.bytes_per_s, MIN_TSO_SEGS);
        let least = (BATCHES * batch).max(MIN_WINDOW);
        let probing = if self.state == State::Up { 2.0 } else { 0.0 };
        volume.max(f64::from(least)) + probing
    }

    fn observe_aggregation(&mut self, ack: &Ack) {
        let (bandwidth, cwnd) = (self.bandwidth(), self.cwnd);
        let window = if self.full_reached {
            AGGREGATION_ROUNDS
        } else {
            1
        };
        let round = self.path.rounds.count;
        self.path
            .aggregation
            .observe(ack, bandwidth, cwnd, window, round);
    }

    // ---- ProbeRTT (section 5.3.4) ----

    #[inline]
    fn measure_min_rtt(&mut self, ack: &Ack) {
        let due = self.path.min_rtt.observe(ack.now, ack.rtt);
        if due && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.cycle.stop_sampling();
            self.path.rounds.restart(ack.delivered);
        }
        if self.state == State::ProbeRtt {
            self.path.held_back.mark(ack);
            let window = self.probe_rtt_window();
            let duration = Time::from_seconds(self.parameters.probe_rtt_duration_s);
            let rounds = &mut self.path.rounds;
            if self.probe_rtt.follow(ack, window, duration, rounds) {
                self.leave_probe_rtt(ack.now, ack.delivered);
            }
        }
        self.idle_restart &= ack.newly_acked == 0;
    }

    fn leave_probe_rtt(&mut self, now: Time, delivered: u64) {
        self.path.min_rtt.refresh(now);
        self.cwnd = self.saved.restore(self.cwnd);
        self.short_term = ShortTerm::NONE;
        if self.full_reached {
            self.go_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn probe_rtt_window(&self) -> u32 {
        let volume = self.volume(self.bandwidth(), self.parameters.probe_rtt_cwnd_gain);
        (volume as u32).max(MIN_WINDOW)
    }
}

impl Controller for Bbr3 {
    fn on_established(&mut self, opening: &Opening) {
        self.random = random(opening.seed);
        self.path.open(opening);
        self.flights.open();
        self.pace_first(opening.srtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.sample(ack);
        if ack.newly_lost > 0 {
            self.on_reported_loss(ack, &sample);
        }
        if ack.newly_acked > 0 {
            self.update_signals(ack, &sample);
            self.observe_aggregation(ack);
            self.check_full_pipe(ack, &sample);
            self.check_drained(ack);
            self.follow_cycle(ack, &sample);
        }
        self.measure_min_rtt(ack);
        if ack.newly_acked > 0 {
            self.signals.advance(ack, sample.bandwidth);
        }
        self.flights.remember(ack);
        if self.pacing.takes_first_rtt(ack.srtt) {
            self.pace_first(ack.srtt);
        }
        self.pace(self.pacing_gain());
        let recovery = ack.recovering || ack.in_loss;
        if self.was_in_loss && !recovery {
            self.cwnd = self.saved.restore(self.cwnd);
        }
        self.was_in_loss = recovery;
        self.set_window(ack);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.save_window();
        self.save_state();
    }

    fn undo(&mut self, _before: &PriorWindow) {
        self.restore_state();
    }

    fn on_timeout(&mut self, _now: Time, in_flight: u32) {
        self.save_window();
        self.save_state();
        self.was_in_loss = true;
        self.flights.count_lost(in_flight);
        self.cwnd = 1;
    }

    fn on_repeated_timeout(&mut self) {
        self.cwnd = 1;
    }

    /// `HandleRestartFromIdle`.
    fn on_restart(&mut self, restart: &Restart) {
        self.idle_restart = true;
        self.path.aggregation.restart(restart.now);
        if self.state.is_probe_bw() {
            self.pace(1.0);
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_over(restart.now) {
            self.leave_probe_rtt(restart.now, self.path.rounds.end());
        }
    }

    fn cwnd(&self) -> f64 {
        f64::from(self.cwnd)
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
        MIN_TSO_SEGS
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing.rate()
    }

    fn variables(&self) -> Option<Variables> {
        Some(self.named_variables())
    }
}

#[cfg(test)]
mod tests;
