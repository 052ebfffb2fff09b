//! DCTCP behind a queue that marks above a threshold, besides the analysis of its paper.
//!
//! M. Alizadeh et al.: Data Center TCP (DCTCP), SIGCOMM 2010, section 3.3, for one flow. A segment leaves each
//! millisecond and the RTT without queue is 100 ms, so C × RTT = 100 segments.

use std::sync::Arc;

use ackclock_core::tables::Totals;
use ackclock_core::Time;
use ackclock_plan::{CongestionPlan, EcnMode, FlowPlan, LinkPlan, QueuePlan, Reduction, TcpPlan};
use ackclock_sim::Simulation;
use serde_json::json;

use crate::kit::{data, flow, link, linux, ms, path, plan, Conversation};

const PIPE: f64 = 100.0;
const UNTIL_S: u64 = 120;
/// Slow start and the convergence of α from 1, 16 windows or so of 10 RTTs.
const CONVERGED_S: u64 = 40;

fn dctcp(reduction: Reduction) -> FlowPlan {
    let tcp = TcpPlan {
        ecn: EcnMode::Dctcp,
        recovery_reduction: reduction,
        ..linux()
    };
    FlowPlan {
        congestion: Arc::new(CongestionPlan {
            kind: "dctcp".to_owned(),
            parameters: json!({ "shift_g": 4, "initial_alpha": 1.0, "clamp_alpha_on_loss": false }),
        }),
        ..flow(tcp)
    }
}

/// State of the queue in equilibrium.
struct QueueState {
    /// Most waiting.
    max: f64,
    /// Its least length in a cycle, from marks to marks, averaged over the cycles.
    min: f64,
    /// Share of the segments that were marked.
    marked: f64,
    /// Share of the link that was used.
    used: f64,
}

fn measure(reduction: Reduction, threshold: u32) -> QueueState {
    let mut tcp = Conversation::new(&dctcp(reduction), ms(50))
        .spaced(ms(1))
        .marking_above(threshold);
    tcp.run(ms(1000 * UNTIL_S));
    let settled = |measure: &&(Time, u32)| measure.0 >= ms(1000 * CONVERGED_S);
    let waiting: Vec<u32> = tcp
        .waiting()
        .iter()
        .filter(settled)
        .map(|measure| measure.1)
        .collect();
    let segments = waiting.len() as f64;
    let marked = waiting.iter().filter(|&&ahead| ahead > threshold).count();
    let minima: Vec<f64> = waiting
        .split(|&ahead| ahead > threshold)
        .filter(|cycle| cycle.len() > PIPE as usize)
        .filter_map(|cycle| cycle.iter().min().copied().map(f64::from))
        .collect();
    QueueState {
        max: waiting.iter().copied().max().map_or(0.0, f64::from),
        min: minima.iter().sum::<f64>() / minima.len() as f64,
        marked: marked as f64 / segments,
        used: segments / (1000.0 * (UNTIL_S - CONVERGED_S) as f64),
    }
}

/// Equation 6: α²(1 − α/4) = (2W* + 1)/(W* + 1)² with W* = C × RTT + K, solved by iteration.
fn alpha(threshold: f64) -> f64 {
    let w = PIPE + threshold;
    let right = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    (0..50).fold(right.sqrt(), |alpha, _| {
        (right / (1.0 - alpha / 4.0)).sqrt()
    })
}

#[test]
fn the_marked_share_is_the_papers_alpha() {
    // In the steady state α does not change, so F equals it on average: √(2/W*) = 0.13 for K = 20.
    for threshold in [20, 40, 80] {
        let expected = alpha(f64::from(threshold));
        let found = measure(Reduction::Immediate, threshold).marked;
        assert!((expected - (2.0 / (PIPE + f64::from(threshold))).sqrt()).abs() < 0.01);
        assert!(
            (found / expected - 1.0).abs() < 0.2,
            "K = {threshold}: {found}, {expected}"
        );
    }
}

#[test]
fn the_queue_swings_below_the_threshold_by_the_papers_amplitude() {
    // Equations 8 to 11 for N = 1: Q_max = K + 1, A = ½ √(2 (C × RTT + K)). The paper takes α as constant. With a
    // finite g it rises by g (1 − α) in the window that is marked and decays until the next cut, which is taken
    // at its low: W* (α − g (1 − α)/2)/2.
    for threshold in [20, 40, 80] {
        let k = f64::from(threshold);
        let amplitude = 0.5 * (2.0 * (PIPE + k)).sqrt();
        let low = alpha(k) - (1.0 - alpha(k)) / 16.0 / 2.0;
        let at_the_low = (PIPE + k) * low / 2.0;
        let measure = measure(Reduction::Immediate, threshold);
        assert!(
            (measure.max - (k + 1.0)).abs() <= 1.0,
            "K = {k}: at most {}",
            measure.max
        );
        let found = measure.max - measure.min;
        assert!(
            (0.65..=1.1).contains(&(found / amplitude)),
            "K = {k}: {found}, {amplitude}"
        );
        assert!(
            (found - at_the_low).abs() <= 1.0,
            "K = {k}: {found}, {at_the_low}"
        );
    }
}

#[test]
fn reducing_over_a_round_trip_widens_the_oscillation() {
    // The paper's window falls immediately. PRR spreads the fall over a round trip, in which the queue is still above
    // the threshold for a while: those marks call for a second reduction after the first.
    for threshold in [20, 40, 80] {
        let [at_once, spread] = [Reduction::Immediate, Reduction::Prr].map(|reduction| {
            let measure = measure(reduction, threshold);
            measure.max - measure.min
        });
        assert!(
            1.2 * at_once < spread && spread < 2.0 * at_once,
            "{at_once}, {spread}"
        );
    }
}

#[test]
fn a_threshold_above_a_seventh_of_the_pipe_keeps_the_link_full() {
    // Equation 13: K > C × RTT/7.
    let above = measure(Reduction::Prr, 15).used;
    assert!(above > 0.9999, "{above}");
    let below = measure(Reduction::Prr, 3).used;
    assert!(below < 0.999, "{below}");
}

#[test]
fn a_loss_halves_where_marks_would_take_little() {
    // RFC 8257 section 3.5: a segment is lost once α has come down to 0.13.
    let mut tcp = Conversation::new(&dctcp(Reduction::Prr), ms(50))
        .spaced(ms(1))
        .marking_above(20)
        .losing([data(40_000)]);
    tcp.run(ms(39_000));
    let before = tcp.sender.cwnd();
    while tcp.sender.counters.recoveries == 0 {
        tcp.step();
    }
    let after = tcp.sender.ssthresh();
    assert!(before > 100.0, "{before}");
    assert!((50.0..=62.0).contains(&after), "{after}");
}

// ---- several flows behind RED that marks above a threshold ----

/// Full segments with timestamps: 8 Mbit/s carry 950 of 1052 bytes in a second.
const SEGMENT_BYTES: u64 = 1052;
const PIPE_OF_LINK: f64 = 8e6 * 0.1 / 8.0 / 1052.0;

/// Mark each arrival that finds more than `threshold` segments (the average is the present queue).
fn step(threshold: u64) -> QueuePlan {
    QueuePlan {
        discipline: "red".to_owned(),
        parameters: json!({
            "limit_bytes": 1_000_000,
            "min_bytes": threshold * SEGMENT_BYTES,
            "max_bytes": threshold * SEGMENT_BYTES + 1,
            "avpkt_bytes": 1000,
            "burst_packets": null,
            "weight": 1.0,
            "probability": 1.0,
            "bandwidth_bps": null,
            "ecn": true,
            "harddrop": false,
            "nodrop": false,
            "adaptive": false,
            "gentle": false,
            "wait": false,
            "spare_empty": false,
            "bytes": true,
            "weighted": false,
        }),
    }
}

fn several(flows: u64, threshold: u64) -> (Totals, f64) {
    let one = |index: u64| FlowPlan {
        start: ms(13 * index),
        forward: path(ms(50), &[0]),
        reverse: path(ms(50), &[]),
        ..dctcp(Reduction::Immediate)
    };
    let bottleneck = LinkPlan {
        queue: step(threshold),
        ..link(8e6, 1)
    };
    let mut plan = plan(ms(220_000), vec![bottleneck], (0..flows).map(one).collect());
    plan.warmup = ms(20_000);
    plan.record.packets = false;
    let mut simulation = Simulation::new(&plan, 1).expect("the kit's plans are sound");
    simulation.advance(plan.duration);
    let max = simulation.drain().queue_samples.backlog_p;
    let settled = &max[max.len() / 10..];
    let max = settled.iter().copied().max().map_or(0.0, f64::from);
    (simulation.finish(), max)
}

#[test]
fn several_flows_keep_the_papers_queue_and_share_alike() {
    // Equations 8 to 12: Q_max = K + N, Q_min = K + N − A with A = ½ √(2 N (C × RTT + K)); α ≈ √(2/W*) with
    // W* = (C × RTT + K)/N.
    for (flows, threshold) in [(2_u64, 40_u64), (4, 40), (8, 60)] {
        let (n, k) = (flows as f64, threshold as f64);
        let (totals, max) = several(flows, threshold);
        let marked = totals.links.marked_p[0] as f64 / totals.links.departed_p[0] as f64;
        let expected = (2.0 * n / (PIPE_OF_LINK + k)).sqrt();
        let amplitude = 0.5 * (2.0 * n * (PIPE_OF_LINK + k)).sqrt();
        let mean = totals.links.backlog_mean_p[0];
        assert!(
            (marked / expected - 1.0).abs() < 0.08,
            "{n}: {marked}, {expected}"
        );
        assert!((max - (k + n)).abs() <= 2.0, "{n}: {max}");
        let middle = k + n - amplitude / 2.0;
        assert!((mean - middle).abs() < 3.0, "{n}: {mean}, {middle}");
        assert!(totals.links.empty_s[0] < 0.01, "the link is kept full");
        let bytes: Vec<f64> = totals
            .flows
            .measured_bytes
            .iter()
            .map(|&bytes| bytes as f64)
            .collect();
        let squares: f64 = bytes.iter().map(|bytes| bytes * bytes).sum();
        let jain = bytes.iter().sum::<f64>().powi(2) / (n * squares);
        assert!(jain > 0.95, "{n}: {jain}");
    }
}
