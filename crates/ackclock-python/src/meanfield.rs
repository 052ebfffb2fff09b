//! The class `MeanField`: a run of the mean-field model, driven from Python.
//!
//! As with the packet engine, the interpreter is released while the model works, and a panic becomes a
//! `RuntimeError` after which the run refuses further calls.

use std::sync::{Mutex, PoisonError};

use ackclock_models::meanfield::plan::Plan;
use ackclock_models::meanfield::record::{
    Episodes, FlowSamples, Flows, Hits, LinkTotals, QueueSamples, Rows,
};
use ackclock_models::meanfield::MeanField as Model;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::columns;
use crate::guard::guarded;

/// One run of the mean-field model: the same plan and seed give the same bytes.
#[pyclass(frozen, module = "ackclock._core")]
pub struct MeanField {
    /// Empty after a panic: the model's state is not to be trusted then.
    model: Mutex<Option<Model>>,
}

#[pymethods]
impl MeanField {
    /// Sets a run up; raises `ValueError` if the plan cannot be run.
    #[new]
    fn new(py: Python<'_>, plan_json: &str, seed: u64) -> PyResult<MeanField> {
        let made = py.detach(|| guarded(|| model(plan_json, seed)));
        let made = made.map_err(PyRuntimeError::new_err)?;
        let model = Mutex::new(Some(made.map_err(PyValueError::new_err)?));
        Ok(MeanField { model })
    }

    /// Goes on to `until_s` seconds, or the end of the plan; returns the time reached.
    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<f64> {
        self.with(py, |model| model.advance(until_s))
    }

    /// Takes the rows recorded since the last call.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables(py, self.with(py, Model::drain)?)
    }

    /// Takes the totals of flows and link, and the last rows of the other tables.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ((flows, link), rows) = self.with(py, |model| (model.finish(), model.drain()))?;
        let result = tables(py, rows)?;
        result.set_item("flows", flow_columns(py, flows)?)?;
        result.set_item("link", link_values(py, link)?)?;
        Ok(result)
    }
}

impl MeanField {
    /// Calls the model without holding the interpreter.
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

fn tables(py: Python<'_>, rows: Rows) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("flow_samples", flow_sample_columns(py, rows.flow_samples)?)?;
    let queue_samples = queue_sample_columns(py, rows.queue_samples)?;
    result.set_item("queue_samples", queue_samples)?;
    result.set_item("hits", hit_columns(py, rows.hits)?)?;
    result.set_item("episodes", episode_columns(py, rows.episodes)?)?;
    Ok(result)
}

/// The link's totals, each a single value but for the histogram.
fn link_values(py: Python<'_>, link: LinkTotals) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    for (name, value) in [
        ("arrived_p", link.arrived_p),
        ("dropped_p", link.dropped_p),
        ("departed_p", link.departed_p),
        ("empty_s", link.empty_s),
        ("measured_s", link.measured_s),
        ("backlog_mean_p", link.backlog_mean_p),
        ("sojourn_mean_s", link.sojourn_mean_s),
        ("arrived_total_p", link.arrived_total_p),
        ("dropped_total_p", link.dropped_total_p),
        ("departed_total_p", link.departed_total_p),
    ] {
        result.set_item(name, value)?;
    }
    result.set_item("sojourn_edges_s", link.sojourn_edges_s)?;
    result.set_item("sojourn_counts", link.sojourn_counts)?;
    Ok(result)
}

columns!(
    flow_sample_columns,
    FlowSamples {
        time_s,
        flow,
        cwnd,
        srtt_s,
        delivered_p,
    }
);
columns!(
    queue_sample_columns,
    QueueSamples {
        time_s,
        backlog_p,
        sojourn_s,
        departures_p,
        drops_p,
        utilisation,
    }
);
columns!(
    hit_columns,
    Hits {
        dropped_s,
        reduced_s,
        flow,
    }
);
columns!(
    episode_columns,
    Episodes {
        start_s,
        end_s,
        class,
        share,
        dropped_p,
    }
);
columns!(
    flow_columns,
    Flows {
        flow,
        delivered_p,
        measured_p,
    }
);
