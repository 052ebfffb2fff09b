//! Window scales that agree with what was sent, where the handshake is missing that has the scale (RFC 7323
//! section 2.2).
//!
//! A sender has no more in flight than the window, so what was in flight bounds the scale from below. Rounds in which it
//! came within a segment of the window at the smallest possible scale may be limited by the receiver; others are not,
//! whatever the scale is.

use super::LimitClassifier;
use crate::tables::Limit;

/// The largest shift of a window (RFC 7323 section 2.3).
pub const MAX_SHIFT: u8 = 14;

/// The number of scales, and that of limits.
const SCALES: usize = MAX_SHIFT as usize + 1;
const LIMITS: usize = Limit::NAMES.len();
/// The share of acknowledgements (1/32) that may be out of order with the data, as elsewhere than at the sender.
const OUT_OF_ORDER: u32 = 32;

/// Counts and times by scale.
#[derive(Clone, Debug, Default)]
pub struct WindowScale {
    /// Acknowledgements by the smallest scale at which the window held what was in flight.
    smallest: [u32; SCALES],
    /// Acknowledgements of this round at which a scale's window had no room for another segment.
    full: [u32; SCALES],
    acks: u32,
    /// The scales at which the window was full in the last round that was no short one, as bits.
    last_full: u16,
    /// Seconds of rounds with a full window, by scale and by what limits them otherwise.
    full_s: [[f64; LIMITS]; SCALES],
}

impl WindowScale {
    /// Process an acknowledgement, before which `in_flight` bytes had been sent beyond the one before; `window` is what
    /// that one's header has.
    pub fn on_ack(&mut self, in_flight: u64, window: u64, mss: u32) {
        let holds = |shift: &usize| window << shift >= in_flight;
        let Some(smallest) = (0..SCALES).find(holds).filter(|_| window > 0) else {
            return;
        };
        self.acks += 1;
        self.smallest[smallest] = self.smallest[smallest].saturating_add(1);
        for shift in
            (smallest..SCALES).take_while(|shift| window << shift < in_flight + u64::from(mss))
        {
            self.full[shift] += 1;
        }
    }

    /// End a round, in which everything sent was new or not: who retransmits waits for no window. A round that ends as
    /// soon as it began, since the pipe ran empty, is a part of the one before.
    pub fn end_round(&mut self, is_new: bool, is_short: bool) {
        if !is_short {
            self.last_full = (0..SCALES)
                .filter(|&shift| is_new && 2 * self.full[shift] > self.acks)
                .fold(0, |full, shift| full | 1 << shift);
        }
        self.full = [0; SCALES];
        self.acks = 0;
    }

    /// Add time to a limit, in the last round or behind it. A window that is closed is so at any scale.
    pub fn add(&mut self, limit: u8, spent_s: f64) {
        if limit == Limit::Receiver as u8 {
            return;
        }
        for shift in (0..SCALES).filter(|shift| self.last_full & 1 << shift != 0) {
            self.full_s[shift][usize::from(limit)] += spent_s;
        }
    }

    /// Return the seconds of each limit in which the window may be the limit as well.
    pub fn uncertain_s(&self) -> [f64; LIMITS] {
        let total: u32 = self.smallest.iter().sum();
        let mut above = total;
        for (count, full_s) in self.smallest.iter().zip(&self.full_s) {
            above -= count;
            if above * OUT_OF_ORDER <= total {
                return *full_s;
            }
        }
        [0.0; LIMITS]
    }
}

impl LimitClassifier {
    /// An acknowledgement whose window has an unknown scale: see [`WindowScale::on_ack`].
    pub fn on_unscaled_window(&mut self, in_flight: u64, window: u64, mss: u32) {
        let scale = self.window_scale.get_or_insert_default();
        scale.on_ack(in_flight, window, mss);
    }

    /// Return the seconds by [`Limit`].
    pub fn limited_s(&self) -> [f64; Limit::NAMES.len()] {
        let mut limited_s = self.limited_s;
        if let Some(scale) = &self.window_scale {
            let uncertain_s = scale.uncertain_s();
            for (limit_s, uncertain_s) in limited_s.iter_mut().zip(uncertain_s) {
                *limit_s = (*limit_s - uncertain_s).max(0.0);
            }
            limited_s[Limit::UnknownWindow as usize] += uncertain_s.iter().sum::<f64>();
        }
        limited_s
    }

    /// Add time to a limit, in the last round or behind it.
    pub(super) fn add(&mut self, limit: u8, spent_s: f64) {
        self.limited_s[usize::from(limit)] += spent_s;
        if let Some(scale) = &mut self.window_scale {
            scale.add(limit, spent_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 64 << 7 bytes that is full with 8000 bytes in flight.
    fn filled() -> WindowScale {
        let mut scale = WindowScale::default();
        for _ in 0..8 {
            scale.on_ack(8000, 64, 1000);
        }
        scale
    }

    #[test]
    fn time_is_taken_back_from_the_round_that_had_it() {
        let mut scale = filled();
        scale.end_round(true, false);
        scale.add(Limit::SlowStart as u8, 0.1);
        scale.end_round(true, true); // the pipe is empty: that round was the application's
        scale.add(Limit::SlowStart as u8, -0.1);
        scale.add(Limit::Application as u8, 0.1);
        let uncertain_s = scale.uncertain_s();
        assert_eq!(uncertain_s[Limit::SlowStart as usize], 0.0);
        assert_eq!(uncertain_s[Limit::Application as usize], 0.1);
    }

    #[test]
    fn a_round_with_retransmissions_waits_for_no_window() {
        let mut scale = filled();
        scale.end_round(false, false);
        scale.add(Limit::Cwnd as u8, 1.0);
        assert_eq!(scale.uncertain_s(), [0.0; LIMITS]);
    }
}
