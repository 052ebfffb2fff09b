//! Random draws of a plan before a run: start times of flows, transfers, departures of datagrams, and paths.
//!
//! For engines that take each flow as input, so that they have the same draws as those that draw themselves.

use ackclock_core::tables::{Cell, Columns, NamedTables};
use ackclock_core::Time;
use ackclock_plan::{DatagramPlan, EndsPlan, Plan, SourcePlan};
use ackclock_sim::routing::Routing;
use ackclock_traffic::{generate, start_draw, Departures, Ends, Generated, Start};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::tables;
use crate::guard::guarded;

/// A missing number of a node, a path or a gate.
const NONE: u32 = u32::MAX;

ackclock_core::tables::table! {
    /// Generated transfers; those that wait for a gate have no start.
    Transfers {
        traffic: u32,
        start_s: f64,
        size_bytes: u64,
        path: u32,
        source: u32,
        destination: u32,
        waits: u32,
        completes: u32,
    }
}

ackclock_core::tables::table! {
    /// A condition that transfers wait for.
    Gates { awaits: u32, delay_s: f64, stop_s: f64 }
}

ackclock_core::tables::table! {
    /// The links of each routed flow's two ways, by the flow's number: the plan's flows, UDP sources, transfers.
    Ways { forward: Vec<u64>, reverse: Vec<u64> }
}

/// Return the random draws of a plan (JSON) with a seed: `flows` with `start_s`, `transfers`, `gates`, `datagrams` with
/// `departures_s`, and `ways`, which has rows only where there are nodes.
///
/// A flow without routing, or whose packets draw their own paths, has an empty row. `size_bytes` is 0 for an endless
/// transfer; a missing number is 2³² − 1. Raises `ValueError` for a plan that cannot be run.
#[pyfunction]
pub fn drawn<'py>(py: Python<'py>, plan_json: &str, seed: u64) -> PyResult<Bound<'py, PyDict>> {
    let draws = py.detach(|| guarded(|| draw_plan(plan_json, seed)));
    let draws = draws.and_then(|inner| inner);
    tables(py, draws.map_err(PyValueError::new_err)?)
}

fn draw_plan(plan_json: &str, seed: u64) -> Result<NamedTables, String> {
    let plan: Plan = serde_json::from_str(plan_json).map_err(|error| format!("plan: {error}"))?;
    let (mut transfers, mut gates) = (Transfers::default(), Gates::default());
    for (index, traffic) in plan.traffic.iter().enumerate() {
        let (population, number) = (traffic.population(), index as u64);
        let made = generate(&traffic.workload, population, plan.duration, seed, number);
        let made = made.map_err(|error| format!("traffic {index}: {error}"))?;
        add(&mut transfers, &mut gates, index as u32, &made);
    }
    let ways = ways(&plan, seed, &transfers);
    Ok(vec![
        ("flows", column("start_s", starts_s(&plan, seed))),
        ("transfers", transfers.columns()),
        ("gates", gates.columns()),
        ("ways", ways.columns()),
        (
            "datagrams",
            column("departures_s", departures_s(&plan, seed)),
        ),
    ])
}

fn column<T: Cell>(name: &'static str, values: Vec<T>) -> Columns {
    vec![(name, T::column(values))]
}

fn starts_s(plan: &Plan, seed: u64) -> Vec<f64> {
    let flows = plan.flows.iter().enumerate();
    flows
        .map(|(number, flow)| {
            let late = flow.start_jitter.scaled(start_draw(seed, number as u64));
            (flow.start + late).seconds()
        })
        .collect()
}

fn add(transfers: &mut Transfers, gates: &mut Gates, traffic: u32, made: &Generated) {
    let first = gates.awaits.len() as u32;
    for transfer in &made.transfers {
        let (start_s, waits) = match transfer.start {
            Start::At(time) => (time.seconds(), NONE),
            Start::Gate(gate) => (f64::NAN, first + gate),
        };
        let (path, [source, destination]) = ends(transfer.ends);
        transfers.traffic.push(traffic);
        transfers.start_s.push(start_s);
        transfers.size_bytes.push(transfer.size_bytes.unwrap_or(0));
        transfers.path.push(path);
        transfers.source.push(source);
        transfers.destination.push(destination);
        transfers.waits.push(waits);
        let completes = transfer.completes.map_or(NONE, |gate| first + gate);
        transfers.completes.push(completes);
    }
    for gate in &made.gates {
        gates.awaits.push(gate.awaits);
        gates.delay_s.push(gate.delay.seconds());
        gates.stop_s.push(made.stop.seconds());
    }
}

/// Return the paths that the packet engine's hashes choose.
fn ways(plan: &Plan, seed: u64, transfers: &Transfers) -> Ways {
    let mut ways = Ways::default();
    if plan.nodes.is_empty() {
        return ways;
    }
    let mut routing = Routing::new(plan, seed);
    let of_transfers = transfers.source.iter().zip(&transfers.destination);
    let of_transfers = of_transfers.map(|(&source, &destination)| {
        (source != NONE).then_some(EndsPlan {
            source,
            destination,
        })
    });
    let of_flows = plan.flows.iter().map(|flow| flow.ends);
    let of_streams = plan.datagrams.iter().map(|source| source.ends);
    for (number, ends) in of_flows.chain(of_streams).chain(of_transfers).enumerate() {
        let number = number as u32;
        let forward = ends.and_then(|ends| routing.forward_path(number, ends));
        let both = ends.and_then(|ends| routing.paths_of(number, ends));
        let (forward, both) = (forward.unwrap_or_default(), both.unwrap_or_default());
        let (forward, reverse) = both.split_at(forward.len().min(both.len()));
        ways.forward.push(numbers(forward));
        ways.reverse.push(numbers(reverse));
    }
    ways
}

fn numbers(links: &[u32]) -> Vec<u64> {
    links.iter().copied().map(u64::from).collect()
}

fn ends(ends: Ends) -> (u32, [u32; 2]) {
    match ends {
        Ends::Path(path) => (path, [NONE; 2]),
        Ends::Nodes {
            source,
            destination,
        } => (NONE, [source, destination]),
    }
}

fn departures_s(plan: &Plan, seed: u64) -> Vec<Vec<f64>> {
    let sources = plan.datagrams.iter().enumerate();
    sources
        .map(|(number, source)| source_departures_s(source, plan.duration, seed, number as u64))
        .collect()
}

/// Return the departures of a UDP source until the end of the run. A delay-controlled source keeps its initial rate,
/// since it gets no feedback here. Those of real-time media depend on feedback and are not returned.
fn source_departures_s(source: &DatagramPlan, duration: Time, seed: u64, number: u64) -> Vec<f64> {
    let stop = source.stop.map_or(duration, |stop| stop.min(duration));
    let SourcePlan::Scheduled(schedule) = &source.source else {
        return Vec::new();
    };
    let mut left = Departures::new(schedule, source.start, Some(stop), seed, number);
    let mut times_s = Vec::new();
    while !left.next().is_never() {
        let now = left.next();
        times_s.push(now.seconds());
        left.sent(now);
    }
    times_s
}
