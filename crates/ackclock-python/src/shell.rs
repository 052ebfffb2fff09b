//! The class `Bridge`: a simulation in real time between two TUN devices.

use std::fs::File;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use ackclock_core::Time;
use ackclock_linux::{Info, TcpSocket};
use ackclock_shell as shell;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::simulation::Simulation;

/// A thread that carries packets between TUN devices and a simulation, whose time is that of the clock.
#[pyclass(frozen, module = "ackclock._core")]
pub struct Bridge {
    running: Mutex<Option<shell::Bridge>>,
    /// Keys of the connections, which are known after the end, too.
    keys: shell::Keys,
    /// Names of the ends, by device.
    names: Vec<String>,
}

/// An end: its name, the descriptor of its device, its addresses, and the file of a capture.
type EndOfBridge = (String, i32, Vec<IpAddr>, Option<String>);

/// A relay: address, ports of TCP and UDP by version of IP, and the descriptor of its socket for ICMP.
type RelayOfBridge = (Vec<(IpAddr, u16, u16)>, i32);

#[pymethods]
impl Bridge {
    /// Begin. `ends` have a name, the file descriptor of a device, which is duplicated, addresses, and the file of a
    /// capture. `routes` are between two of them, by their numbers, the senders' end of the simulation's external
    /// flows first: of those the first, and that after the last. `relay` describes the relay for hosts that are no end:
    /// for each version of IP its address at the first end and the ports for TCP and UDP, and the file descriptor of a
    /// socket for its ICMP, which is duplicated. Raises `OSError`.
    #[new]
    #[pyo3(signature = (simulation, ends, routes, relay=None))]
    fn new(
        simulation: &Simulation,
        ends: Vec<EndOfBridge>,
        routes: Vec<(usize, usize, u32, u32)>,
        relay: Option<RelayOfBridge>,
    ) -> PyResult<Bridge> {
        let names = ends.iter().map(|(name, ..)| name.clone()).collect();
        let open = |(_, device, addresses, capture): EndOfBridge| -> PyResult<shell::Device> {
            Ok(shell::Device {
                tun: ackclock_linux::duplicate(device)?,
                addresses,
                capture: capture.map(File::create).transpose()?,
            })
        };
        let devices = ends.into_iter().map(open).collect::<PyResult<_>>()?;
        let route = |(sender, receiver, first, after)| shell::Route {
            ends: [sender, receiver],
            flows: first..after,
        };
        let routes = routes.into_iter().map(route).collect();
        let relay = relay
            .map(|(listeners, icmp)| -> PyResult<shell::Relay> {
                let listener = |(address, tcp_port, udp_port)| shell::Listener {
                    address,
                    ports: [tcp_port, udp_port],
                };
                Ok(shell::Relay {
                    listeners: listeners.into_iter().map(listener).collect(),
                    icmp: ackclock_linux::duplicate(icmp)?,
                })
            })
            .transpose()?;
        let bridge = shell::Bridge::start(simulation.shared(), devices, routes, relay)?;
        Ok(Bridge {
            keys: bridge.keys(),
            running: Mutex::new(Some(bridge)),
            names,
        })
    }

    /// Return true until the bridge has stopped, or has failed.
    fn is_running(&self) -> bool {
        let bridge = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        bridge.as_ref().is_some_and(shell::Bridge::is_running)
    }

    /// Return the thread's number in the system.
    fn thread_id(&self) -> PyResult<i32> {
        let bridge = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = || PyRuntimeError::new_err("this bridge was stopped before");
        bridge
            .as_ref()
            .map(shell::Bridge::thread_id)
            .ok_or_else(stopped)
    }

    /// Return the connections that have begun since the last call, without counts: flow, and by the name of each end
    /// the address and the port there.
    fn take_begun<'py>(&self, py: Python<'py>) -> PyResult<Vec<(u32, Bound<'py, PyDict>)>> {
        let bridge = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = bridge.as_ref().map(shell::Bridge::take_begun);
        let begun = begun.unwrap_or_default().into_iter();
        begun
            .map(|one| Ok((one.flow, ends(py, &one, &self.names)?)))
            .collect()
    }

    /// Return the original ends, outside and the program's, of the connection that has an address at the relay; None for
    /// any other address.
    fn relayed(&self, address: IpAddr) -> Option<[(String, u16); 2]> {
        let key = self.keys.relayed(address)?;
        Some([key.source, key.destination].map(|(address, port)| (address.to_string(), port)))
    }

    /// Stop, and return what was counted: lateness, connections, and packets that were not carried. Raises `OSError`
    /// if a device or a capture failed.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Other threads may look at it, and wait for Python, while this one waits for the bridge.
        let bridge = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(bridge) = bridge else {
            return Err(PyRuntimeError::new_err("this bridge was stopped before"));
        };
        let report = py
            .detach(|| bridge.stop())
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        counted(py, &report, &self.names)
    }
}

fn counted<'py>(
    py: Python<'py>,
    report: &shell::Report,
    names: &[String],
) -> PyResult<Bound<'py, PyDict>> {
    let lateness = PyDict::new(py);
    lateness.set_item("packets", report.lateness.packets())?;
    for (name, share) in [("p50_s", 0.5), ("p99_s", 0.99), ("p999_s", 0.999)] {
        let quantile = report.lateness.quantile(share);
        lateness.set_item(name, quantile.map(Time::seconds))?;
    }
    lateness.set_item("worst_s", report.lateness.worst().seconds())?;
    let connections = PyList::empty(py);
    for one in &report.connections {
        connections.append(connection(py, one, names)?)?;
    }
    let all = PyDict::new(py);
    all.set_item("lateness", lateness)?;
    all.set_item("connections", connections)?;
    all.set_item("unwritten_packets", report.unwritten)?;
    all.set_item("unknown_packets", report.unknown)?;
    Ok(all)
}

fn connection<'py>(
    py: Python<'py>,
    one: &shell::Connection,
    names: &[String],
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("flow", one.flow)?;
    row.set_item("protocol", one.key.protocol)?;
    row.set_item("start_s", one.start.seconds())?;
    row.set_item("last_s", one.last.seconds())?;
    row.set_item("is_closed", one.is_closed())?;
    row.set_item("is_rejected", one.is_rejected())?;
    let to = PyDict::new(py);
    let [sender, receiver] = one.ends.map(|end| names[end].as_str());
    for (name, counts) in [receiver, sender].into_iter().zip(&one.directions) {
        let direction = PyDict::new(py);
        direction.set_item("sent_packets", counts.sent_packets)?;
        direction.set_item("sent_bytes", counts.sent_bytes)?;
        direction.set_item("delivered_packets", counts.delivered_packets)?;
        direction.set_item("delivered_bytes", counts.delivered_bytes)?;
        direction.set_item("delay_mean_s", counts.delay_mean_s())?;
        to.set_item(name, direction)?;
    }
    row.set_item("ends", ends(py, one, names)?)?;
    row.set_item("to", to)?;
    Ok(row)
}

/// Return the address and the port at each end, by its name.
fn ends<'py>(
    py: Python<'py>,
    one: &shell::Connection,
    names: &[String],
) -> PyResult<Bound<'py, PyDict>> {
    let ends = PyDict::new(py);
    for (end, (address, port)) in one.ends.iter().zip([one.key.source, one.key.destination]) {
        ends.set_item(names[*end].as_str(), (address.to_string(), port))?;
    }
    Ok(ends)
}

/// Return the connected TCP sockets in messages of sock_diag(7): address and port here and there, the congestion control
/// algorithm (empty if it was not reported), and the kernel's statistics.
#[pyfunction]
pub fn tcp_sockets<'py>(py: Python<'py>, messages: &[u8]) -> PyResult<Vec<SocketRow<'py>>> {
    let row = |socket: TcpSocket| {
        let [here, there] = socket
            .ends
            .map(|(address, port)| (address.to_string(), port));
        Ok((
            here,
            there,
            socket.congestion,
            statistics(py, &socket.info)?,
        ))
    };
    ackclock_linux::tcp_sockets(messages)
        .into_iter()
        .map(row)
        .collect()
}

type SocketRow<'py> = ((String, u16), (String, u16), String, Bound<'py, PyDict>);

fn statistics<'py>(py: Python<'py>, info: &Info) -> PyResult<Bound<'py, PyDict>> {
    let seconds = |us: u64| us as f64 / 1e6;
    let row = PyDict::new(py);
    row.set_item("cwnd", info.cwnd)?;
    row.set_item("ssthresh", optional(info.ssthresh_p()))?;
    row.set_item("srtt_s", optional(info.srtt_s()))?;
    row.set_item("min_rtt_s", optional(info.min_rtt_s()))?;
    row.set_item("in_flight", info.in_flight())?;
    row.set_item("sent_bytes", info.bytes_sent)?;
    row.set_item("acknowledged_bytes", info.bytes_acked)?;
    row.set_item("sent_segments", info.segments_out)?;
    row.set_item("retransmissions", info.total_retransmissions)?;
    row.set_item("timeouts", info.timeouts)?;
    row.set_item("busy_s", seconds(info.busy_us))?;
    row.set_item("receive_window_limited_s", seconds(info.window_limited_us))?;
    row.set_item("send_buffer_limited_s", seconds(info.buffer_limited_us))?;
    Ok(row)
}

fn optional(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}
