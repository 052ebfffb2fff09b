//! The class `Simulation`: a run of the packet engine, driven from Python.
//!
//! The interpreter is released while the engine works, so seeds run in parallel on Python threads.
//! A panic in the engine becomes a `RuntimeError`, and the simulation refuses further calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_packet::plan::Plan;
use ackclock_packet::record::{
    Events, FlowSamples, Flows, Links, Packets, QueueSamples, Tables, Totals,
};
use ackclock_packet::Simulation as Engine;
use ackclock_units::Time;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::columns::columns;
use crate::guard::guarded;

/// Most events between two looks at the outside world.
const MOST_EVENTS: u32 = 2_000_000;

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
    engine: Mutex<Option<Engine>>,
}

#[pymethods]
impl Simulation {
    /// Sets a run up; raises `ValueError` if the plan cannot be run.
    #[new]
    fn new(py: Python<'_>, plan_json: &str, seed: u64) -> PyResult<Simulation> {
        let engine = py
            .detach(|| guarded(|| engine(plan_json, seed)))
            .map_err(failure)?;
        let engine = engine.map_err(PyValueError::new_err)?;
        Ok(Simulation {
            engine: Mutex::new(Some(engine)),
        })
    }

    /// Simulates up to `until_s` seconds, or the end of the plan; returns the time reached.
    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<f64> {
        let until = time(until_s)?;
        self.with(py, |engine| engine.advance(until).seconds())
    }

    /// As `advance`, but stops after some tenths of a second's work. Returns the time reached and whether
    /// that is all.
    fn advance_some(&self, py: Python<'_>, until_s: f64) -> PyResult<(f64, bool)> {
        let until = time(until_s)?;
        self.with(py, |engine| {
            let all = engine.advance_within(until, MOST_EVENTS);
            (engine.now().seconds(), all)
        })
    }

    /// Takes the rows recorded since the last call.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables(py, self.with(py, Engine::drain)?)
    }

    /// Takes the `flows` and `links` tables, and the last rows of the others.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (totals, rows) = self.with(py, |engine| (engine.finish(), engine.drain()))?;
        let Totals { flows, links } = totals;
        let result = tables(py, rows)?;
        result.set_item("flows", flow_columns(py, flows)?)?;
        result.set_item("links", link_columns(py, links)?)?;
        Ok(result)
    }

    /// Takes the capture (pcap) written since the last call.
    fn capture<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, Engine::take_capture)?))
    }
}

impl Simulation {
    /// Calls the engine without holding the interpreter. The lock is taken and given back inside, so
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
            guarded(|| call(engine)).inspect_err(|_| *slot = None)
        })
        .map_err(failure)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn engine(plan_json: &str, seed: u64) -> Result<Engine, String> {
    let plan: Plan = serde_json::from_str(plan_json).map_err(|error| format!("plan: {error}"))?;
    Engine::new(&plan, seed).map_err(|error| format!("plan: {error}"))
}

fn failure(message: String) -> PyErr {
    PyRuntimeError::new_err(message)
}

fn tables(py: Python<'_>, rows: Tables) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("flow_samples", flow_sample_columns(py, rows.flow_samples)?)?;
    result.set_item(
        "queue_samples",
        queue_sample_columns(py, rows.queue_samples)?,
    )?;
    result.set_item("events", event_columns(py, rows.events)?)?;
    result.set_item("packets", packet_columns(py, rows.packets)?)?;
    Ok(result)
}

columns!(
    flow_sample_columns,
    FlowSamples {
        time_s,
        flow,
        cwnd,
        ssthresh,
        srtt_s,
        in_flight,
        delivered_bytes,
    }
);
columns!(
    queue_sample_columns,
    QueueSamples {
        time_s,
        link,
        backlog_p,
        backlog_bytes,
        sojourn_s,
        departures_p,
        drops_p,
        marks_p,
        utilisation,
    }
);
columns!(
    event_columns,
    Events {
        time_s,
        flow,
        link,
        kind,
        value
    }
);
columns!(
    packet_columns,
    Packets {
        time_s,
        flow,
        link,
        kind,
        sequence,
        wire_bytes,
        what
    }
);
columns!(
    flow_columns,
    Flows {
        flow,
        group,
        source_node,
        destination_node,
        base_rtt_s,
        size_bytes,
        start_s,
        established_s,
        end_s,
        completion_s,
        delivered_bytes,
        measured_bytes,
        sent_packets,
        sent_bytes,
        received_packets,
        dropped_packets,
        retransmissions,
        timeouts,
        syn_retransmissions,
        recoveries,
        tail_probes,
        measured_sent_packets,
        measured_retransmissions,
        measured_timeouts,
        delay_mean_s,
    }
);
columns!(
    link_columns,
    Links {
        link,
        name,
        bottleneck,
        rate_bps,
        arrived_p,
        dropped_p,
        lost_p,
        marked_p,
        departed_p,
        departed_bytes,
        busy_s,
        empty_s,
        backlog_mean_p,
        backlog_mean_bytes,
        sojourn_mean_s,
        sojourn_max_s,
        sojourn_edges_s,
        sojourn_counts,
        arrived_total_p,
        dropped_total_p,
        lost_total_p,
        departed_total_p,
    }
);
