//! Bulk transfers through one bottleneck: what `benchmarks/run.py` measures.
//!
//! ```text
//! bulk FLOWS RATE_BPS RTT_S DURATION_S [SAMPLE_INTERVAL_S [CONGESTION [QUEUE [PROCESSING]]]]
//! ```
//!
//! The same network as the peers' programs in `benchmarks/`: base RTTs from `RTT_S` to 1.1 × `RTT_S`,
//! a drop-tail queue of one bandwidth-delay product, packets of 1500 bytes, Reno with SACK,
//! timestamps and delayed ACKs, samples every 10 ms unless said otherwise. Another congestion control
//! and queue discipline, and what hosts take for a packet, are given as a plan has them, in JSON; `null` is the usual
//! queue, or no time. Prints one line of JSON on standard output.

use ackclock_core::Time;
use ackclock_plan::Plan;
use ackclock_sim::Simulation;
use serde_json::{json, Value};

mod parts;
use parts::{tcp, MSS_BYTES};

const WIRE_BYTES: u32 = 1500;

/// The largest base RTT is larger than the smallest by this share: equal RTTs flatter a simulator.
const RTT_SPREAD: f64 = 0.1;
const SAMPLE_INTERVAL_S: &str = "0.01";
const RENO: &str = r#"{ "kind": "reno", "parameters": { "slow_start": "standard" } }"#;
const USAGE: &str =
    "usage: bulk FLOWS RATE_BPS RTT_S DURATION_S [SAMPLE_INTERVAL_S [CONGESTION [QUEUE [PROCESSING]]]]";
/// The flows start within this time.
const START_SPREAD_S: f64 = 0.1;
/// Interval at which recorded rows are taken, as a program that stores them would.
const DRAIN_INTERVAL: Time = Time::from_milliseconds(100);

struct Workload {
    flows: u32,
    rate_bps: f64,
    rtt_s: f64,
    duration_s: f64,
    sample_interval_s: f64,
    congestion: Value,
    queue: Option<Value>,
    host_delay: Option<Value>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workload = Workload::from_arguments(std::env::args().skip(1))?;
    let packets = run(&workload)?;
    let capacity = workload.rate_bps * workload.duration_s / (8.0 * f64::from(WIRE_BYTES));
    let utilisation = if capacity > 0.0 {
        packets as f64 / capacity
    } else {
        0.0
    };
    let duration_s = workload.duration_s;
    println!(
        "{}",
        json!({ "data_packets": packets, "simulated_s": duration_s, "utilisation": utilisation })
    );
    Ok(())
}

impl Workload {
    fn from_arguments(
        arguments: impl Iterator<Item = String>,
    ) -> Result<Workload, Box<dyn std::error::Error>> {
        let arguments: Vec<String> = arguments.collect();
        let [flows, rate_bps, rtt_s, duration_s, further @ ..] = arguments.as_slice() else {
            return Err(USAGE.into());
        };
        let sample_interval_s = further.first().map_or(SAMPLE_INTERVAL_S, String::as_str);
        let congestion = further.get(1).map_or(RENO, String::as_str);
        let json = |at: usize| {
            further
                .get(at)
                .map_or(Ok(None), |text| serde_json::from_str(text))
        };
        Ok(Workload {
            flows: flows.parse()?,
            rate_bps: rate_bps.parse()?,
            rtt_s: rtt_s.parse()?,
            duration_s: duration_s.parse()?,
            sample_interval_s: sample_interval_s.parse()?,
            congestion: serde_json::from_str(congestion)?,
            queue: json(2)?,
            host_delay: json(3)?,
        })
    }

    fn plan(&self) -> serde_json::Result<Plan> {
        let limit = (self.rate_bps * self.rtt_s / (8.0 * f64::from(WIRE_BYTES))) as u32;
        let pfifo = json!({ "discipline": "pfifo", "parameters": { "limit_packets": limit } });
        let queue = self.queue.clone().unwrap_or(pfifo);
        let link = json!({
            "name": "bottleneck",
            "ends": null,
            "rate_bps": self.rate_bps,
            "delay_s": 0.0,
            "weight": 1.0,
            "burst_bytes": null,
            "frame_overhead_bytes": 0,
            "queue": queue,
            "loss": null, "medium": null, "trace": null,
            "bottleneck": true,
        });
        let mut tcp = tcp("on");
        tcp["processing"] = json!(self.host_delay);
        let flows: Vec<Value> = (0..self.flows).map(|flow| self.flow(flow)).collect();
        serde_json::from_value(json!({
            "duration_s": self.duration_s,
            "warmup_s": 0.0,
            "nodes": [],
            "links": [link],
            "routing": "single",
            "flowlet_gap_s": null,
            "changes": [],
            "groups": [{ "name": "bulk", "congestion": self.congestion, "tcp": tcp, "slow_reader": null, "writes": null, "misbehaviour": null, "dscp": 0 }],
            "flows": flows,
            "traffic": [],
            "datagrams": [],
            "record": {
                "interval_s": self.sample_interval_s,
                "packets": false,
                "pcap": false,
                "traffic": false,
                "all_links": true,
                "delays": false,
                "cubic_state": false,
                "paths": false,
            },
        }))
    }

    fn flow(&self, flow: u32) -> Value {
        let share = f64::from(flow) / f64::from(self.flows.max(2) - 1);
        let one_way_s = self.rtt_s * (1.0 + RTT_SPREAD * share) / 2.0;
        json!({
            "group": 0,
            "start_s": START_SPREAD_S * f64::from(flow) / f64::from(self.flows),
            "start_jitter_s": 0.0,
            "stop_s": null,
            "size_bytes": null,
            "request_bytes": null,
            "application_rate_bps": null,
            "priority": 0,
            "ends": null,
            "forward": { "hops": [{ "delay_s": 0.0, "link": 0 }], "delay_s": one_way_s },
            "reverse": { "hops": [], "delay_s": one_way_s },
        })
    }
}

/// Run the workload; returns the data packets delivered in order.
fn run(workload: &Workload) -> Result<u64, Box<dyn std::error::Error>> {
    let mut simulation = Simulation::new(&workload.plan()?, 1)?;
    let end = Time::from_seconds(workload.duration_s);
    let mut reached = Time::ZERO;
    while reached < end {
        reached = simulation.advance((reached + DRAIN_INTERVAL).min(end));
        std::hint::black_box(simulation.drain());
    }
    let delivered_bytes: u64 = simulation.finish().flows.delivered_bytes.iter().sum();
    Ok(delivered_bytes / u64::from(MSS_BYTES))
}
