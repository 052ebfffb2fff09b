//! Checks of an algorithm's parameters, made when a scenario is checked.

use ackclock_congestion::realtime::{self, MediaSource};
use ackclock_congestion::{contract, Error};
use ackclock_core::Rate;
use ackclock_plan::CongestionPlan;
use ackclock_quic::{ControllerError, EngineController};
use ackclock_sim::queue::{FlowHeaders, QueueContext, DISCIPLINES};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::guard::guarded;
use crate::prototype::take_raised;

/// Initial window of a checked controller, in segments: no parameter's meaning depends on it.
const INITIAL_WINDOW: u32 = 10;

/// Check a qdisc's parameters (a JSON object) behind a link of `rate_bps`.
///
/// Raises `ValueError` with the reason if they are invalid. A qdisc that the packet engine does not have passes.
#[pyfunction]
pub fn check_queue(discipline: &str, parameters_json: &str, rate_bps: f64) -> PyResult<()> {
    let Some((_, maker)) = DISCIPLINES.iter().find(|(name, _)| *name == discipline) else {
        return Ok(());
    };
    let context = QueueContext {
        rate_bps,
        seed: 0,
        frame_bytes: 0,
        headers: FlowHeaders::NONE,
    };
    let made = parsed(parameters_json).and_then(|read| maker(&read, &context).map(drop));
    made.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Check a CCA's parameters (a JSON object), and with `quic` whether it can be the controller of a QUIC stack.
///
/// Raises `ValueError` with the reason if not. A CCA that the packet engine does not have passes.
#[pyfunction]
#[pyo3(signature = (kind, parameters_json, *, quic = false))]
pub fn check_congestion(kind: &str, parameters_json: &str, quic: bool) -> PyResult<()> {
    if realtime::CONTROLLERS.iter().any(|(name, _)| *name == kind) {
        return check_realtime(kind, parameters_json);
    }
    let parameters =
        parsed(parameters_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let made = if quic {
        let kind = kind.to_owned();
        let plan = CongestionPlan { kind, parameters };
        EngineController::new(&plan, 1200, 12_000, 0).map(drop)
    } else {
        let made = ackclock_congestion::make(kind, &parameters, INITIAL_WINDOW);
        made.map(drop).map_err(ControllerError::from)
    };
    match made {
        Err(ControllerError::Congestion(Error::Unknown(_) | Error::Taken(_))) | Ok(()) => Ok(()),
        Err(ControllerError::Congestion(Error::Parameters { source, .. })) => {
            Err(PyValueError::new_err(source.to_string()))
        }
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Check the parameters of a congestion control algorithm of real-time media. Rates are checked with the scenario.
fn check_realtime(kind: &str, parameters_json: &str) -> PyResult<()> {
    let source = MediaSource {
        min: Rate::from_bits_per_second(1.0),
        start: Rate::from_bits_per_second(1.0),
        max: Rate::from_bits_per_second(1.0),
        frames_per_s: 1.0,
        packet_bytes: 1240,
        l4s: false,
    };
    let read = parsed(parameters_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let made = realtime::make(kind, &read, source).map(drop);
    made.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Test a CCA with complete parameters (a JSON object) in `histories` random histories, always the same ones.
///
/// Returns a description of the violated part of the contract; `None` if all of it holds. Raises `ValueError` for
/// text that is not JSON, and what an algorithm in Python raises.
#[pyfunction]
pub fn check_contract(
    py: Python<'_>,
    kind: &str,
    parameters_json: &str,
    histories: u32,
) -> PyResult<Option<String>> {
    let parameters =
        parsed(parameters_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let tried = py.detach(|| guarded(|| contract::run_trials(kind, &parameters, histories)));
    match take_raised() {
        Some(error) => Err(error),
        None => Ok(tried.and_then(|holds| holds).err()),
    }
}

fn parsed(json: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(json)
}
