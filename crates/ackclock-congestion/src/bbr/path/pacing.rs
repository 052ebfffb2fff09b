//! The pacing rate, which does not fall before the pipe is full.

use ackclock_core::{Rate, Time};

/// The pacing rate.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    /// Payload bytes per second; infinite before the connection is open.
    pub bytes_per_s: f64,
    /// True if it rests on a measured RTT or better.
    has_rtt: bool,
}

impl Pacing {
    /// No rate is known.
    pub const NONE: Pacing = Pacing {
        bytes_per_s: f64::INFINITY,
        has_rtt: false,
    };

    /// The first rate, from an RTT or, if that is zero, without one.
    pub fn begin(&mut self, bytes_per_s: f64, srtt: Time) {
        self.bytes_per_s = bytes_per_s;
        self.has_rtt = srtt > Time::ZERO;
    }

    /// Return true if `srtt` is the first RTT, to begin anew with.
    #[inline]
    pub fn takes_first_rtt(&self, srtt: Time) -> bool {
        !self.has_rtt && srtt > Time::ZERO
    }

    /// A rate from the bandwidth.
    #[inline]
    pub fn follow(&mut self, bytes_per_s: f64, is_full: bool) {
        if is_full || bytes_per_s > self.bytes_per_s {
            self.bytes_per_s = bytes_per_s;
        }
    }

    /// The rate, when there is one.
    pub fn rate(&self) -> Option<Rate> {
        let rate = self.bytes_per_s;
        rate.is_finite().then(|| Rate::from_bytes_per_second(rate))
    }
}
