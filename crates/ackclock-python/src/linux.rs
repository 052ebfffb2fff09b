//! The run inside a Linux kernel, and its result.

use std::io::{self, Write};

use pyo3::exceptions::{PySystemExit, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::tables;
use crate::guard::guarded;

/// Execute the run specification in a file, inside namespaces of its own: set the network up, run the traffic, write
/// the result.
///
/// Writes progress (`progress 0.25`) to the standard output; after an error (`error …`) raises `SystemExit` with
/// status 1.
#[pyfunction]
pub fn execute_run_spec(py: Python<'_>, path: &str) -> PyResult<()> {
    let outcome = py.detach(|| {
        let run_spec = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        guarded(|| ackclock_linux::execute(&run_spec).map_err(|error| error.to_string()))?
    });
    outcome.map_err(|error| {
        let line = error.replace('\n', " ");
        // Without a reader the status is all that is left.
        let _ = writeln!(io::stdout(), "error {line}");
        PySystemExit::new_err(1)
    })
}

/// Return the tables of a result file: table name → column name → values.
#[pyfunction]
pub fn linux_result<'py>(py: Python<'py>, result: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let columns = ackclock_linux::result::read(result)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    tables(py, columns)
}
