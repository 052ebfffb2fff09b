//! Version 3 (draft-ietf-ccwg-bbr-06).

use ackclock_core::Time;

use super::bottleneck::{bbr, bbr3, run, sharing, Run, BDP, PACKETS_PER_S};
use crate::kit::{cubic, reno};

fn seconds(seconds: u64) -> Time {
    Time::from_milliseconds(1000 * seconds)
}

fn single_flow(limit_packets: u32, duration_s: u64) -> Run {
    run(&sharing(&[bbr3()], limit_packets, seconds(duration_s)), 1)
}

#[test]
fn probes_are_two_to_three_seconds_apart() {
    // Without dips, each of which starts the wait anew.
    let mut patient = bbr3();
    patient.parameters["probe_rtt_interval_s"] = 1000.0.into();
    let run = run(&sharing(&[patient], 1000, seconds(60)), 1);
    let paces = run.paces(3.0, 60.0);
    let probes: Vec<f64> = paces
        .iter()
        .filter(|pace| pace.0 > 1.15)
        .map(|pace| pace.1)
        .collect();
    assert!(probes.len() >= 15, "{probes:?}");
    let gaps: Vec<f64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The wait runs from the end of a probe of three to five rounds, and ends with a round of REFILL.
    assert!(gaps.iter().all(|gap| (2.2..3.6).contains(gap)), "{gaps:?}");
    let spread = gaps
        .iter()
        .fold(0.0_f64, |most, gap| most.max((gap - gaps[0]).abs()));
    assert!(spread > 0.2, "chance has a say: {gaps:?}");
}

#[test]
fn a_cycle_paces_at_5_quarters_then_9_tenths_then_the_bandwidth() {
    let mut patient = bbr3();
    patient.parameters["probe_rtt_interval_s"] = 1000.0.into();
    let run = run(&sharing(&[patient], 1000, seconds(20)), 1);
    // Spans of a round or more; where the rate steps, a batch may be late by an ACK.
    let spans = run
        .paces(3.0, 20.0)
        .into_iter()
        .filter(|pace| pace.2 > 0.05);
    let rates: Vec<f64> = spans.map(|pace| pace.0 / 0.99).collect();
    let probes = (1..rates.len() - 2).filter(|&n| rates[n] > 1.15);
    let mut seen = 0;
    for n in probes {
        let cycle = &rates[n - 1..n + 3];
        for (rate, gain) in cycle.iter().zip([1.0, 1.25, 0.9, 1.0]) {
            assert!((rate / gain - 1.0).abs() < 0.03, "{cycle:?}");
        }
        seen += 1;
    }
    assert!(seen >= 4);
}

#[test]
fn between_probes_it_sends_at_the_links_rate_without_a_queue() {
    let run = single_flow(1000, 40);
    let mut in_flight: Vec<u32> = run.samples.in_flight[400..].to_vec();
    in_flight.sort_unstable();
    let median = f64::from(in_flight[in_flight.len() / 2]);
    assert!((median / BDP - 1.0).abs() < 0.05, "{median} of {BDP}");
    let delivered = run.totals.flows.delivered_bytes[0] as f64;
    let share = delivered / (40.0 * 1000.0 * PACKETS_PER_S);
    assert!((0.94..0.99).contains(&share), "{share}");
}

#[test]
fn each_five_seconds_half_a_bdp_is_in_flight_for_200_ms() {
    let run = single_flow(1000, 40);
    let dips = run.dips(0.55 * BDP, 2.0);
    assert!((6..=8).contains(&dips.len()), "{dips:?}");
    for (_, length) in &dips {
        assert!((0.19..0.35).contains(length), "{dips:?}");
    }
    for (at, cwnd) in run.windows().filter(|&(at, _)| at > 2.0) {
        assert!(cwnd > 0.4 * BDP, "{cwnd} at {at}");
    }
}

/// A quarter of a BDP of buffer: a probe of 1.25 overflows it, and more than 2 % of a flight is lost.
#[test]
fn a_probe_with_excessive_loss_bounds_inflight() {
    let limit = (0.25 * BDP) as u32;
    let run = single_flow(limit, 60);
    let pipe = BDP + f64::from(limit);
    // From the first loss on, the window is no longer twice the BDP but near what path and buffer hold.
    let late = run.windows().filter(|&(at, _)| at > 10.0);
    let most = late.map(|(_, cwnd)| cwnd).fold(0.0, f64::max);
    assert!(most < 1.3 * pipe, "{most} of {pipe}");
    let flows = &run.totals.flows;
    let lost = flows.retransmissions[0] as f64 / flows.sent_packets[0] as f64;
    assert!(lost < 0.01, "{lost}");
    let share = flows.delivered_bytes[0] as f64 / (60.0 * 1000.0 * PACKETS_PER_S);
    assert!(share > 0.9, "{share}");
}

#[test]
fn version_1_in_the_same_buffer_keeps_its_window_and_loses_on() {
    let limit = (0.25 * BDP) as u32;
    let lost = |congestion| {
        let flows = run(&sharing(&[congestion], limit, seconds(60)), 1)
            .totals
            .flows;
        flows.retransmissions[0]
    };
    assert!(lost(bbr()) > 2 * lost(bbr3()));
}

/// The draft's aim (section 5.3.3.8): Reno and CUBIC can live besides it in a shallow buffer.
#[test]
fn version_3_leaves_reno_and_cubic_several_times_the_share_of_version_1() {
    let limit = (0.5 * BDP) as u32;
    for other in [reno(), cubic()] {
        let left = |congestion| {
            let plan = sharing(&[congestion, other.clone()], limit, seconds(60));
            let bytes = run(&plan, 1).totals.flows.delivered_bytes;
            bytes[1] as f64 / (bytes[0] + bytes[1]) as f64
        };
        let (beside_1, beside_3) = (left(bbr()), left(bbr3()));
        assert!(beside_3 > 2.0 * beside_1, "{beside_3} and {beside_1}");
        assert!(beside_3 > 0.25, "{beside_3}");
    }
}

#[test]
fn flows_share_the_link() {
    let plan = sharing(&[bbr3(), bbr3(), bbr3()], 120, seconds(60));
    let bytes = run(&plan, 1).totals.flows.delivered_bytes;
    let sum: f64 = bytes.iter().map(|&bytes| bytes as f64).sum();
    let squares: f64 = bytes.iter().map(|&bytes| (bytes as f64).powi(2)).sum();
    let jain = sum * sum / (3.0 * squares);
    assert!(jain > 0.9, "{bytes:?}");
}
