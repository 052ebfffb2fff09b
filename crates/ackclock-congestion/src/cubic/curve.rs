//! The cubic curve of one congestion avoidance phase, and Reno's window next to it.

use ackclock_core::Time;

/// The curve of one congestion avoidance phase.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// When the phase began.
    pub start: Time,
    /// The curve's flat point.
    pub origin: u32,
    /// K, seconds from the start to the flat point.
    pub k_s: f64,
    /// C, segments/s³.
    c: f64,
    /// Reno's window, `W_est`.
    pub w_est: u32,
    /// Acknowledged segments that `W_est` has not grown by yet.
    pub w_est_credit: u32,
}

impl Epoch {
    /// From `cwnd` towards `w_max`, or from a flat point at `cwnd` if that is not below.
    pub fn begin(now: Time, cwnd: u32, w_max: u32, c: f64) -> Epoch {
        Epoch {
            start: now,
            origin: w_max.max(cwnd),
            k_s: k_s(w_max, cwnd, c),
            c,
            w_est: cwnd,
            w_est_credit: 0,
        }
    }

    /// `W_cubic`(t), t since the start (RFC 9438, figure 1).
    pub fn w_cubic(&self, t: Time) -> f64 {
        f64::from(self.origin) + self.c * (t.seconds() - self.k_s).powi(3)
    }

    /// `W_cubic`(t) in whole segments, rounded towards the flat point, as Linux does.
    pub fn w_cubic_towards_flat(&self, t: Time) -> u32 {
        let distance = (self.c * (t.seconds() - self.k_s).abs().powi(3)) as u32;
        if t.seconds() < self.k_s {
            self.origin.saturating_sub(distance)
        } else {
            self.origin.saturating_add(distance)
        }
    }

    /// Let Reno's window grow with what has been acknowledged (figure 4): one segment for `windows_8`
    /// eighths of a window at a time.
    pub fn grow_w_est(&mut self, cwnd: u32, windows_8: impl Fn(u32) -> u32) {
        loop {
            let per_increment = (cwnd.saturating_mul(windows_8(self.w_est)) / 8).max(1);
            if self.w_est_credit <= per_increment {
                return;
            }
            self.w_est_credit -= per_increment;
            self.w_est += 1;
        }
    }
}

/// K: seconds from the start of the epoch until the curve is flat (figure 2).
fn k_s(w_max: u32, cwnd_epoch: u32, c: f64) -> f64 {
    (f64::from(w_max.saturating_sub(cwnd_epoch)) / c).cbrt()
}

/// Acknowledged segments per increment that raise `cwnd` to `target` within one window; without end if
/// the target is not above it.
pub fn per_increment_to(target: u32, cwnd: u32) -> u32 {
    cwnd.checked_div(target.saturating_sub(cwnd))
        .unwrap_or(u32::MAX)
}
