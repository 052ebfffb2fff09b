//! Costs of the fluid engine: one run, a grid of runs, and runs at several rates; prints JSON.
//!
//! The set-up is that of Kumar, Azad and Park 2010: 10 flows with RTTs of 80 to 260 ms through 10 Gb/s, for 100 s.
//!
//! ```text
//! cargo run --release -p ackclock-models --example fluid_grid -- one 10e9       # rate in bit/s
//! cargo run --release -p ackclock-models --example fluid_grid -- grid 1000 2    # runs, threads
//! ```

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ackclock_models::fluid::{run, run_many, Plan};
use serde_json::{json, Value};

const FLOWS: u32 = 10;
const DURATION_S: f64 = 100.0;
const PACKET_BITS: f64 = 8.0 * 1500.0;
/// The largest buffer of the paper, as the time that it takes to send it.
const BUFFER_S: f64 = 0.17;
const LAWS: [&str; 4] = ["highspeed", "cubic", "reno", "htcp"];
/// The cost of a run is the mean of so many: the processor's time is counted in steps of some milliseconds.
const REPEATS: u32 = 50;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| given.get(place).and_then(|text| text.parse::<f64>().ok());
    let found = match (given.first().map(String::as_str), number(1)) {
        (Some("one"), Some(rate_bps)) => one(rate_bps),
        (Some("grid"), Some(runs)) => grid(runs as usize, number(2).unwrap_or(1.0) as usize),
        _ => panic!("expected: one RATE_BPS, or grid RUNS THREADS"),
    };
    println!("{found}");
}

/// Milliseconds of the processor for one run, by law.
fn one(rate_bps: f64) -> Value {
    let of_law = |law: &&str| {
        let plan = plan(rate_bps, law, 0.1, 0.3);
        let before_s = processor_s();
        for _ in 0..REPEATS {
            run(&plan, 1).expect("an outcome");
        }
        let cost_ms = 1e3 * (processor_s() - before_s) / f64::from(REPEATS);
        ((*law).to_owned(), json!(cost_ms))
    };
    let costs: serde_json::Map<_, _> = LAWS.iter().map(of_law).collect();
    json!({ "simulated_s": DURATION_S, "run_ms": costs })
}

/// Seconds of the processor that this thread has used (Linux); else wall-clock time.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|first| first.parse::<f64>().ok());
    let wall_s = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64())
    };
    nanoseconds.map_or_else(wall_s, |nanoseconds| nanoseconds / 1e9)
}

/// Wall-clock seconds of a grid of buffer, X and law in one call.
fn grid(runs: usize, threads: usize) -> Value {
    let per_law = runs.div_ceil(LAWS.len() * 2);
    let points = (0..runs).map(|number| {
        let (law, high) = (LAWS[number % LAWS.len()], number / LAWS.len() % 2 == 1);
        let buffer = 0.005 + 0.4 * (number / (2 * LAWS.len())) as f64 / per_law as f64;
        (
            plan(10e9, law, buffer, if high { 0.6 } else { 0.3 }),
            number as u64,
        )
    });
    let (wall_s, packets) = timed(&points.collect::<Vec<_>>(), threads);
    json!({ "runs": runs, "threads": threads, "simulated_s": DURATION_S, "wall_s": wall_s, "data_packets": packets })
}

/// Seconds that the runs take, and the packets that they sent.
fn timed(plans: &[(Plan, u64)], threads: usize) -> (f64, f64) {
    let started = Instant::now();
    let outcomes = run_many(plans, threads, |_| true)
        .expect("plans")
        .expect("outcomes");
    let wall_s = started.elapsed().as_secs_f64();
    (
        wall_s,
        outcomes
            .iter()
            .map(|outcome| outcome.links.departed_total_p[0])
            .sum(),
    )
}

fn plan(rate_bps: f64, law: &str, buffer: f64, least: f64) -> Plan {
    let rate_p_s = rate_bps / PACKET_BITS;
    let parameters = json!({
        "c": 0.4, "beta": 0.8, "fast_convergence": true, "reno_friendly": true, "reno_catch_up": false,
        "slow_start": "standard", "adaptive_backoff": true, "bandwidth_switch": false, "rtt_scaling": false,
    });
    let flow = |number: u32| {
        let rtt_s = 0.08 + 0.02 * f64::from(number);
        json!({
            "path": [0], "base_rtt_s": rtt_s, "start_s": 0.0, "start_jitter_s": 0.0, "stop_s": null,
            "initial_window": rate_p_s * rtt_s / f64::from(2 * FLOWS), "largest_window": null,
            "law": law, "parameters": parameters,
        })
    };
    let plan = json!({
        "duration_s": DURATION_S, "warmup_s": 0.0, "step_s": null, "interval_s": null, "slow_start": false,
        "links": [{ "rate_p_s": rate_p_s, "queue": { "kind": "droptail", "limit_p": BUFFER_S * rate_p_s * buffer } }],
        "flows": (0..FLOWS).map(flow).collect::<Vec<_>>(),
        "synchronisation": { "kind": "normal", "least": least, "mean": null, "sd": 1.5 },
        "loss_assignment": { "kind": "rate" }, "cuts": "once",
    });
    Plan::from_json(&plan.to_string()).expect("a plan")
}
