//! The class `MeanField`: a run of the mean-field model, driven from Python.
//!
//! As with the packet engine, the interpreter is released while the model works, and a panic becomes a
//! `RuntimeError` after which the run rejects further calls.

use std::sync::{Mutex, PoisonError};

use ackclock_models::meanfield::plan::Plan;
use ackclock_models::meanfield::MeanField as Model;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::tables;
use crate::guard::guarded;

/// One run of the mean-field model: the same plan and seed give the same bytes.
#[pyclass(frozen, module = "ackclock._core")]
pub struct MeanField {
    /// Empty after a panic: the model's state is not to be trusted then.
    model: Mutex<Option<Model>>,
}

#[pymethods]
impl MeanField {
    /// Set a run up; raise `ValueError` if the plan cannot be run.
    #[new]
    fn new(py: Python<'_>, plan_json: &str, seed: u64) -> PyResult<MeanField> {
        let made = py.detach(|| guarded(|| model(plan_json, seed)));
        let made = made.map_err(PyRuntimeError::new_err)?;
        let model = Mutex::new(Some(made.map_err(PyValueError::new_err)?));
        Ok(MeanField { model })
    }

    /// Advance to `until_s` seconds, or the end of the plan; return the time reached.
    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<f64> {
        self.with(py, |model| model.advance(until_s))
    }

    /// Take the rows recorded since the last call.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables(py, self.with(py, Model::drain)?.tables())
    }

    /// Take the `flows` and `links` tables, and the last rows of the other tables.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (totals, rows) = self.with(py, |model| (model.finish(), model.drain()))?;
        let all = rows.tables().into_iter().chain(totals.tables());
        tables(py, all.collect())
    }
}

impl MeanField {
    /// Call the model without holding the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Model) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut slot = self.model.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(model) = slot.as_mut() else {
                return Err("this run failed before and cannot go on".to_owned());
            };
            guarded(|| call(model)).inspect_err(|_| *slot = None)
        })
        .map_err(PyRuntimeError::new_err)
    }
}

fn model(plan_json: &str, seed: u64) -> Result<Model, String> {
    let plan: Plan = serde_json::from_str(plan_json).map_err(|error| format!("plan: {error}"))?;
    Model::new(&plan, seed).map_err(|error| format!("plan: {error}"))
}
