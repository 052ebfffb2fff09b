//! Captures, analysed from Python: files in, rows out, as fast as they are asked for; or only what answers need of them.
//!
//! The interpreter is released while the analysis works. A panic in it becomes a `RuntimeError`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ackclock_capture::analysis::{FileReport, Reading};
use ackclock_capture::filter::{Filter, NoFilter};
use ackclock_capture::largest::Largest;
use ackclock_capture::path::{Limiter, Path};
use ackclock_capture::rows::Options;
use ackclock_capture::tables::{Stall, Vantage};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::columns;
use crate::congestion;
use crate::guard::guarded;

/// Captures under analysis.
#[pyclass(frozen, module = "ackclock._core")]
pub struct Capture {
    /// Empty after a panic: what was found is not to be trusted then.
    found: Mutex<Option<Found>>,
}

/// The analysis, and what answers need of the rows that were taken from it.
struct Found {
    reading: Reading,
    largest: Largest,
}

#[pymethods]
impl Capture {
    /// Opens files; `-` is standard input. `ValueError` says what is no filter; nothing is raised for files that cannot be
    /// read: `files` says why.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // what Python gives is owned
    #[pyo3(signature = (paths, filter="", interval_s=0.1, events=true, segments=false, most_flows=10_000))]
    fn new(
        paths: Vec<PathBuf>,
        filter: &str,
        interval_s: f64,
        events: bool,
        segments: bool,
        most_flows: usize,
    ) -> PyResult<Self> {
        let filter: Filter = filter
            .parse()
            .map_err(|refused: NoFilter| PyValueError::new_err(refused.to_string()))?;
        let options = Options {
            interval_ns: (interval_s * 1e9) as i64,
            events,
            segments,
            ..Options::default()
        };
        Ok(Self {
            found: Mutex::new(Some(Found {
                reading: Reading::open(&paths, options).only(filter),
                largest: Largest::new(most_flows),
            })),
        })
    }

    /// Takes in at most so many segments, without holding the interpreter; false when nothing is left.
    fn advance(&self, py: Python<'_>, segments: u64) -> PyResult<bool> {
        self.with(py, |found| found.reading.advance(segments))
    }

    /// Takes the rows that are there: table name → column name → values.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = self.with(py, |found| {
            let tables = found.reading.drain();
            found.largest.take(&tables.flows, &tables.events);
            tables
        })?;
        columns::tables(py, tables.tables())
    }

    /// The same as `advance` and `drain`, but that the rows are thrown away.
    fn skim(&self, py: Python<'_>, segments: u64) -> PyResult<bool> {
        self.with(py, |found| {
            let more = found.reading.advance(segments);
            let tables = found.reading.drain();
            found.largest.take(&tables.flows, &tables.events);
            more
        })
    }

    /// Sums over the directions that were seen from each vantage, of the rows that were taken.
    fn seen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let seen = self.with(py, |found| found.largest.seen().to_vec())?;
        let told = PyList::empty(py);
        for (vantage, sums) in Vantage::NAMES.iter().zip(seen) {
            let said = PyDict::new(py);
            said.set_item("vantage", vantage)?;
            said.set_item("directions", sums.directions)?;
            said.set_item("payload_bytes", sums.payload_bytes)?;
            said.set_item("delivered_bytes", sums.delivered_bytes)?;
            said.set_item("lost", sums.lost)?;
            said.set_item("capture_lost", sums.capture_lost)?;
            said.set_item("data_segments", sums.data_segments)?;
            if sums.directions > 0 {
                told.append(said)?;
            }
        }
        Ok(told)
    }

    /// Of the rows that were taken those of the connections with the most data, with these columns, in the order of their
    /// numbers; None is what is not known.
    #[allow(clippy::needless_pass_by_value)] // what Python gives is owned
    fn largest<'py>(&self, py: Python<'py>, columns: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        let flows = self.with(py, |found| found.largest.rows())?;
        let found = flows.columns();
        let rows = found.first().map_or(0, |(_, first)| columns::length(first));
        let told: Vec<Bound<'py, PyDict>> = (0..rows).map(|_| PyDict::new(py)).collect();
        for name in &columns {
            let key = PyString::intern(py, name);
            let column = found.iter().find(|(own, _)| own == name);
            let Some((_, column)) = column else {
                return Err(PyValueError::new_err(format!("no column {name}")));
            };
            for (row, said) in told.iter().enumerate() {
                said.set_item(&key, columns::cell(py, column, row)?)?;
            }
        }
        PyList::new(py, told)
    }

    /// The silences of those connections, in the order of time.
    fn largest_stalls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let stalls = self.with(py, |found| found.largest.stalls())?;
        let told = PyList::empty(py);
        for stall in stalls {
            let said = PyDict::new(py);
            said.set_item("flow", stall.flow)?;
            said.set_item("time_s", stall.time_s)?;
            said.set_item("duration_s", stall.duration_s)?;
            said.set_item("class", Stall::NAMES[usize::from(stall.class)])?;
            told.append(said)?;
        }
        Ok(told)
    }

    /// What is known of each file so far.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let files = self.with(py, |found| found.reading.files())?;
        let rows = files.iter().map(|file| report(py, file));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// What limits the path that carries most data, without holding the interpreter; None without data.
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.with(py, |found| found.reading.path())?;
        found.map(|path| limited(py, &path)).transpose()
    }

    /// Which congestion control each flow used that is over and lost anything, the longest of them: its number → names,
    /// those of others that did the same, their probabilities, the most probable first, and by what share their windows
    /// are off in half of the round trips or more. Candidates are JSON: `[{"name", "parameters", "deployed"}]`, the last
    /// says whether it is in use. Raises `ValueError` for what is none.
    fn congestion(
        &self,
        py: Python<'_>,
        candidates: &str,
    ) -> PyResult<BTreeMap<u32, Vec<congestion::Named>>> {
        let candidates = congestion::candidates(candidates).map_err(PyValueError::new_err)?;
        self.with(py, |found| {
            let flows = &found.reading.analysis.rows.steps.flows;
            flows
                .iter()
                .map(|flow| (flow.flow, congestion::ranked(flow, &candidates)))
                .collect()
        })
    }

    /// How many flows `congestion` tells of.
    #[getter]
    fn ranked(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |found| found.reading.analysis.rows.steps.flows.len())
    }

    /// What was above a rate on that path: the columns `time_s`, `level_bytes` and `lost`, thinned.
    fn levels<'py>(
        &self,
        py: Python<'py>,
        rate_bps: f64,
        most: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.with(py, |found| found.reading.levels(rate_bps, most))?;
        let said = PyDict::new(py);
        let seconds: Vec<f64> = found.iter().map(|at| at.time_ns as f64 * 1e-9).collect();
        said.set_item("time_s", seconds)?;
        let levels: Vec<f64> = found.iter().map(|at| at.bytes).collect();
        said.set_item("level_bytes", levels)?;
        let lost: Vec<bool> = found.iter().map(|at| at.lost).collect();
        said.set_item("lost", lost)?;
        Ok(said)
    }

    /// Connections so far.
    #[getter]
    fn connections(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |found| found.reading.analysis.connections())
    }

    /// Those of them that were open and were ended for want of memory: what went on of them counts as others.
    #[getter]
    fn cut_short(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |found| found.reading.analysis.cut_short())
    }

    /// TCP segments so far, without those that were seen twice.
    #[getter]
    fn segments(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |found| found.reading.analysis.segments())
    }

    /// Those of them whose times are 4.5 years or more from the first's.
    #[getter]
    fn far_off(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |found| found.reading.analysis.far_off())
    }

    /// When the first segment was captured, in nanoseconds since 1970.
    #[getter]
    fn origin_ns(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |found| found.reading.analysis.origin_ns())
    }

    /// How long after it the last one was.
    #[getter]
    fn duration_s(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |found| found.reading.analysis.duration_s())
    }
}

impl Capture {
    /// Calls the analysis without holding the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Found) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut slot = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(found) = slot.as_mut() else {
                return Err("this analysis failed before and cannot go on".to_owned());
            };
            guarded(|| call(found)).inspect_err(|_| *slot = None)
        })
        .map_err(PyRuntimeError::new_err)
    }
}

fn limited<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyDict>> {
    let said = PyDict::new(py);
    said.set_item("limiter", Limiter::NAMES[path.limiter as usize])?;
    for (name, interval, estimate) in [
        ("rate_bps", "rate_ci95", path.rate_bps),
        ("depth_bytes", "depth_ci95", path.depth_bytes),
        ("burst_bytes", "burst_ci95", path.burst_bytes),
    ] {
        said.set_item(name, estimate.map(|known| known.value))?;
        said.set_item(interval, estimate.map(|known| vec![known.low, known.high]))?;
    }
    said.set_item("depth_at_least", path.depth_at_least)?;
    for (name, seconds) in [
        ("rtt_min_s", path.delay.map(|delay| delay.rtt_min_s)),
        ("rtt_median_s", path.delay.map(|delay| delay.rtt_median_s)),
        ("rtt_p95_s", path.delay.map(|delay| delay.rtt_p95_s)),
        ("standing_s", path.delay.map(|delay| delay.standing_s)),
    ] {
        said.set_item(name, seconds)?;
    }
    Ok(said)
}

fn report<'py>(py: Python<'py>, file: &FileReport) -> PyResult<Bound<'py, PyDict>> {
    let counts = &file.counts;
    let said = PyDict::new(py);
    said.set_item("path", file.path.to_string_lossy())?;
    said.set_item("refused", file.refused)?;
    said.set_item("note", file.note.as_deref())?;
    said.set_item("dropped", file.dropped)?;
    for (name, count) in [
        ("packets", counts.packets),
        ("segments", counts.segments),
        ("unknown_link", counts.unknown_link),
        ("not_ip", counts.not_ip),
        ("not_tcp", counts.not_tcp),
        ("later_fragments", counts.later_fragments),
        ("cut", counts.cut),
        ("malformed", counts.malformed),
        ("bad_checksums", counts.bad_checksums),
        ("offloaded_checksums", counts.offloaded_checksums),
        ("super_segments", counts.super_segments),
        ("seen_before", counts.seen_before),
        ("without_time", counts.without_time),
        ("back_in_time", counts.back_in_time),
    ] {
        said.set_item(name, count)?;
    }
    Ok(said)
}
