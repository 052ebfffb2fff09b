//! Transfers between all hosts of a fat tree, each host sending to another one (a permutation).
//!
//! ```text
//! fat_tree [--ports 8] [--levels 3] [--rate_bps 1e9] [--delay_s 1e-6] [--bytes 0] [--duration_s 1] [--seed 1]
//!          [--threads 1] [--routing ecmp] [--congestion '{"kind": "reno", "parameters": { "slow_start": "standard" }}'] [--limit 100] [--delayed_ack on]
//! ```
//!
//! `--bytes 0`: transfers without end. Prints one line of JSON on standard output: packet-hops (packets of either
//! way whose transmission began), processor seconds of the run, packet-hops per processor second, the largest resident
//! memory, and the seconds that the network and its routing tables took to build. With several threads: seconds by the
//! clock, and the work of the windows ([`ackclock_sim::Work`]); processor seconds are those of the first thread. The
//! digest of all rows does not depend on the number of threads.

#[path = "../tests/kit/fat_tree.rs"]
#[allow(dead_code)] // tests ask a tree more
mod fat_tree;

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use ackclock_plan::Plan;
use ackclock_sim::Simulation;
use fat_tree::FatTree;
use serde_json::{json, Value};

mod parts;
use parts::tcp;

type Failure = Box<dyn std::error::Error>;

/// Interval at which recorded rows are taken, as a program that stores them would.
const DRAINS: u64 = 100;
const DEFAULTS: &[(&str, &str)] = &[
    ("ports", "8"),
    ("levels", "3"),
    ("rate_bps", "1e9"),
    ("delay_s", "1e-6"),
    ("bytes", "0"),
    ("duration_s", "1"),
    ("seed", "1"),
    ("threads", "1"),
    ("routing", "ecmp"),
    (
        "congestion",
        r#"{ "kind": "reno", "parameters": { "slow_start": "standard" } }"#,
    ),
    ("limit", "100"),
    ("delayed_ack", "on"),
];

fn main() -> Result<(), Failure> {
    let options = Options::from_arguments(std::env::args().skip(1))?;
    let tree = FatTree::new(
        options.number("ports")? as u32,
        options.number("levels")? as u32,
    );
    let plan = plan(&tree, &options)?;
    let start = Instant::now();
    let mut simulation = Simulation::new(&plan, options.number("seed")? as u64)?;
    let threads = options.number("threads")? as usize;
    if threads > 1 {
        simulation.enable_threads(threads)?;
    }
    let built_s = start.elapsed().as_secs_f64();
    let before_s = processor_s()?;
    let begin = Instant::now();
    let mut rows = Vec::new();
    for step in 1..=DRAINS {
        simulation.advance(plan.duration.scaled(step as f64 / DRAINS as f64));
        rows.push(simulation.drain());
    }
    let wall_s = begin.elapsed().as_secs_f64();
    let processor_s = processor_s()? - before_s;
    let totals = simulation.finish();
    let hops: u64 = totals.links.departed_total_p.iter().sum();
    let mut digest = DefaultHasher::new();
    format!("{rows:?}{totals:?}").hash(&mut digest);
    let work = simulation.work().unwrap_or_default();
    let delivered: u64 = totals.flows.delivered_bytes.iter().sum();
    let completed = totals
        .flows
        .end_s
        .iter()
        .filter(|end| !end.is_nan())
        .count();
    println!(
        "{}",
        json!({
            "hosts": tree.hosts(),
            "switches": tree.switches(),
            "links": plan.links.len(),
            "packet_hops": hops,
            "processor_s": processor_s,
            "packet_hops_per_s": hops as f64 / processor_s.max(1e-9),
            "peak_resident_bytes": peak_resident_bytes()?,
            "built_s": built_s,
            "delivered_bytes": delivered,
            "completed": completed,
            "wall_s": wall_s,
            "windows": work.windows,
            "events": work.events,
            "critical_events": work.critical_events,
            "digest": format!("{:016x}", digest.finish()),
            "dropped": totals.links.dropped_total_p.iter().sum::<u64>(),
        })
    );
    Ok(())
}

/// Options of the command line, with defaults.
struct Options(HashMap<String, String>);

impl Options {
    fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
        let defaults = DEFAULTS
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut options: HashMap<String, String> = defaults.collect();
        while let Some(name) = arguments.next() {
            let name = name.trim_start_matches("--").to_owned();
            let value = arguments
                .next()
                .ok_or_else(|| format!("--{name} needs a value"))?;
            match options.get_mut(&name) {
                Some(option) => *option = value,
                None => return Err(format!("no option --{name}").into()),
            }
        }
        Ok(Options(options))
    }

    fn text(&self, name: &str) -> &str {
        &self.0[name]
    }

    fn number(&self, name: &str) -> Result<f64, Failure> {
        Ok(self.text(name).parse()?)
    }
}

fn plan(tree: &FatTree, options: &Options) -> Result<Plan, Failure> {
    let nodes: Vec<Value> = (0..tree.nodes())
        .map(|node| json!({ "name": format!("n{node}"), "host": node < tree.hosts() }))
        .collect();
    let mut links = Vec::new();
    for (a, b) in tree.edges() {
        links.push(link(a, b, options)?);
        links.push(link(b, a, options)?);
    }
    let mut flows = Vec::new();
    for (source, destination) in
        (0..).zip(permutation(tree.hosts(), options.number("seed")? as u64))
    {
        flows.push(flow(source, destination, options)?);
    }
    let duration_s = options.number("duration_s")?;
    let congestion: Value = serde_json::from_str(options.text("congestion"))?;
    Ok(serde_json::from_value(json!({
        "duration_s": duration_s,
        "warmup_s": 0.0,
        "nodes": nodes,
        "links": links,
        "routing": options.text("routing"),
        "flowlet_gap_s": null,
        "changes": [],
        "groups": [{
            "name": "all",
            "congestion": congestion,
            "tcp": tcp(options.text("delayed_ack")),
            "slow_reader": null,
            "writes": null,
            "misbehaviour": null,
            "dscp": 0,
        }],
        "flows": flows,
            "traffic": [],
            "datagrams": [],
        "record": {
            "interval_s": duration_s / 10.0,
            "packets": false,
            "pcap": false,
            "traffic": false,
            "all_links": false,
            "delays": false,
            "cubic_state": false,
            "paths": false,
        },
    }))?)
}

fn link(source: u32, destination: u32, options: &Options) -> Result<Value, Failure> {
    let limit = options.number("limit")? as u32;
    Ok(json!({
        "name": format!("n{source}-n{destination}"),
        "ends": { "source": source, "destination": destination },
        "rate_bps": options.number("rate_bps")?,
        "delay_s": options.number("delay_s")?,
        "weight": 1.0,
        "burst_bytes": null,
        "frame_overhead_bytes": 0,
        "queue": { "discipline": "pfifo", "parameters": { "limit_packets": limit } },
        "loss": null, "medium": null, "trace": null,
        "bottleneck": false,
    }))
}

fn flow(source: u32, destination: u32, options: &Options) -> Result<Value, Failure> {
    let bytes = options.number("bytes")? as u64;
    Ok(json!({
        "group": 0,
        "start_s": 0.0,
        "start_jitter_s": 1e-4,
        "stop_s": null,
        "size_bytes": (bytes > 0).then_some(bytes),
        "request_bytes": null,
        "application_rate_bps": null,
        "priority": 0,
        "ends": { "source": source, "destination": destination },
        "forward": { "hops": [], "delay_s": 0.0 },
        "reverse": { "hops": [], "delay_s": 0.0 },
    }))
}

/// To whom each of `hosts` hosts sends: everyone to one other, everyone from one (Sattolo's algorithm).
fn permutation(hosts: u32, seed: u64) -> Vec<u32> {
    let mut slots: Vec<u32> = (0..hosts).collect();
    let mut state = seed;
    for last in (1..slots.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        slots.swap(last, (state >> 33) as usize % last);
    }
    slots
}

/// Processor time of this program so far, in seconds (`/proc/self/schedstat` counts nanoseconds).
fn processor_s() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}

fn peak_resident_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: u64 = line
        .unwrap_or("0 kB")
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(kibibytes * 1024)
}
