//! The Python module `ackclock._core`: a plan in, columns out.
//!
//! The only crate that depends on `PyO3`, and only a translation: JSON plans go to the engines, columns come back as
//! `NumPy` arrays, and TOML texts as their values and the line of each key.

#[cfg(feature = "python")]
mod capture;
#[cfg(feature = "python")]
mod columns;
#[cfg(feature = "python")]
mod congestion;
#[cfg(feature = "python")]
mod drawn;
#[cfg(feature = "python")]
mod fluid;
pub mod guard;
#[cfg(all(feature = "python", target_os = "linux"))]
mod host;
#[cfg(feature = "python")]
mod linux;
#[cfg(feature = "python")]
mod listing;
#[cfg(feature = "python")]
mod meanfield;
#[cfg(feature = "python")]
mod parameters;
#[cfg(feature = "python")]
mod prototype;
#[cfg(feature = "python")]
mod replay;
#[cfg(all(feature = "python", target_os = "linux"))]
mod shell;
#[cfg(feature = "python")]
mod simulation;
pub mod toml_spans;
#[cfg(feature = "python")]
mod toml_values;

/// The native part of ackclock.
#[cfg(feature = "python")]
#[pyo3::pymodule]
mod _core {
    use ackclock_analysis::tables as captured;
    use ackclock_congestion::CONTROLLERS;
    use ackclock_core::tables::{
        End, EventKind, PacketAction, PacketFate, SendCause, SendLimit, Tables, Totals,
    };
    use ackclock_models::fluid::growth::LAWS;
    use ackclock_sim::packet::Kind;
    use ackclock_sim::queue::DISCIPLINES;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::{IntoPyDict, PyDict, PyList, PyTuple};

    #[pymodule_export]
    use crate::capture::Capture;
    #[pymodule_export]
    use crate::drawn::drawn;
    #[pymodule_export]
    use crate::fluid::fluid_many;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::host::ClockWatch;
    #[pymodule_export]
    use crate::linux::{execute_run_spec, linux_result};
    #[pymodule_export]
    use crate::listing::Listing;
    #[pymodule_export]
    use crate::meanfield::MeanField;
    #[pymodule_export]
    use crate::parameters::{check_congestion, check_contract, check_queue};
    #[pymodule_export]
    use crate::prototype::{register_congestion, Ack, Loss};
    #[pymodule_export]
    use crate::replay::ControllerReplay;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::shell::{tcp_sockets, Bridge};
    #[pymodule_export]
    use crate::simulation::Simulation;
    use crate::toml_spans::{PathLine, Step};

    /// Return the line of every key and array item of a TOML text.
    ///
    /// The result is a list of `(path, line)`: a path holds key names and array indexes (from 0), a line
    /// counts from 1. Raises `ValueError` with line and column if the text is not TOML.
    #[pyfunction]
    fn toml_spans<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyList>> {
        let spans = crate::toml_spans::toml_spans(text)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let rows = spans
            .iter()
            .map(|row| path_line(py, row))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }

    /// Return the values of a TOML text. Raises `ValueError` if it is not TOML.
    #[pyfunction]
    fn toml_values<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
        crate::toml_values::values(py, text)
    }

    fn path_line<'py>(
        py: Python<'py>,
        (path, line): &PathLine,
    ) -> PyResult<(Bound<'py, PyTuple>, usize)> {
        let steps = path
            .iter()
            .map(|step| to_python(py, step))
            .collect::<PyResult<Vec<_>>>()?;
        Ok((PyTuple::new(py, steps)?, *line))
    }

    fn to_python<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyAny>> {
        match step {
            Step::Key(key) => Ok(key.into_pyobject(py)?.into_any()),
            Step::Index(index) => Ok(index.into_pyobject(py)?.into_any()),
        }
    }

    type Described = (&'static str, &'static [(&'static str, &'static str)]);

    /// Return a description of tables: table name → column name → type.
    fn tables(
        py: Python<'_>,
        described: impl Iterator<Item = &'static Described>,
    ) -> PyResult<Bound<'_, PyDict>> {
        let named = PyDict::new(py);
        for (table, columns) in described {
            named.set_item(table, columns.into_py_dict(py)?)?;
        }
        Ok(named)
    }

    /// Return the names in a list of algorithms.
    fn names<Maker>(list: &[(&'static str, Maker)]) -> Vec<&'static str> {
        list.iter().map(|(name, _)| *name).collect()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("CONGESTION_CONTROLS", names(CONTROLLERS))?;
        module.add("QUEUE_DISCIPLINES", names(DISCIPLINES))?;
        module.add("EVENT_KINDS", EventKind::NAMES.to_vec())?;
        module.add("PACKET_KINDS", Kind::NAMES.to_vec())?;
        module.add("PACKET_ACTIONS", PacketAction::NAMES.to_vec())?;
        module.add("ENDS", End::NAMES.to_vec())?;
        module.add("CAUSES", SendCause::NAMES.to_vec())?;
        module.add("FATES", PacketFate::NAMES.to_vec())?;
        module.add("LIMITS", SendLimit::NAMES.to_vec())?;
        let py = module.py();
        let filled = Tables::TABLES.iter().chain(Totals::TABLES);
        module.add("DATASET_TABLES", tables(py, filled)?)?;
        module.add(
            "CAPTURE_TABLES",
            tables(py, captured::Tables::TABLES.iter())?,
        )?;
        module.add("CAPTURE_VANTAGES", captured::Vantage::NAMES.to_vec())?;
        module.add("CAPTURE_FATES", captured::Fate::NAMES.to_vec())?;
        module.add("CAPTURE_CAUSES", captured::RetransmitCause::NAMES.to_vec())?;
        module.add("CAPTURE_LIMITS", captured::Limit::NAMES.to_vec())?;
        module.add("CAPTURE_STALLS", captured::Stall::NAMES.to_vec())?;
        module.add("FLUID_LAWS", names(LAWS))?;
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
