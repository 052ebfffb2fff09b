//! The reference window ("Reference Window Update" in the draft).

use ackclock_core::Time;

use super::super::{MediaSource, PacketReport};
use super::queue_delay::Levels;
use super::Parameters;

/// Round trips without a reaction after which the window may have grown far above what is in flight.
const LONG_UNCONGESTED_RTTS: f64 = 100.0;

/// The packets of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delivered {
    /// `bytes_newly_acked`: those of lost packets count.
    pub bytes: u64,
    /// `bytes_newly_acked_ce`.
    pub marked_bytes: u64,
    pub arrived: u32,
    pub marked: u32,
    pub lost: u32,
}

impl Delivered {
    pub fn of(packets: &[PacketReport]) -> Delivered {
        let mut sum = Delivered::default();
        for packet in packets {
            sum.bytes += u64::from(packet.bytes);
            if packet.arrival.is_none() {
                sum.lost += 1;
                continue;
            }
            sum.arrived += 1;
            if packet.marked {
                sum.marked += 1;
                sum.marked_bytes += u64::from(packet.bytes);
            }
        }
        sum
    }
}

/// The state of the path when a report comes.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    pub now: Time,
    /// In s.
    pub s_rtt: f64,
    pub l4s_alpha: f64,
    pub delay: Levels,
}

/// Why the window is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    Loss,
    Marks,
    /// A virtual mark, with the share `l4s_alpha_v_t`.
    Delay(f64),
}

/// Signals of congestion since the last reaction.
#[derive(Clone, Copy, Debug, Default)]
struct Signals {
    loss: bool,
    marks: bool,
}

/// The window and what it remembers; sizes in bytes.
#[derive(Clone, Debug)]
pub struct ReferenceWindow {
    parameters: Parameters,
    mss: f64,
    l4s: bool,
    ref_wnd: f64,
    /// The last known largest window before congestion.
    ref_wnd_i: f64,
    may_update_ref_wnd_i: bool,
    unanswered: Signals,
    last_congestion_detected: Option<Time>,
    last_reaction: Option<Time>,
    last_increase: Time,
    /// Bytes acknowledged without a mark since the last increase.
    unmarked_bytes: u64,
    max_bytes_in_flight: f64,
    max_bytes_in_flight_prev: f64,
}

impl ReferenceWindow {
    pub(super) fn new(p: &Parameters, source: &MediaSource) -> ReferenceWindow {
        ReferenceWindow {
            parameters: *p,
            mss: f64::from(source.packet_bytes),
            l4s: source.l4s,
            ref_wnd: p.min_ref_wnd,
            ref_wnd_i: 1.0,
            may_update_ref_wnd_i: true,
            unanswered: Signals::default(),
            last_congestion_detected: None,
            last_reaction: None,
            last_increase: Time::ZERO,
            unmarked_bytes: 0,
            max_bytes_in_flight: 0.0,
            max_bytes_in_flight_prev: 0.0,
        }
    }

    pub fn ref_wnd(&self) -> f64 {
        self.ref_wnd
    }

    pub fn ref_wnd_i(&self) -> f64 {
        self.ref_wnd_i
    }

    /// Ratio of the MSS to the window, at most 1.
    pub fn ref_wnd_ratio(&self) -> f64 {
        (self.mss / self.ref_wnd).min(1.0)
    }

    /// Begin with a window, if it is larger than the smallest one.
    pub fn begin(&mut self, ref_wnd: f64) {
        self.ref_wnd = ref_wnd.max(self.parameters.min_ref_wnd);
    }

    pub fn on_sent(&mut self, in_flight: f64) {
        self.max_bytes_in_flight = self.max_bytes_in_flight.max(in_flight);
    }

    /// Reduce and increase the window; `is_at_max` is true while the encoder has its highest rate.
    pub fn update(&mut self, delivered: &Delivered, state: &Congestion, is_at_max: bool) {
        self.unanswered.loss |= delivered.lost > 0;
        self.unanswered.marks |= delivered.marked > 0;
        self.unmarked_bytes += delivered.bytes - delivered.marked_bytes;
        if delivered.lost > 0 || delivered.marked > 0 {
            self.last_congestion_detected = Some(state.now);
        }
        let scl = self.closeness_scale();
        if let Some(cause) = self.cause(state) {
            self.react(cause, state, scl);
        }
        if state.now.since(self.last_increase) >= Time::from_seconds(state.s_rtt) {
            self.increase(state, scl, is_at_max);
            self.last_increase = state.now;
            self.unmarked_bytes = 0;
            self.max_bytes_in_flight_prev = self.max_bytes_in_flight;
            self.max_bytes_in_flight = 0.0;
        }
    }

    /// `scl_t`: 0.1 where the window is close to the last known largest one.
    fn closeness_scale(&self) -> f64 {
        let distance = 8.0 * (self.ref_wnd - self.ref_wnd_i) / self.ref_wnd_i;
        (distance * distance).clamp(0.1, 1.0)
    }

    /// Round trips since a time, each at least `VIRTUAL_RTT`.
    fn rtts_since(&self, time: Option<Time>, state: &Congestion) -> f64 {
        let rtt = state.s_rtt.max(self.parameters.virtual_rtt_s);
        time.map_or(f64::INFINITY, |time| state.now.since(time).seconds() / rtt)
    }

    /// The cause of a reduction, at most one in min(`VIRTUAL_RTT`, `s_rtt`).
    fn cause(&self, state: &Congestion) -> Option<Cause> {
        let interval = Time::from_seconds(state.s_rtt.min(self.parameters.virtual_rtt_s));
        let may_react = self
            .last_reaction
            .is_none_or(|last| state.now.since(last) >= interval);
        let half_target = state.delay.qdelay_target / 2.0;
        if !may_react {
            None
        } else if self.unanswered.loss {
            Some(Cause::Loss)
        } else if self.unanswered.marks {
            Some(Cause::Marks)
        } else if state.delay.qdelay_avg > half_target {
            let share = (state.delay.qdelay_avg - half_target) / half_target;
            Some(Cause::Delay(share.min(1.0)))
        } else {
            None
        }
    }

    /// "Reference Window Reduction".
    fn react(&mut self, cause: Cause, state: &Congestion, scl: f64) {
        if self.may_update_ref_wnd_i {
            self.ref_wnd_i = self.ref_wnd;
            self.may_update_ref_wnd_i = false;
        }
        let per_rtt = 1.0 / (state.s_rtt / self.parameters.virtual_rtt_s).max(1.0);
        let is_l4s = self.l4s && cause == Cause::Marks;
        let is_late = self.rtts_since(self.last_reaction, state) > LONG_UNCONGESTED_RTTS;
        if is_l4s && is_late && self.max_bytes_in_flight_prev > 0.0 {
            self.ref_wnd = self.ref_wnd.min(self.max_bytes_in_flight_prev);
        }
        self.ref_wnd *= match cause {
            Cause::Loss => self.parameters.beta_loss,
            Cause::Marks if is_l4s => {
                1.0 - state.l4s_alpha / 2.0 * per_rtt * steadiness(&state.delay, scl)
            }
            Cause::Marks => self.parameters.beta_ecn,
            Cause::Delay(share) => 1.0 - share / 2.0 * per_rtt,
        };
        self.ref_wnd = self.ref_wnd.max(self.parameters.min_ref_wnd);
        self.last_reaction = Some(state.now);
        self.unanswered = Signals::default();
    }

    /// "Reference Window Increase".
    fn increase(&mut self, state: &Congestion, scl: f64, is_at_max: bool) {
        let p = &self.parameters;
        let rtts = self.rtts_since(self.last_congestion_detected, state);
        let post_congestion_scale = (rtts / p.post_congestion_delay_rtts).clamp(0.0, 1.0);
        let multiplicative = p.mul_increase_factor * self.ref_wnd / self.mss;
        let increment = self.unmarked_bytes as f64
            * self.ref_wnd_ratio()
            * (state.s_rtt / p.virtual_rtt_s).min(1.0)
            * scl.max(0.25)
            * state.delay.ref_wnd_delay_scale.max(0.1)
            * (1.0 + multiplicative * post_congestion_scale * scl);
        let in_flight = self.max_bytes_in_flight.max(self.max_bytes_in_flight_prev);
        let max_allowed = self.mss + in_flight * p.bytes_in_flight_head_room;
        let grown = self.ref_wnd + increment;
        if grown <= max_allowed && !is_at_max && increment > 0.0 {
            self.ref_wnd = grown;
            self.may_update_ref_wnd_i = true;
        }
    }
}

/// The factor of a reduction for marks: below 1 while the delay is low, if the window is close to the last known
/// largest one, or delays vary.
fn steadiness(delay: &Levels, scl: f64) -> f64 {
    if delay.qdelay < delay.qdelay_target * 0.25 {
        scl.max(0.25) * delay.ref_wnd_delay_scale.max(0.25)
    } else {
        1.0
    }
}
