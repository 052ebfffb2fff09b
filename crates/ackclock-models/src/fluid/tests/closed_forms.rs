//! Runs compared with closed forms.

use super::*;

/// One Reno flow and next to no buffer: the window goes from half the pipe to the whole, three quarters on average.
/// It overshoots by the packet of the round trip in which the loss is detected.
#[test]
fn reno_without_a_buffer_fills_three_quarters() {
    let changes = json!({ "warmup_s": 200.0, "synchronisation": { "kind": "full" } });
    let plan = scenario(
        &[droptail(10_000.0, 1.0)],
        &[flow("reno", 0.1, 500.0)],
        1000.0,
        &changes,
    );
    let found = utilisation(&plan, &run_one(&plan));
    assert!((found - 0.75).abs() < 0.003, "{found}");
}

/// With a buffer of one bandwidth-delay product, half of the largest window still fills the pipe.
/// The queue, which grows by a packet in a round trip, is one packet behind the window; the window grows by
/// another in the round trip in which the loss is detected.
#[test]
fn reno_with_a_buffer_of_one_pipe_fills_the_link() {
    let changes =
        json!({ "warmup_s": 400.0, "synchronisation": { "kind": "full" }, "interval_s": 0.05 });
    let plan = scenario(
        &[droptail(10_000.0, 1000.0)],
        &[flow("reno", 0.1, 500.0)],
        1200.0,
        &changes,
    );
    let outcome = run_one(&plan);
    assert!(utilisation(&plan, &outcome) > 0.9999);
    let most = outcome
        .flow_samples
        .cwnd
        .iter()
        .copied()
        .fold(0.0, f64::max);
    assert!((most - 2002.0).abs() < 0.01, "{most}");
}

/// A window of W packets with the queue not empty grows by 1 in R = W/C: W² = W_0² + 2 C t.
#[test]
fn reno_grows_with_the_root_of_time_while_the_queue_grows() {
    let changes = json!({ "interval_s": 10.0 });
    let plan = scenario(
        &[droptail(10_000.0, 1e6)],
        &[flow("reno", 0.1, 1000.0)],
        100.0,
        &changes,
    );
    let samples = run_one(&plan).flow_samples;
    for (time_s, window_p) in samples.time_s.iter().zip(&samples.cwnd) {
        let expected = (1000.0_f64.powi(2) + 2.0 * 10_000.0 * time_s).sqrt();
        assert!(
            (window_p - expected).abs() < 2e-3 * expected,
            "{time_s}: {window_p} {expected}"
        );
    }
}

#[test]
fn slow_start_doubles_in_each_round_trip() {
    let changes = json!({ "slow_start": true, "interval_s": 0.1 });
    let plan = scenario(
        &[droptail(1e6, 1e6)],
        &[flow("reno", 0.1, 10.0)],
        0.55,
        &changes,
    );
    let windows = run_one(&plan).flow_samples.cwnd;
    assert!((windows[5] - 320.0).abs() < 0.01 * 320.0, "{windows:?}");
}

/// Without synchronisation the windows slide along AR = C, whatever the buffer: once filled, the link stays full.
#[test]
fn the_smooth_form_fills_the_link_with_any_buffer() {
    for law in ["reno", "highspeed", "cubic", "htcp"] {
        let start_s = if law == "reno" { 1000.0 } else { 200.0 };
        let changes = json!({ "synchronisation": { "kind": "none" }, "warmup_s": start_s });
        let plan = kumar(law, 0.01, 2.0 * start_s, &changes);
        let found = utilisation(&plan, &run_one(&plan));
        assert!(found >= 0.986, "{law}: {found}");
    }
}

/// Smooth losses under RED: a = W² b k, so that Reno's window is √(2/k) and the average is where the share k = 2p/(1 +
/// p) is dropped.
#[test]
fn reno_under_red_balances_growth_and_loss() {
    let red = json!({ "kind": "red", "limit_p": 4000.0, "min_p": 100.0, "max_p": 2100.0,
        "probability": 0.0001, "weight": 0.001, "gentle": false });
    let links = [json!({ "rate_p_s": 10_000.0, "queue": red })];
    let flows = [flow("reno", 0.1, 200.0), flow("reno", 0.1, 300.0)];
    let changes = json!({ "synchronisation": { "kind": "none" }, "interval_s": 400.0 });
    let outcome = run_one(&scenario(&links, &flows, 400.0, &changes));
    // N √(2/k) = C T/(1 − k) + q with p = 1e-4 (q − 100)/2000, by bisection.
    let excess = |q: f64| {
        let p = 0.0001 * (q - 100.0) / 2000.0;
        let k = 2.0 * p / (1.0 + p);
        2.0 * (2.0 / k).sqrt() - (1000.0 + q) / (1.0 - k)
    };
    let (mut low, mut high) = (101.0, 2100.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if excess(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let found = outcome
        .queue_samples
        .backlog_p
        .last()
        .copied()
        .expect("a sample");
    assert!((found - low).abs() < 0.01 * low, "{found} {low}");
}

/// With events, RED's early drops are single ones: a Poisson process of each flow.
#[test]
fn early_drops_are_single() {
    let red = json!({ "kind": "red", "limit_p": 20_000.0, "min_p": 100.0, "max_p": 10_000.0,
        "probability": 0.002, "weight": 0.001, "gentle": false });
    let links = [json!({ "rate_p_s": 10_000.0, "queue": red })];
    let flows = [flow("reno", 0.1, 200.0), flow("reno", 0.1, 300.0)];
    let outcome = run_one(&scenario(&links, &flows, 400.0, &json!({})));
    assert!(
        outcome.epochs.time_s.is_empty(),
        "the queue never overflows"
    );
    assert!(outcome.events.time_s.len() > 40);
    let expected = outcome.links.dropped_total_p[0];
    let kinds = outcome.events.kind.iter();
    let drops: f64 = kinds
        .map(|&kind| f64::from(kind == EventKind::Drop as u8))
        .sum();
    // Drops within a round trip of a reduction are not counted: fewer, not many fewer.
    assert!(
        (0.6 * expected..1.25 * expected).contains(&drops),
        "{drops} of {expected}"
    );
}

/// FAST converges to alpha packets of each flow in the queue.
#[test]
fn fast_keeps_alpha_packets_per_flow_in_equilibrium() {
    let flows = [flow("fast", 0.05, 10.0), flow("fast", 0.1, 10.0)];
    let changes = json!({ "interval_s": 60.0 });
    let outcome = run_one(&scenario(
        &[droptail(5000.0, 500.0)],
        &flows,
        60.0,
        &changes,
    ));
    let waiting = outcome
        .queue_samples
        .backlog_p
        .last()
        .copied()
        .expect("a sample");
    assert!((waiting - 40.0).abs() < 0.1, "{waiting}");
}

/// Two links in series: the slower one is full, the faster one empty; what it delivers is the slower one's rate.
#[test]
fn of_two_links_the_slower_one_queues() {
    for rates in [[2000.0, 1000.0], [1000.0, 2000.0]] {
        let mut long = flow("reno", 0.1, 90.0);
        long["path"] = json!([0, 1]);
        let links = rates.map(|rate_p_s| droptail(rate_p_s, 100.0));
        let plan = scenario(&links, &[long], 300.0, &json!({ "warmup_s": 50.0 }));
        let outcome = run_one(&plan);
        let slower = usize::from(rates[1] < rates[0]);
        let sent = |link: usize| outcome.links.departed_p[link];
        assert!(
            (sent(slower) / 250_000.0 - 1.0).abs() < 0.001,
            "{}",
            sent(slower)
        );
        assert!((sent(0) - sent(1) - outcome.links.dropped_p[1]).abs() < 200.0);
        assert!(outcome.links.backlog_mean_p[slower] > 30.0);
        assert_eq!(outcome.links.backlog_mean_p[1 - slower], 0.0);
    }
}

/// A flow over two full links, each shared with a flow of its own, gets less than either: the parking lot.
#[test]
fn the_long_flow_of_a_parking_lot_gets_the_smallest_rate() {
    let mut flows = [
        flow("reno", 0.1, 50.0),
        flow("reno", 0.1, 50.0),
        flow("reno", 0.1, 50.0),
    ];
    flows[0]["path"] = json!([0, 1]);
    flows[2]["path"] = json!([1]);
    let links = [droptail(1000.0, 20.0), droptail(1000.0, 20.0)];
    let plan = scenario(&links, &flows, 500.0, &json!({ "warmup_s": 100.0 }));
    let delivered = run_one(&plan).flows.measured_delivered_p;
    assert!(
        delivered[0] < 0.8 * delivered[1] && delivered[0] < 0.8 * delivered[2],
        "{delivered:?}"
    );
}

#[test]
fn flows_begin_and_end_at_their_times() {
    let mut flows = [flow("reno", 0.1, 50.0), flow("reno", 0.1, 50.0)];
    flows[1]["start_s"] = json!(10.0);
    flows[1]["start_jitter_s"] = json!(5.0);
    flows[1]["stop_s"] = json!(40.0);
    let plan = scenario(
        &[droptail(1000.0, 50.0)],
        &flows,
        60.0,
        &json!({ "interval_s": 0.1 }),
    );
    let outcome = run_one(&plan);
    let samples = &outcome.flow_samples;
    let times = samples
        .time_s
        .iter()
        .zip(&samples.flow)
        .filter(|(_, flow)| **flow == 1);
    let times: Vec<f64> = times.map(|(time_s, _)| *time_s).collect();
    let (first, last) = (times[0], times[times.len() - 1]);
    assert!(
        (10.0..15.1).contains(&first) && (first - outcome.flows.start_s[1]) < 0.11,
        "{first}"
    );
    assert!((39.8..=40.0).contains(&last), "{last}");
    assert_eq!(outcome.flows.end_s[1], 40.0);
    assert!(outcome.flows.end_s[0].is_nan());
}

/// A window that may not grow beyond M sends M/T and never fills the queue; what it delivers between two samples is
/// M/T times the time between them, wherever the samples fall within the steps.
#[test]
fn the_largest_window_holds() {
    let mut small = flow("cubic", 0.1, 10.0);
    small["largest_window"] = json!(50.0);
    let changes = json!({ "warmup_s": 50.0, "interval_s": 0.013 });
    let plan = scenario(&[droptail(1000.0, 50.0)], &[small], 100.0, &changes);
    let outcome = run_one(&plan);
    assert!((utilisation(&plan, &outcome) - 0.5).abs() < 1e-9);
    assert!(outcome.events.time_s.is_empty());
    let delivered = &outcome.flow_samples.delivered_p;
    for pair in delivered[delivered.len() / 2..].windows(2) {
        assert!((pair[1] - pair[0] - 500.0 * 0.013).abs() < 1e-6, "{pair:?}");
    }
}

/// With every other packet dropped early, a flow detects a loss immediately, reduces a round trip later, and is deaf
/// for one more: two round trips at least from one reduction to the next.
#[test]
fn losses_within_a_round_trip_of_a_reduction_do_not_count() {
    let red = json!({ "kind": "red", "limit_p": 20_000.0, "min_p": 1e-9, "max_p": 2e-9,
        "probability": 0.5, "weight": 1.0, "gentle": true });
    let links = [json!({ "rate_p_s": 1000.0, "queue": red })];
    let flows = [flow("reno", 0.1, 500.0), flow("reno", 0.1, 500.0)];
    let outcome = run_one(&scenario(&links, &flows, 20.0, &json!({})));
    let rows = &outcome.events;
    let cuts: Vec<f64> = (0..rows.time_s.len())
        .filter(|&row| rows.kind[row] == EventKind::Recovery as u8 && rows.flow[row] == 0)
        .map(|row| rows.time_s[row])
        .collect();
    assert!(cuts.len() > 3);
    let apart = cuts.windows(2).map(|pair| pair[1] - pair[0]);
    let least = apart.fold(f64::INFINITY, f64::min);
    assert!((0.2..0.25).contains(&least), "{least}");
}

/// A Reno flow alone overflows by the packet that its window grows by in a round trip, and is cut once either way. One
/// of HighSpeed TCP's at 8000 packets grows by some thirty, and each of them cuts.
#[test]
fn each_lost_packet_reduces_the_window_if_configured() {
    let of = |law: &str, cuts: &str| {
        let changes =
            json!({ "warmup_s": 100.0, "synchronisation": { "kind": "full" }, "cuts": cuts });
        let flows = [flow(law, 0.1, 4000.0)];
        let plan = scenario(&[droptail(80_000.0, 100.0)], &flows, 600.0, &changes);
        utilisation(&plan, &run_one(&plan))
    };
    assert!((of("reno", "packets") - of("reno", "once")).abs() < 0.01);
    assert!(of("highspeed", "packets") < 0.8 * of("highspeed", "once"));
}
