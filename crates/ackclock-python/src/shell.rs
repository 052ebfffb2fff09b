//! The class `Bridge`: a simulation in real time between two TUN devices.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use ackclock_core::Time;
use ackclock_shell as shell;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::simulation::Simulation;

/// Names of the two directions of a connection.
const DIRECTIONS: [&str; 2] = ["to_program", "to_peer"];

/// A thread that carries packets between two TUN devices and a simulation, whose time is that of the clock.
#[pyclass(frozen, module = "ackclock._core")]
pub struct Bridge(Mutex<Option<shell::Bridge>>);

#[pymethods]
impl Bridge {
    /// Begin. `devices` are those of the senders' and of the receivers' end: the file descriptor of a device, which
    /// is duplicated, and the file of a capture. `flows` are the simulation's external flows: the first, and that
    /// after the last. Raises `OSError`.
    #[new]
    fn new(
        simulation: &Simulation,
        devices: [(i32, Option<String>); 2],
        flows: (u32, u32),
    ) -> PyResult<Bridge> {
        let open = |(device, capture): (i32, Option<String>)| -> PyResult<shell::Device> {
            Ok(shell::Device {
                tun: ackclock_linux::duplicate(device)?,
                capture: capture.map(File::create).transpose()?,
            })
        };
        let [sender, receiver] = devices;
        let devices = [open(sender)?, open(receiver)?];
        let bridge = shell::Bridge::start(simulation.shared(), devices, flows.0..flows.1)?;
        Ok(Bridge(Mutex::new(Some(bridge))))
    }

    /// Return true until the bridge has stopped, or has failed.
    fn is_running(&self) -> bool {
        let bridge = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bridge.as_ref().is_some_and(shell::Bridge::is_running)
    }

    /// Return the thread's number in the system.
    fn thread_id(&self) -> PyResult<i32> {
        let bridge = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = || PyRuntimeError::new_err("this bridge was stopped before");
        bridge
            .as_ref()
            .map(shell::Bridge::thread_id)
            .ok_or_else(stopped)
    }

    /// Stop, and return what was counted: lateness, connections, and packets that were not carried. Raises `OSError`
    /// if a device or a capture failed.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut bridge = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bridge) = bridge.take() else {
            return Err(PyRuntimeError::new_err("this bridge was stopped before"));
        };
        let report = py
            .detach(|| bridge.stop())
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        counted(py, &report)
    }
}

fn counted<'py>(py: Python<'py>, report: &shell::Report) -> PyResult<Bound<'py, PyDict>> {
    let lateness = PyDict::new(py);
    lateness.set_item("packets", report.lateness.packets())?;
    for (name, share) in [("p50_s", 0.5), ("p99_s", 0.99), ("p999_s", 0.999)] {
        let quantile = report.lateness.quantile(share);
        lateness.set_item(name, quantile.map(Time::seconds))?;
    }
    lateness.set_item("worst_s", report.lateness.worst().seconds())?;
    let connections = PyList::empty(py);
    for one in &report.connections {
        connections.append(connection(py, one)?)?;
    }
    let all = PyDict::new(py);
    all.set_item("lateness", lateness)?;
    all.set_item("connections", connections)?;
    all.set_item("unwritten_packets", report.unwritten)?;
    all.set_item("unknown_packets", report.unknown)?;
    Ok(all)
}

fn connection<'py>(py: Python<'py>, one: &shell::Connection) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("flow", one.flow)?;
    row.set_item("protocol", one.key.protocol)?;
    for (name, (address, port)) in [("peer", one.key.source), ("program", one.key.destination)] {
        row.set_item(name, (address.to_string(), port))?;
    }
    row.set_item("start_s", one.start.seconds())?;
    for (name, counts) in DIRECTIONS.iter().zip(&one.directions) {
        let direction = PyDict::new(py);
        direction.set_item("sent_packets", counts.sent_packets)?;
        direction.set_item("sent_bytes", counts.sent_bytes)?;
        direction.set_item("delivered_packets", counts.delivered_packets)?;
        direction.set_item("delivered_bytes", counts.delivered_bytes)?;
        direction.set_item("delay_mean_s", counts.delay_mean_s())?;
        row.set_item(*name, direction)?;
    }
    Ok(row)
}
