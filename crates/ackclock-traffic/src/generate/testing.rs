//! Shared helpers of the workload tests.

use serde_json::{json, Value};

use super::*;

/// A workload from 1 s to the end.
pub fn workload(arrivals: &Value, size: &Value) -> Workload {
    let plan = json!({ "start_s": 1, "stop_s": null, "arrivals": arrivals, "size": size });
    serde_json::from_value(plan).expect("a workload")
}

/// Always 1000 bytes.
pub fn fixed() -> Value {
    json!({ "kind": "fixed", "bytes": 1000 })
}

/// Generate a workload with seed 7 among paths.
pub fn among(paths: u32, workload: &Workload, duration_s: f64) -> Result<Generated, WorkloadError> {
    let population = Population::Paths(paths);
    generate(workload, population, Time::from_seconds(duration_s), 7, 0)
}

/// When each transfer begins if each takes so long; `None`: never. Gates behave as [`crate::Gate`] documents.
pub fn played(made: &Generated, takes: Time) -> Vec<Option<Time>> {
    let mut begins = vec![None; made.transfers.len()];
    let mut left: Vec<u32> = made.gates.iter().map(|gate| gate.awaits).collect();
    let mut waiting = vec![Vec::new(); made.gates.len()];
    let mut ready = Vec::new();
    for (index, transfer) in made.transfers.iter().enumerate() {
        match transfer.start {
            Start::At(time) => ready.push((time, index)),
            Start::Gate(gate) => waiting[gate as usize].push(index),
        }
    }
    while !ready.is_empty() {
        ready.sort_unstable();
        let (time, index) = ready.remove(0);
        begins[index] = Some(time);
        let Some(gate) = made.transfers[index].completes else {
            continue;
        };
        left[gate as usize] -= 1;
        let opens = time + takes + made.gates[gate as usize].delay;
        if left[gate as usize] == 0 && opens < made.stop {
            ready.extend(waiting[gate as usize].iter().map(|&index| (opens, index)));
        }
    }
    begins
}

/// The times of those that begin at a time, in seconds.
pub fn times_s(made: &Generated) -> Vec<f64> {
    let time_s = |transfer: &Transfer| match transfer.start {
        Start::At(time) => Some(time.seconds()),
        Start::Gate(_) => None,
    };
    made.transfers.iter().filter_map(time_s).collect()
}
