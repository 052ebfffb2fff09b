//! Many short transfers through one link: what a transfer costs.
//!
//! ```text
//! transfers NUMBER [SEGMENTS]
//! ```
//!
//! Poisson arrivals at half the capacity of a link of 10 Gbit/s, 100 paths of 2 to 4 ms, CUBIC's place taken by
//! Reno. Prints one line of JSON on standard output.

use ackclock_core::tables::Flows;
use ackclock_core::Time;
use ackclock_plan::Plan;
use ackclock_sim::Simulation;
use serde_json::{json, Value};

mod parts;
use parts::{tcp, MSS_BYTES};

const WIRE_BYTES: u32 = 1500;

const RATE_BPS: f64 = 1e10;
const PATHS: u32 = 100;
const USAGE: &str = "usage: transfers NUMBER [SEGMENTS]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let number: u32 = arguments.next().ok_or(USAGE)?.parse()?;
    let segments: u32 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let plan = plan(number, segments)?;
    let mut simulation = Simulation::new(&plan, 1)?;
    let (mut reached, mut counts) = (Time::ZERO, Counts::default());
    while reached < plan.duration {
        reached = simulation.advance((reached + Time::from_milliseconds(100)).min(plan.duration));
        std::hint::black_box(simulation.drain());
        counts.add(&simulation.take_ended());
    }
    counts.add(&simulation.finish().flows);
    let Counts {
        transfers,
        complete,
        packets,
    } = counts;
    println!(
        "{}",
        json!({ "transfers": transfers, "complete": complete, "packets": packets })
    );
    Ok(())
}

/// Counts of transfers.
#[derive(Default)]
struct Counts {
    transfers: usize,
    complete: usize,
    packets: u64,
}

impl Counts {
    fn add(&mut self, flows: &Flows) {
        self.transfers += flows.flow.len();
        self.complete += flows.end_s.iter().filter(|end_s| end_s.is_finite()).count();
        self.packets += flows.sent_packets.iter().sum::<u64>();
    }
}

fn plan(number: u32, segments: u32) -> serde_json::Result<Plan> {
    let bits = 8.0 * f64::from(segments * WIRE_BYTES);
    let per_s = 0.5 * RATE_BPS / bits;
    let seconds = f64::from(number) / per_s;
    let paths: Vec<Value> = (0..PATHS).map(path).collect();
    serde_json::from_value(json!({
        "duration_s": seconds + 5.0,
        "warmup_s": 0.0,
        "nodes": [],
        "links": [{
            "name": "bottleneck",
            "ends": null,
            "rate_bps": RATE_BPS,
            "delay_s": 0.0,
            "weight": 1.0,
            "burst_bytes": null,
            "frame_overhead_bytes": 0,
            "queue": { "discipline": "pfifo", "parameters": { "limit_packets": 1000 } },
            "loss": null, "medium": null, "trace": null,
            "bottleneck": true,
        }],
        "routing": "single",
        "flowlet_gap_s": null,
        "changes": [],
        "groups": [{
            "name": "short",
            "congestion": { "kind": "reno", "parameters": { "slow_start": "standard" } },
            "tcp": tcp("on"),
            "slow_reader": null,
            "writes": null,
            "misbehaviour": null,
            "dscp": 0,
        }],
        "flows": [],
        "traffic": [{
            "group": 0,
            "priority": 0,
            "request_bytes": null,
            "application_rate_bps": null,
            "population": { "kind": "paths", "paths": paths },
            "workload": {
                "start_s": 0.0,
                "stop_s": seconds,
                "arrivals": { "kind": "poisson", "per_s": per_s },
                "size": { "kind": "fixed", "bytes": segments * MSS_BYTES },
            },
        }],
        "datagrams": [],
        "record": {
            "interval_s": 0.1,
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

fn path(path: u32) -> Value {
    let one_way_s = 0.001 * (1.0 + f64::from(path) / f64::from(PATHS));
    json!({
        "forward": { "hops": [{ "delay_s": 0.0, "link": 0 }], "delay_s": one_way_s },
        "reverse": { "hops": [], "delay_s": one_way_s },
    })
}
