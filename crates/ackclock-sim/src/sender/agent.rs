//! A sender whose window is set from outside the simulation, and what it knows of its path.

use ackclock_core::{Rate, Time};

use super::{floor_segments, Sender};

impl Sender {
    /// Set the window and the pacing rate, if the controller permits it; what the window now allows is sent at the
    /// sender's next timer, which is due at once. Returns whether they were set.
    pub fn set_window(&mut self, cwnd: f64, rate: Option<Rate>, now: Time) -> bool {
        if !self.controller.set_window(cwnd, rate) {
            return false;
        }
        if self.is_open() {
            self.window = floor_segments(self.controller.cwnd());
            self.timers.application = now;
        }
        true
    }

    /// Measurements of the sender by name, those of its controller included: seconds (NaN before the first sample),
    /// segments (`_p`, counts since the connection began) and bytes.
    pub fn measurements(&self) -> Vec<(&'static str, f64)> {
        let (srtt, min_rtt) = match self.srtt() {
            Some(srtt) => (srtt.seconds(), self.rtt.min_rtt().seconds()),
            None => (f64::NAN, f64::NAN),
        };
        let mut all = vec![
            ("srtt_s", srtt),
            ("min_rtt_s", min_rtt),
            ("cwnd_p", self.cwnd()),
            ("in_flight_p", f64::from(self.in_flight())),
            ("delivered_p", self.rates.delivered as f64),
            ("sent_p", self.counters.sent_packets as f64),
            ("retransmissions", self.counters.retransmissions as f64),
            ("timeouts", self.counters.timeouts as f64),
            ("mss_bytes", f64::from(self.tcp.mss_bytes)),
        ];
        let control = self.control_variables();
        all.extend(control.map(|one| one.values).unwrap_or_default());
        all
    }
}
