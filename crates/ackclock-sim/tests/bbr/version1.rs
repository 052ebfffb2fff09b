//! Version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, Linux 6.1).

use ackclock_core::{Rate, Time};
use ackclock_plan::Plan;

use super::bottleneck::{bbr, run, sharing, Run, BDP, PACKETS_PER_S, RTT_MS};
use crate::kit::reno;

const DEEP: u32 = 1000;

fn seconds(seconds: u64) -> Time {
    Time::from_milliseconds(1000 * seconds)
}

fn single_flow(duration: Time) -> Plan {
    sharing(&[bbr()], DEEP, duration)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

// ---- startup and drain ----

/// Four rounds reach the pipe: windows of 10, 20, 40, 80 packets, with a BDP of 119. Three more without growth follow.
#[test]
fn startup_doubles_each_round_and_ends_three_rounds_after_the_pipe_is_full() {
    let run = run(&single_flow(seconds(2)), 1);
    let rtt_s = RTT_MS as f64 / 1000.0;
    let first = run.sending_rate(rtt_s, 0.6, rtt_s);
    for round in 1..4 {
        let growth = first[round] / first[round - 1];
        assert!((1.7..2.4).contains(&growth), "round {round}: {growth}");
    }
    // The rate is above the link's until Drain paces at 1/2.885 of it.
    let fine = run.sending_rate(0.0, 2.0, 0.025);
    let full = fine
        .iter()
        .position(|&rate| rate > 1.1)
        .expect("it fills the pipe");
    let drained = full
        + fine[full..]
            .iter()
            .position(|&rate| rate < 0.6)
            .expect("it drains");
    // Three rounds after the one that filled it; with the queue of Startup one takes up to 2.885 delays.
    let length_s = (drained - full) as f64 * 0.025;
    assert!(
        (3.0 * rtt_s..4.0 * 2.885 * rtt_s).contains(&length_s),
        "{length_s} s"
    );
}

#[test]
fn drain_leaves_no_queue() {
    let run = run(&single_flow(seconds(2)), 1);
    let most = run.samples.in_flight.iter().max().copied().unwrap_or(0);
    assert!(f64::from(most) > 2.0 * BDP, "Startup queues: {most}");
    let at = |from: f64, to: f64| {
        let rows = run.samples.time_s.iter().zip(&run.samples.in_flight);
        let within = rows.filter(|&(&time, _)| (from..to).contains(&time));
        within.map(|(_, &packets)| packets).min().unwrap_or(0)
    };
    // Room for three batches of two, and two for the sample's place within an ACK.
    assert!(f64::from(at(0.5, 1.2)) <= BDP + 8.0);
}

// ---- the gain cycle ----

#[test]
fn the_gain_cycle_is_one_probe_one_drain_and_six_delays_of_cruising() {
    let run = run(&single_flow(seconds(9)), 1);
    let rtt_s = RTT_MS as f64 / 1000.0;
    let paces = run.paces(2.0, 9.0);
    let inner = &paces[1..paces.len() - 1];
    assert!(inner.len() >= 3 * 14, "{} phases in 17 cycles", inner.len());
    // The phase, its gain, and how long it lasts in propagation delays. A probe ends when 1.25 BDP are in
    // flight, a drain when the BDP is; a cruise is six phases, each until the first ACK after its time. A pace is seen
    // from batch to batch, so a phase may look shorter by a batch of two segments.
    let batch = 2.0 / (PACKETS_PER_S * rtt_s);
    let expected = |gain: f64| match gain {
        gain if gain > 1.1 => (1.25, 1.0..2.0),
        gain if gain < 0.9 => (0.75, 0.1..1.1),
        _ => (1.0, 6.0 - batch..6.5),
    };
    for pair in inner.windows(2) {
        let (rate, at, length) = pair[0];
        let (gain, lengths) = expected(rate);
        assert!((rate / (0.99 * gain) - 1.0).abs() < 0.02, "{rate} at {at}");
        assert!(
            lengths.contains(&(length / rtt_s)),
            "{gain} at {at}: {length} s"
        );
        let before = match expected(pair[1].0) {
            (next, _) if next < 1.0 => 1.25,
            (next, _) if next > 1.0 => 1.0,
            _ => 0.75,
        };
        assert!(gain == before, "{gain} at {at} comes before {}", pair[1].0);
    }
}

/// While cruising it paces at 99 % of its estimate.
#[test]
fn the_bandwidth_is_estimated_within_2_percent() {
    let run = run(&single_flow(seconds(9)), 1);
    let rates = run.sending_rate(2.0, 9.0, 0.4032);
    let average = mean(&rates) / 0.99;
    assert!(
        (average - 1.0).abs() < 0.02,
        "whole cycles average 1: {average}"
    );
    let paces = run.paces(2.0, 9.0);
    let cruises = paces.iter().filter(|pace| (pace.0 - 1.0).abs() < 0.1);
    for (rate, at, _) in cruises {
        let estimate = rate / 0.99;
        assert!((estimate - 1.0).abs() < 0.02, "{estimate} at {at}");
    }
}

// ---- the delay ----

#[test]
fn each_ten_seconds_the_window_is_four_for_200_ms_and_a_round() {
    let run = run(&single_flow(seconds(45)), 1);
    let dips = run.dips(4.0, 1.0);
    assert_eq!(dips.len(), 4, "{dips:?}");
    for pair in dips.windows(2) {
        let period = pair[1].0 - pair[0].0;
        // A dip starts 10 s after the last one's smallest RTT or its end.
        assert!((10.0..10.6).contains(&period), "{period}");
    }
    for (_, length) in dips {
        // What is in flight drains for a round, then 200 ms pass.
        assert!((0.2..0.2 + 0.12).contains(&length), "{length}");
    }
}

#[test]
fn probe_rtt_drains_a_persistent_queue_of_other_flows() {
    let shared = run(&sharing(&[bbr(), bbr(), bbr()], DEEP, seconds(40)), 3);
    let bytes = &shared.totals.flows.delivered_bytes;
    let total: u64 = bytes.iter().sum();
    for &share in bytes {
        let share = share as f64 / total as f64;
        assert!((0.2..0.5).contains(&share), "{bytes:?}");
    }
}

// ---- losses ----

/// Cardwell et al. 2016, figure 8: 1 % of random loss costs BBR almost nothing and Reno nearly everything.
#[test]
fn one_percent_of_random_loss_does_not_slow_it_down() {
    let goodput = |congestion| {
        let mut plan = sharing(&[congestion], DEEP, seconds(20));
        let probability = 0.01;
        plan.links[0].loss = Some(ackclock_plan::LossPlan::Bernoulli { probability });
        let bytes = run(&plan, 5).totals.flows.delivered_bytes[0];
        bytes as f64 / (20.0 * 1000.0 * PACKETS_PER_S)
    };
    assert!(goodput(bbr()) > 0.9);
    assert!(goodput(reno()) < 0.3);
}

// ---- the application ----

/// A quarter of the link's rate.
#[test]
fn an_application_slower_than_the_path_gets_its_rate_and_no_queue() {
    let mut plan = single_flow(seconds(30));
    plan.flows[0].application_rate = Some(Rate::from_bits_per_second(5e6));
    let run = run(&plan, 1);
    let bits = 8.0 * run.totals.flows.delivered_bytes[0] as f64;
    assert!((bits / (30.0 * 5e6) - 1.0).abs() < 0.02, "{bits}");
    // What the application writes during a dip leaves in a burst afterwards, so there is a little.
    let sojourn_s = run.totals.links.sojourn_mean_s[0];
    assert!(sojourn_s < 0.002, "{sojourn_s}");
}

// ---- chance ----

fn starts(run: &Run) -> Vec<f64> {
    run.sending_rate(0.0, 3.0, 0.05)
}

#[test]
fn the_seed_and_nothing_else_decides_where_the_cycle_begins() {
    let plan = single_flow(seconds(3));
    assert_eq!(starts(&run(&plan, 1)), starts(&run(&plan, 1)));
    let different = (2..8).filter(|&seed| starts(&run(&plan, seed)) != starts(&run(&plan, 1)));
    assert!(different.count() >= 3, "seven phases to begin with");
}
