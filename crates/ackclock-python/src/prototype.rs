//! Congestion control algorithms written in Python: the packet engine calls their methods.
//!
//! `ackclock.algorithms.prototype` describes them to users. An object has the attributes `cwnd` and `ssthresh`, in
//! segments, and may have `pacing_rate_bps`; they are read after each call. A connection's object is a deep copy of its
//! group's. An exception in a method ends the run and is raised by the call that made the run.

use std::cell::RefCell;
use std::sync::Arc;

use ackclock_congestion::ca_state::CaState;
use ackclock_congestion::{
    register, Controller, EcnFeedback, Made, Opening, PriorWindow, RecoveryPolicy, Restart,
};
use ackclock_core::{Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::de::Error as _;
use serde_json::Value;

/// An acknowledgement. Windows and counts are in segments, times in seconds.
#[pyclass(frozen, get_all, module = "ackclock._core")]
#[allow(clippy::struct_excessive_bools)] // of the engine's `Ack`
pub struct Ack {
    now_s: f64,
    newly_acked: u32,
    newly_acked_bytes: u64,
    newly_lost: u32,
    marked_bytes: u64,
    rtt_s: Option<f64>,
    srtt_s: f64,
    min_rtt_s: Option<f64>,
    in_flight: u32,
    prior_in_flight: u32,
    delivered: u64,
    prior_delivered: u64,
    delivery_rate_bps: Option<f64>,
    application_limited: bool,
    window_limited: bool,
    recovering: bool,
    in_loss: bool,
    may_grow: bool,
}

/// The start of a recovery episode.
#[pyclass(frozen, get_all, module = "ackclock._core")]
pub struct Loss {
    now_s: f64,
    in_flight: u32,
    srtt_s: f64,
    min_rtt_s: Option<f64>,
    delivered: u64,
    marked: bool,
}

/// The largest window: a sender without another limit would fill any window at once.
const MAX_CWND: f64 = 1e7;

/// The methods that each object has.
const REQUIRED: &[&str] = &["on_ack", "on_loss", "on_timeout"];

thread_local! {
    /// The exception that ended the engine's work in this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Take the exception of a prototype that ended the last call of the engine in this thread.
pub fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// Register a congestion control algorithm by name.
///
/// `factory` is called with the parameters as JSON and the initial window; it returns an object with `on_ack`,
/// `on_loss` and `on_timeout`. `is_paced` and `is_own_recovery` are constants of the algorithm: see `requires_pacing`
/// and `RecoveryPolicy::Controller`. Raises `ValueError` for the name of an algorithm of the engine.
#[pyfunction]
pub fn register_congestion(
    name: &str,
    factory: Py<PyAny>,
    is_paced: bool,
    is_own_recovery: bool,
) -> PyResult<()> {
    let make = move |parameters: &Value, initial_window: f64| -> Made {
        let made = Python::attach(|py| {
            let object = factory.call1(py, (parameters.to_string(), initial_window))?;
            Prototype::new(py, object, is_paced, is_own_recovery)
        });
        Ok(Box::new(made.map_err(serde_json::Error::custom)?))
    };
    register(name, Arc::new(make)).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The controller of a connection.
struct Prototype {
    object: Py<PyAny>,
    is_paced: bool,
    is_own_recovery: bool,
    state: CaState,
    shown: Shown,
}

/// Window, threshold and rate of an object after a call.
#[derive(Clone, Copy)]
struct Shown {
    cwnd: f64,
    ssthresh: f64,
    pacing_rate_bps: Option<f64>,
}

impl Shown {
    fn read(object: &Bound<'_, PyAny>, after: &str) -> PyResult<Shown> {
        let cwnd = number(object, "cwnd", after)?;
        let ssthresh = number(object, "ssthresh", after)?;
        let rate = object
            .getattr_opt("pacing_rate_bps")?
            .filter(|rate| !rate.is_none());
        let pacing_rate_bps = match rate {
            Some(_) => Some(number(object, "pacing_rate_bps", after)?),
            None => None,
        };
        if !(1.0..=MAX_CWND).contains(&cwnd) {
            return Err(wrong("cwnd", after, cwnd, "1 to 10,000,000 segments"));
        }
        if ssthresh.is_nan() || ssthresh < 1.0 {
            return Err(wrong("ssthresh", after, ssthresh, "1 segment or more"));
        }
        if let Some(rate_bps) = pacing_rate_bps.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(wrong(
                "pacing_rate_bps",
                after,
                rate_bps,
                "None, or more than 0 bit/s",
            ));
        }
        Ok(Shown {
            cwnd,
            ssthresh,
            pacing_rate_bps,
        })
    }
}

fn number(object: &Bound<'_, PyAny>, name: &str, after: &str) -> PyResult<f64> {
    let value = object.getattr(name)?;
    value.extract().map_err(|_| {
        let shown = value
            .repr()
            .map_or_else(|_| "an object".to_owned(), |text| text.to_string());
        PyTypeError::new_err(format!(
            "{name} after {after}: found {shown}; expected a number"
        ))
    })
}

fn wrong(name: &str, after: &str, found: f64, expected: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name} after {after}: found {found:?}; expected {expected}"
    ))
}

impl Prototype {
    fn new(
        py: Python<'_>,
        object: Py<PyAny>,
        is_paced: bool,
        is_own_recovery: bool,
    ) -> PyResult<Prototype> {
        let bound = object.bind(py);
        for name in REQUIRED {
            if !bound.hasattr(name)? {
                return Err(PyTypeError::new_err(format!(
                    "found no method {name}; expected on_ack, on_loss and on_timeout"
                )));
            }
        }
        let shown = Shown::read(bound, "__init__")?;
        Ok(Prototype {
            object,
            is_paced,
            is_own_recovery,
            state: CaState::Open,
            shown,
        })
    }

    /// Call a method and read what the object shows. An exception unwinds to the boundary of the engine.
    fn call(
        &mut self,
        method: &str,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>>,
    ) {
        let shown = Python::attach(|py| {
            let object = self.object.bind(py);
            match call(object)? {
                Some(_) => Shown::read(object, method),
                None => Ok(self.shown),
            }
        });
        match shown {
            Ok(shown) => self.shown = shown,
            Err(error) => raise(error),
        }
    }
}

/// End the engine's work; the call that it is part of raises the exception. No panic message is printed.
fn raise(error: PyErr) -> ! {
    RAISED.set(Some(error));
    std::panic::resume_unwind(Box::new("a congestion control algorithm in Python failed"))
}

/// Call a method, if the object has it.
fn call_optional<'py, A>(
    object: &Bound<'py, PyAny>,
    name: &str,
    arguments: A,
) -> PyResult<Option<Bound<'py, PyAny>>>
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let method = object.getattr_opt(name)?;
    method.map(|method| method.call1(arguments)).transpose()
}

/// Seconds of a time that may be unknown.
fn seconds_if_set(time: Time) -> Option<f64> {
    (!time.is_never()).then(|| time.seconds())
}

fn loss(loss: &ackclock_congestion::Loss) -> Loss {
    Loss {
        now_s: loss.now.seconds(),
        in_flight: loss.in_flight,
        srtt_s: loss.srtt.seconds(),
        min_rtt_s: seconds_if_set(loss.min_rtt),
        delivered: loss.delivered,
        marked: loss.marked,
    }
}

impl Clone for Prototype {
    fn clone(&self) -> Prototype {
        let copied = Python::attach(|py| {
            let copy = py.import("copy")?;
            Ok(copy.call_method1("deepcopy", (&self.object,))?.unbind())
        });
        Prototype {
            object: copied.unwrap_or_else(|error| raise(error)),
            ..*self
        }
    }
}

impl Controller for Prototype {
    fn on_ack(&mut self, ack: &ackclock_congestion::Ack) {
        self.state.on_ack(ack);
        let may_grow = self.state != CaState::Recovery && ack.may_raise_cwnd && ack.window_limited;
        let ack = Ack {
            now_s: ack.now.seconds(),
            newly_acked: ack.newly_acked,
            newly_acked_bytes: ack.newly_acked_bytes,
            newly_lost: ack.newly_lost,
            marked_bytes: ack.marked_bytes,
            rtt_s: ack.rtt.map(Time::seconds),
            srtt_s: ack.srtt.seconds(),
            min_rtt_s: seconds_if_set(ack.min_rtt),
            in_flight: ack.in_flight,
            prior_in_flight: ack.prior_in_flight,
            delivered: ack.delivered,
            prior_delivered: ack.prior_delivered,
            delivery_rate_bps: ack.delivery_rate.map(Rate::bits_per_second),
            application_limited: ack.application_limited,
            window_limited: ack.window_limited,
            recovering: ack.recovering,
            in_loss: ack.in_loss,
            may_grow,
        };
        self.call("on_ack", |object| {
            object.call_method1("on_ack", (ack,)).map(Some)
        });
    }

    fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        let (delivered, marked) = (feedback.delivered, feedback.marked);
        let name = "on_ecn_feedback";
        self.call(name, |object| {
            call_optional(object, name, (delivered, marked))
        });
    }

    fn on_loss(&mut self, event: &ackclock_congestion::Loss) {
        self.state = CaState::Recovery;
        let event = loss(event);
        self.call("on_loss", |object| {
            object.call_method1("on_loss", (event,)).map(Some)
        });
    }

    fn on_recovered(&mut self, now: Time, rtt: Option<Time>) {
        let arguments = (now.seconds(), rtt.map(Time::seconds));
        self.call("on_recovered", |object| {
            call_optional(object, "on_recovered", arguments)
        });
    }

    fn on_established(&mut self, opening: &Opening) {
        let arguments = (
            opening.now.seconds(),
            opening.srtt.seconds(),
            opening.mss_bytes,
            opening.seed,
        );
        self.call("on_established", |object| {
            call_optional(object, "on_established", arguments)
        });
    }

    fn on_timeout(&mut self, now: Time, in_flight: u32) {
        self.state = CaState::Loss;
        let arguments = (now.seconds(), in_flight);
        self.call("on_timeout", |object| {
            object.call_method1("on_timeout", arguments).map(Some)
        });
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.state = CaState::Open;
        let (cwnd, ssthresh) = (before.cwnd, before.ssthresh);
        self.call("undo", |object| {
            call_optional(object, "undo", (cwnd, ssthresh))
        });
    }

    fn on_restart(&mut self, restart: &Restart) {
        let arguments = (
            restart.now.seconds(),
            restart.idle_since.seconds(),
            restart.rto.seconds(),
            restart.initial_window,
        );
        self.call("on_restart", |object| {
            call_optional(object, "on_restart", arguments)
        });
    }

    fn cwnd(&self) -> f64 {
        self.shown.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.shown.ssthresh
    }

    fn recovery_policy(&self) -> RecoveryPolicy {
        if self.is_own_recovery {
            RecoveryPolicy::Controller
        } else {
            RecoveryPolicy::Stack
        }
    }

    fn requires_pacing(&self) -> bool {
        self.is_paced
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.shown.pacing_rate_bps.map(Rate::from_bits_per_second)
    }
}
