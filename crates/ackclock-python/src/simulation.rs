//! The class `Simulation`: a run of the packet engine, driven from Python.
//!
//! The interpreter is released while the engine works, so seeds run in parallel on Python threads.
//! A panic in the engine becomes a `RuntimeError`, and the simulation rejects further calls; so it does after an
//! exception in an algorithm that is written in Python, which is raised, and after the failure of a user's stack, which
//! is a `ConnectionError`.

use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ackclock_core::{Rate, Time};
use ackclock_plan::Plan;
use ackclock_sim::{Simulation as Engine, Stack, StackFailure, Stacks};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict};

use crate::columns::tables;
use crate::guard::guarded;
use crate::prototype::take_raised;

/// A call to a user's stack that takes longer is taken for an endless loop.
const PATIENCE_S: f64 = 10.0;

/// The maximum number of events between two checks for signals.
const MAX_EVENTS: u32 = 2_000_000;

fn time(seconds: f64) -> PyResult<Time> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err("until_s is not a number"));
    }
    Ok(Time::from_seconds(seconds))
}

/// One run of the packet engine: the same plan and seed give the same bytes.
#[pyclass(frozen, module = "ackclock._core")]
pub struct Simulation {
    /// Empty after a panic: the engine's state is not to be trusted then.
    engine: Arc<Mutex<Option<Engine>>>,
}

#[pymethods]
impl Simulation {
    /// Set a run up; raise `ValueError` if the plan cannot be run. `stacks` has the commands that host users' stacks, by
    /// their names; one that does not return from a call within `patience_s` fails.
    #[new]
    #[pyo3(signature = (plan_json, seed, stacks = BTreeMap::new(), patience_s = PATIENCE_S))]
    fn new(
        py: Python<'_>,
        plan_json: &str,
        seed: u64,
        stacks: BTreeMap<String, Vec<String>>,
        patience_s: f64,
    ) -> PyResult<Simulation> {
        let patience = Duration::try_from_secs_f64(patience_s)
            .map_err(|error| PyValueError::new_err(format!("patience_s: {error}")))?;
        let engine = py
            .detach(|| guarded(|| engine(plan_json, seed, stacks, patience)))
            .map_err(failure)?;
        let engine = engine.map_err(PyValueError::new_err)?;
        Ok(Simulation {
            engine: Arc::new(Mutex::new(Some(engine))),
        })
    }

    /// Simulate up to `until_s` seconds, or the end of the plan; return the time reached.
    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<f64> {
        let until = time(until_s)?;
        self.with(py, |engine| engine.advance(until).seconds())
    }

    /// Advance like `advance`, but stop after some tenths of a second's work. Return the time reached, and true if that
    /// is `until_s` or the end of the plan.
    fn advance_some(&self, py: Python<'_>, until_s: f64) -> PyResult<(f64, bool)> {
        let until = time(until_s)?;
        self.with(py, |engine| {
            let all = engine.advance_within(until, MAX_EVENTS);
            (engine.now().seconds(), all)
        })
    }

    /// Return the state of a flow's congestion control and its variables by the names of its specification; `None`
    /// for a flow that is not active, and for an algorithm that shows none.
    fn control_variables<'py>(
        &self,
        py: Python<'py>,
        flow: u32,
    ) -> PyResult<Option<(&'static str, Bound<'py, PyDict>)>> {
        let found = self.with(py, |engine| engine.control_variables(flow))?;
        found
            .map(|one| Ok((one.state, one.values.into_py_dict(py)?)))
            .transpose()
    }

    /// Return the measurements of a flow's sender by name; `None` for a flow that is not an active connection.
    fn sender_measurements<'py>(
        &self,
        py: Python<'py>,
        flow: u32,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.with(py, |engine| engine.sender_measurements(flow))?;
        found.map(|values| values.into_py_dict(py)).transpose()
    }

    /// Set the window (segments) and the pacing rate (bit/s) of a flow whose CCA is an agent, at the present time;
    /// return false for a flow that is not active. Raises `ValueError` for a window or a rate that is not positive and
    /// finite.
    #[pyo3(signature = (flow, cwnd, pacing_rate_bps = None))]
    fn set_window(
        &self,
        py: Python<'_>,
        flow: u32,
        cwnd: f64,
        pacing_rate_bps: Option<f64>,
    ) -> PyResult<bool> {
        for (name, value) in [("cwnd", Some(cwnd)), ("pacing_rate_bps", pacing_rate_bps)] {
            if value.is_some_and(|value| !(value.is_finite() && value > 0.0)) {
                let found = value.unwrap_or_default();
                return Err(PyValueError::new_err(format!(
                    "{name}: found {found}; expected a positive, finite number"
                )));
            }
        }
        let rate = pacing_rate_bps.map(Rate::from_bits_per_second);
        self.with(py, |engine| engine.set_window(flow, cwnd, rate))
    }

    /// Let the run leap past round trips in which no packet matters, before it begins: the `hybrid` engine.
    fn enable_leaps(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Engine::enable_leaps)
    }

    /// Divide the run among up to `threads` threads, before it begins; return how many, and why it is only one ("" else).
    fn enable_threads(&self, py: Python<'_>, threads: usize) -> PyResult<(usize, &'static str)> {
        self.with(py, |engine| match engine.enable_threads(threads) {
            Ok(threads) => (threads, ""),
            Err(reason) => (1, reason),
        })
    }

    /// Return the number of leaps so far, and the seconds that they have skipped.
    fn leaps(&self, py: Python<'_>) -> PyResult<(u64, f64)> {
        self.with(py, |engine| {
            let (count, skipped) = engine.leaps();
            (count, skipped.seconds())
        })
    }

    /// Take the rows recorded since the last call, and those of many transfers that are over.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (rows, ended) = self.with(py, |engine| (engine.drain(), engine.take_ended()))?;
        let mut all = rows.tables();
        if !ended.is_empty() {
            all.push(("flows", ended.columns()));
        }
        tables(py, all)
    }

    /// Take the `flows` and `links` tables, and the last rows of the others.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (totals, rows) = self.with(py, |engine| (engine.finish(), engine.drain()))?;
        let all = rows.tables().into_iter().chain(totals.tables());
        tables(py, all.collect())
    }

    /// Take what has been written of each capture (pcap) since the last call, in the order of the plan's vantages.
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let files = self.with(py, Engine::take_captures)?;
        Ok(files.iter().map(|file| PyBytes::new(py, file)).collect())
    }
}

impl Simulation {
    /// Call the engine without holding the interpreter. The lock is taken and given back inside, so
    /// no thread ever waits for one of the two while it holds the other.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Engine) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut slot = self.lock();
            let Some(engine) = slot.as_mut() else {
                return Err("this simulation failed before and cannot go on".to_owned());
            };
            guarded(|| without_stack_failure(|| call(engine))).inspect_err(|_| *slot = None)
        })
        .map_err(failure)?
        .map_err(|failed| {
            *self.lock() = None;
            PyConnectionError::new_err(failed.to_string())
        })
    }

    /// The engine, for a thread that runs it by the clock.
    pub fn shared(&self) -> Arc<Mutex<Option<Engine>>> {
        Arc::clone(&self.engine)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn engine(
    plan_json: &str,
    seed: u64,
    stacks: BTreeMap<String, Vec<String>>,
    patience: Duration,
) -> Result<Engine, String> {
    let plan: Plan = serde_json::from_str(plan_json).map_err(|error| format!("plan: {error}"))?;
    let start = |(name, command): (String, Vec<String>)| {
        let stack = Stack::start(&name, &command, patience)?;
        Ok((name, stack))
    };
    let stacks: Result<Stacks, StackFailure> = stacks.into_iter().map(start).collect();
    let stacks = stacks.map_err(|failed| failed.to_string())?;
    Engine::with_stacks(&plan, seed, stacks).map_err(|error| format!("plan: {error}"))
}

/// Call the engine, whose endpoints unwind with the failure of a user's stack. Other panics go on.
fn without_stack_failure<T>(call: impl FnOnce() -> T) -> Result<T, StackFailure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| match panic.downcast() {
        Ok(failed) => *failed,
        Err(other) => resume_unwind(other),
    })
}

fn failure(message: String) -> PyErr {
    take_raised().unwrap_or_else(|| PyRuntimeError::new_err(message))
}
