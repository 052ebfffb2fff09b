//! Capture analysis for Python: files in, rows out on request; or only sums and top talkers.
//!
//! The interpreter is released while the analysis works. A panic in it becomes a `RuntimeError`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ackclock_analysis::analysis::{FileAnalysis, FileReport};
use ackclock_analysis::output::Options;
use ackclock_analysis::path::{Estimate, Limiter, Path};
use ackclock_analysis::tables::{Stall, Vantage};
use ackclock_analysis::top_talkers::TopTalkers;
use ackclock_analysis::udp;
use ackclock_pcap::filter::{Filter, FilterError};
use ackclock_pcap::packet::IcmpKind;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::columns;
use crate::congestion;
use crate::guard::guarded;

/// Captures under analysis.
#[pyclass(frozen, module = "ackclock._core")]
pub struct Capture {
    /// None after a panic, which leaves an inconsistent state.
    session: Mutex<Option<Session>>,
}

/// The analysis, and the sums and top talkers of the rows taken from it.
struct Session {
    file_analysis: FileAnalysis,
    top_talkers: TopTalkers,
}

#[pymethods]
impl Capture {
    /// Open files; `-` is standard input. Raises `ValueError` for an invalid filter. Files that cannot be read raise
    /// nothing: `files` reports the reason.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // what Python gives is owned
    #[pyo3(signature = (paths, filter="", interval_s=0.1, events=true, segments=false, max_connections=10_000))]
    fn new(
        paths: Vec<PathBuf>,
        filter: &str,
        interval_s: f64,
        events: bool,
        segments: bool,
        max_connections: usize,
    ) -> PyResult<Self> {
        let filter: Filter = filter
            .parse()
            .map_err(|error: FilterError| PyValueError::new_err(error.to_string()))?;
        let options = Options {
            interval_ns: (interval_s * 1e9) as i64,
            events,
            segments,
            ..Options::default()
        };
        Ok(Self {
            session: Mutex::new(Some(Session {
                file_analysis: FileAnalysis::filtered(&paths, filter, options),
                top_talkers: TopTalkers::new(max_connections),
            })),
        })
    }

    /// Analyse at most `segments` segments, without holding the interpreter; return false at the end.
    fn advance(&self, py: Python<'_>, segments: u64) -> PyResult<bool> {
        self.with(py, |session| session.file_analysis.advance(segments))
    }

    /// Take the accumulated rows: table name → column name → values.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = self.with(py, |session| {
            let tables = session.file_analysis.drain();
            session.top_talkers.take(&tables.flows, &tables.events);
            tables
        })?;
        columns::tables(py, tables.tables())
    }

    /// Advance and discard the rows, keeping the sums.
    fn skim(&self, py: Python<'_>, segments: u64) -> PyResult<bool> {
        self.with(py, |session| {
            let more = session.file_analysis.advance(segments);
            let tables = session.file_analysis.drain();
            session.top_talkers.take(&tables.flows, &tables.events);
            more
        })
    }

    /// Return sums over the directions of each vantage, for the rows taken so far.
    fn seen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let seen = self.with(py, |session| session.top_talkers.totals().to_vec())?;
        let list = PyList::empty(py);
        for (vantage, sums) in Vantage::NAMES.iter().zip(seen) {
            let entry = PyDict::new(py);
            entry.set_item("vantage", vantage)?;
            entry.set_item("directions", sums.directions)?;
            entry.set_item("payload_bytes", sums.payload_bytes)?;
            entry.set_item("delivered_bytes", sums.delivered_bytes)?;
            entry.set_item("lost", sums.lost)?;
            entry.set_item("unseen", sums.unseen)?;
            entry.set_item("not_captured", sums.not_captured)?;
            entry.set_item("data_segments", sums.data_segments)?;
            if sums.directions > 0 {
                list.append(entry)?;
            }
        }
        Ok(list)
    }

    /// Return the rows of the connections with the most data, with these columns, in the order of their numbers; None
    /// is an unknown value.
    #[allow(clippy::needless_pass_by_value)] // what Python gives is owned
    fn largest<'py>(&self, py: Python<'py>, columns: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        let flows = self.with(py, |session| session.top_talkers.rows())?;
        let found = flows.columns();
        let rows = found.first().map_or(0, |(_, first)| columns::length(first));
        let list: Vec<Bound<'py, PyDict>> = (0..rows).map(|_| PyDict::new(py)).collect();
        for name in &columns {
            let key = PyString::intern(py, name);
            let column = found.iter().find(|(own, _)| own == name);
            let Some((_, column)) = column else {
                return Err(PyValueError::new_err(format!("no column {name}")));
            };
            for (row, entry) in list.iter().enumerate() {
                entry.set_item(&key, columns::cell(py, column, row)?)?;
            }
        }
        PyList::new(py, list)
    }

    /// Return the stalls of those connections, in the order of time.
    fn top_talker_stalls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let stalls = self.with(py, |session| session.top_talkers.stalls())?;
        let list = PyList::empty(py);
        for stall in stalls {
            let entry = PyDict::new(py);
            entry.set_item("flow", stall.flow)?;
            entry.set_item("time_s", stall.time_s)?;
            entry.set_item("duration_s", stall.duration_s)?;
            entry.set_item("class", Stall::NAMES[usize::from(stall.class)])?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// Return the ICMP errors about connections, in the order of the flows: what was quoted, why, by whom and how often.
    fn icmp_reports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let reports = self.with(py, |session| session.file_analysis.analysis.icmp_reports())?;
        let list = PyList::empty(py);
        for report in reports {
            let entry = PyDict::new(py);
            entry.set_item("flow", report.flow)?;
            entry.set_item("kind", IcmpKind::NAMES[report.kind as usize])?;
            entry.set_item("reporter", report.reporter.to_string())?;
            entry.set_item("mtu", report.mtu)?;
            entry.set_item("errors", report.errors)?;
            entry.set_item("first_s", report.first_s)?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// Return the flows of UDP with the most bytes as JSON, and the sum of the others.
    fn udp(&self, py: Python<'_>, max_flows: usize) -> PyResult<String> {
        self.with(py, |session| {
            udp::report(session.file_analysis.analysis.udp(), max_flows).to_string()
        })
    }

    /// Return a report on each file so far.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let files = self.with(py, |session| session.file_analysis.files())?;
        let rows = files.iter().map(|file| report(py, file));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// Return what limits the path that carries most data, without holding the interpreter; None without data.
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.with(py, |session| session.file_analysis.path())?;
        found.map(|path| limited(py, &path)).transpose()
    }

    /// Identify the CCA of each finished flow with losses, the longest of them: its number → names, those of other
    /// candidates with the same windows, their probabilities, the most probable first, and the median relative error of
    /// their windows. Candidates are JSON: `[{"name", "parameters", "deployed"}]`. Raises `ValueError` for an invalid
    /// candidate.
    fn congestion(
        &self,
        py: Python<'_>,
        candidates: &str,
    ) -> PyResult<BTreeMap<u32, Vec<congestion::Named>>> {
        let candidates = congestion::candidates(candidates).map_err(PyValueError::new_err)?;
        self.with(py, |session| {
            let flows = &session.file_analysis.analysis.output.ack_traces.flows;
            flows
                .iter()
                .map(|flow| (flow.flow, congestion::ranked(flow, &candidates)))
                .collect()
        })
    }

    /// The number of flows that `congestion` identifies.
    #[getter]
    fn ranked(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |session| {
            session.file_analysis.analysis.output.ack_traces.flows.len()
        })
    }

    /// Return the bucket level of that path at a rate: the columns `time_s`, `level_bytes` and `lost`, thinned.
    fn levels<'py>(
        &self,
        py: Python<'py>,
        rate_bps: f64,
        most: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.with(py, |session| session.file_analysis.levels(rate_bps, most))?;
        let entry = PyDict::new(py);
        let seconds: Vec<f64> = found.iter().map(|at| at.time_ns as f64 * 1e-9).collect();
        entry.set_item("time_s", seconds)?;
        let levels: Vec<f64> = found.iter().map(|at| at.bytes).collect();
        entry.set_item("level_bytes", levels)?;
        let lost: Vec<bool> = found.iter().map(|at| at.lost).collect();
        entry.set_item("lost", lost)?;
        Ok(entry)
    }

    /// Connections so far.
    #[getter]
    fn connections(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |session| session.file_analysis.analysis.connections())
    }

    /// Open connections that were ended because memory was short; their rest counts as other connections.
    #[getter]
    fn evicted_connections(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |session| {
            session.file_analysis.analysis.evicted_connections()
        })
    }

    /// TCP segments so far, without those that were seen twice.
    #[getter]
    fn segments(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |session| session.file_analysis.analysis.segments())
    }

    /// Steps back of the capture's clock: their number, and their sum in seconds.
    #[getter]
    fn clock_steps(&self, py: Python<'_>) -> PyResult<(u64, f64)> {
        self.with(py, |session| session.file_analysis.analysis.clock_steps())
    }

    /// Segments whose times are 4.5 years or more from the first's.
    #[getter]
    fn clamped_timestamps(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |session| {
            session.file_analysis.analysis.clamped_timestamps()
        })
    }

    /// When the first segment was captured, in nanoseconds since 1970.
    #[getter]
    fn origin_ns(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |session| session.file_analysis.analysis.origin_ns())
    }

    /// The time from the first segment to the last, in seconds.
    #[getter]
    fn duration_s(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |session| session.file_analysis.analysis.duration_s())
    }
}

impl Capture {
    /// Call the analysis without holding the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Session) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut slot = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(session) = slot.as_mut() else {
                return Err("this analysis failed before and cannot go on".to_owned());
            };
            guarded(|| call(session)).inspect_err(|_| *slot = None)
        })
        .map_err(PyRuntimeError::new_err)
    }
}

fn limited<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("limiter", Limiter::NAMES[path.limiter as usize])?;
    let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
    for (name, interval, estimate, value) in [
        (
            "rate_bps",
            "rate_ci95",
            path.stated_rate_bps(),
            path.precise_rate_bps(),
        ),
        (
            "depth_bytes",
            "depth_ci95",
            path.depth_bytes,
            value(path.depth_bytes),
        ),
        (
            "burst_bytes",
            "burst_ci95",
            path.burst_bytes,
            value(path.burst_bytes),
        ),
    ] {
        entry.set_item(name, value)?;
        entry.set_item(
            interval,
            estimate.map(|estimate| vec![estimate.low, estimate.high]),
        )?;
    }
    entry.set_item("depth_is_minimum", path.is_depth_a_minimum)?;
    entry.set_item("queue_busy", path.evidence.busy)?;
    entry.set_item("losses_explained", path.evidence.explained)?;
    entry.set_item("queue_steady", path.evidence.steady)?;
    for (name, seconds) in [
        ("rtt_min_s", path.delay.map(|delay| delay.rtt_min_s)),
        ("rtt_median_s", path.delay.map(|delay| delay.rtt_median_s)),
        ("rtt_p95_s", path.delay.map(|delay| delay.rtt_p95_s)),
        (
            "standing_queue_s",
            path.delay.map(|delay| delay.min_queue_s),
        ),
    ] {
        entry.set_item(name, seconds)?;
    }
    Ok(entry)
}

fn report<'py>(py: Python<'py>, file: &FileReport) -> PyResult<Bound<'py, PyDict>> {
    let counts = &file.counts;
    let entry = PyDict::new(py);
    entry.set_item("path", file.path.to_string_lossy())?;
    entry.set_item("refused", file.is_unreadable)?;
    entry.set_item("note", file.note.as_deref())?;
    entry.set_item("dropped", file.dropped)?;
    for (name, count) in [
        ("packets", counts.packets),
        ("filtered", counts.filtered),
        ("segments", counts.segments),
        ("unknown_link", counts.unknown_link),
        ("not_ip", counts.not_ip),
        ("not_tcp", counts.not_tcp),
        ("datagrams", counts.datagrams),
        ("later_fragments", counts.later_fragments),
        ("cut", counts.cut),
        ("malformed", counts.malformed),
        ("bad_checksums", counts.bad_checksums),
        ("offloaded_checksums", counts.offloaded_checksums),
        ("super_segments", counts.super_segments),
        ("seen_before", counts.duplicate),
        ("without_time", counts.without_time),
        ("out_of_order_timestamps", counts.out_of_order_timestamps),
    ] {
        entry.set_item(name, count)?;
    }
    Ok(entry)
}
