//! The host that this runs on: its clock.

use std::time::Duration;

use ackclock_linux::gaps::{Gap, Kind, Watch};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Monitor of this host's clocks: a wake-up later than its period by more than `least_s` is a gap.
///
/// Raises `OSError` if the kernel does not permit it, `ValueError` for an invalid time.
#[pyclass(module = "ackclock._core")]
pub struct ClockWatch(Watch);

#[pymethods]
impl ClockWatch {
    #[new]
    #[pyo3(signature = (*, period_s, least_s))]
    fn new(period_s: f64, least_s: f64) -> PyResult<ClockWatch> {
        let watch = Watch::new(seconds("period_s", period_s)?, seconds("least_s", least_s)?);
        let watch = watch.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(ClockWatch(watch))
    }

    /// Watch for a while, without holding the interpreter: column name → values, a row for each gap.
    fn watch<'py>(&mut self, py: Python<'py>, for_s: f64) -> PyResult<Bound<'py, PyDict>> {
        let time = seconds("for_s", for_s)?;
        let gaps = py.detach(|| self.0.watch(time));
        columns(py, &gaps)
    }

    /// The monotonic and the wall clock at the last wake-up, in seconds.
    #[getter]
    fn clocks_s(&self) -> (f64, f64) {
        let (monotonic_ns, wall_ns) = self.0.clocks_ns();
        (1e-9 * monotonic_ns as f64, 1e-9 * wall_ns as f64)
    }

    /// Return true if the machine has a counter that continues while its clocks are stopped.
    #[getter]
    fn has_counter(&self) -> bool {
        self.0.has_counter()
    }
}

fn columns<'py>(py: Python<'py>, gaps: &[Gap]) -> PyResult<Bound<'py, PyDict>> {
    let in_seconds = |of: fn(&Gap) -> i64| -> Vec<f64> {
        gaps.iter().map(|gap| 1e-9 * of(gap) as f64).collect()
    };
    let classes: Vec<_> = gaps
        .iter()
        .map(|gap| Kind::CODES[gap.kind as usize])
        .collect();
    let named = PyDict::new(py);
    named.set_item("start_s", in_seconds(|gap| gap.start_ns))?;
    named.set_item("wall_s", in_seconds(|gap| gap.wall_ns))?;
    named.set_item("duration_s", in_seconds(|gap| gap.duration_ns))?;
    named.set_item("class", classes)?;
    named.set_item("waited_s", in_seconds(|gap| gap.waited_ns))?;
    named.set_item("stolen_s", in_seconds(|gap| gap.stolen_ns))?;
    named.set_item("stepped_s", in_seconds(|gap| gap.stepped_ns))?;
    named.set_item("clock_stopped_s", in_seconds(|gap| gap.clock_stopped_ns))?;
    Ok(named)
}

fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!("{name}: found {value}; expected a time in seconds"))
    })
}
