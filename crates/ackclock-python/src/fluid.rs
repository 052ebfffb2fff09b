//! The fluid engine, driven from Python: many plans in one call.
//!
//! The interpreter is released while the engine works, and acquired between runs to report progress and to handle
//! interrupts. A panic in the engine becomes a `RuntimeError`.

use ackclock_models::fluid::{run_many, Outcome, Plan};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::columns::tables;
use crate::guard::guarded;

/// Run each plan (JSON) with its seed on `threads` threads; the results come in the order of the plans and do not
/// depend on the number of threads.
///
/// `progress` is called with the number of completed runs; an exception from it ends the call. Raises `ValueError`
/// if a plan cannot be run.
#[pyfunction]
#[pyo3(signature = (plans_json, seeds, threads, progress=None))]
pub fn fluid_many<'py>(
    py: Python<'py>,
    plans_json: Vec<String>,
    seeds: Vec<u64>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    if plans_json.len() != seeds.len() {
        return Err(PyValueError::new_err("as many seeds as plans are needed"));
    }
    let work: Vec<_> = plans_json.into_iter().zip(seeds).collect();
    let progress = progress.map(Bound::unbind);
    let mut raised = None;
    let outcomes = py.detach(|| {
        let proceed = |done| match report_progress(progress.as_ref(), done) {
            Ok(()) => true,
            Err(error) => {
                raised = Some(error);
                false
            }
        };
        guarded(|| run_all(&work, threads, proceed))
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let outcomes = outcomes
        .map_err(PyRuntimeError::new_err)?
        .map_err(PyValueError::new_err)?;
    let rows = outcomes
        .into_iter()
        .map(|outcome| tables(py, outcome.tables()));
    PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

fn report_progress(progress: Option<&Py<PyAny>>, done: usize) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        progress.map_or(Ok(()), |call| call.call1(py, (done,)).map(|_| ()))
    })
}

fn run_all(
    work: &[(String, u64)],
    threads: usize,
    proceed: impl FnMut(usize) -> bool,
) -> Result<Vec<Outcome>, String> {
    let read = |(json, seed): &(String, u64)| Plan::from_json(json).map(|plan| (plan, *seed));
    let plans: Result<Vec<_>, _> = work.iter().map(read).collect();
    let plans = plans.map_err(|error| error.to_string())?;
    let outcomes = run_many(&plans, threads, proceed).map_err(|error| error.to_string())?;
    Ok(outcomes.unwrap_or_default())
}
