//! A congestion controller beside somebody else's log: the events of the log are its input.
//!
//! `ackclock.judge` describes it to users. Only compiled algorithms are replayed. Windows are in segments, times in
//! seconds from the start of the log; the caller checks that they are finite and in order.

use ackclock_congestion::detector::Steer;
use ackclock_congestion::{Ack, Controller, Loss, CONTROLLERS};
use ackclock_core::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

/// The latest time of a replay: a log of a year is none of one connection.
const MAX_S: f64 = 3.2e7;

/// A controller that events of a log are fed to.
#[pyclass(module = "ackclock._core")]
pub struct ControllerReplay {
    controller: Box<dyn Controller>,
    delivered: u64,
    srtt: Time,
    min_rtt: Time,
}

#[pymethods]
impl ControllerReplay {
    /// Create a controller with complete parameters (a JSON object) and its initial window.
    ///
    /// Raises `ValueError` for an unknown name, and for invalid parameters.
    #[new]
    fn new(kind: &str, parameters_json: &str, initial_window: f64) -> PyResult<ControllerReplay> {
        let wrong = |reason: String| PyValueError::new_err(reason);
        let parameters: Value =
            serde_json::from_str(parameters_json).map_err(|error| wrong(error.to_string()))?;
        let (_, factory) = CONTROLLERS
            .iter()
            .find(|(name, _)| *name == kind)
            .ok_or_else(|| {
                wrong(format!(
                    "no congestion control algorithm is called \"{kind}\""
                ))
            })?;
        let controller =
            factory(&parameters, initial_window).map_err(|error| wrong(error.to_string()))?;
        Ok(ControllerReplay {
            controller,
            delivered: 0,
            srtt: Time::ZERO,
            min_rtt: Time::NEVER,
        })
    }

    /// Set the round-trip times that the following events have.
    fn set_rtt(&mut self, srtt_s: f64, min_rtt_s: f64) {
        self.srtt = time(srtt_s);
        self.min_rtt = time(min_rtt_s);
    }

    /// Process an acknowledgement of whole segments. `may_grow` is false while the window is not used, `recovering`
    /// true in a recovery period.
    fn on_ack(
        &mut self,
        now_s: f64,
        newly_acked: u32,
        in_flight: u32,
        may_grow: bool,
        recovering: bool,
    ) {
        self.delivered += u64::from(newly_acked);
        let prior_in_flight = in_flight.saturating_add(newly_acked);
        self.controller.on_ack(&Ack {
            now: time(now_s),
            newly_acked,
            newly_acked_bytes: 0,
            may_raise_cwnd: true,
            cumulatively_acked: newly_acked,
            has_sack: false,
            window_update: false,
            rtt: (self.srtt > Time::ZERO).then_some(self.srtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_in_flight,
            in_flight,
            delivery_rate: None,
            delivered: self.delivered,
            prior_delivered: self.delivered.saturating_sub(u64::from(prior_in_flight)),
            application_limited: !may_grow,
            window_limited: may_grow,
            newly_lost: 0,
            marked_bytes: 0,
            next: self.delivered + u64::from(in_flight),
            unacknowledged: self.delivered,
            recovering,
            in_loss: false,
            paced: false,
            next_departure: Time::ZERO,
        });
    }

    /// Begin a recovery period: a loss, or a mark.
    fn on_loss(&mut self, now_s: f64, in_flight: u32, marked: bool) {
        self.controller.on_loss(&Loss {
            now: time(now_s),
            in_flight,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            delivered: self.delivered,
            marked,
        });
    }

    /// Collapse the window: TCP's retransmission timeout, QUIC's persistent congestion.
    fn on_timeout(&mut self, now_s: f64, in_flight: u32) {
        self.controller.on_timeout(time(now_s), in_flight);
    }

    /// Go on in congestion avoidance from this window.
    fn resume(&mut self, cwnd: f64) {
        self.controller.steer_slow_start(Steer::Exit(cwnd));
    }

    /// The congestion window.
    #[getter]
    fn cwnd(&self) -> f64 {
        self.controller.cwnd()
    }

    /// The slow start threshold; infinite until the first loss.
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.controller.ssthresh()
    }
}

/// A time of the log.
fn time(seconds: f64) -> Time {
    Time::from_seconds(seconds.clamp(0.0, MAX_S))
}
