//! Version 3 (draft-ietf-ccwg-bbr-06).

use ackclock_units::Time;

use crate::bottleneck::{bbr, bbr3, run, sharing, Run, BDP, PACKETS_PER_S};
use crate::kit::{cubic, reno};

fn seconds(seconds: u64) -> Time {
    Time::from_milliseconds(1000 * seconds)
}

fn alone(limit_packets: u32, duration_s: u64) -> Run {
    run(&sharing(&[bbr3()], limit_packets, seconds(duration_s)), 1)
}

/// Starts of spans with a sending rate above 1.1 of the link's.
fn probes(run: &Run, from_s: f64, to_s: f64) -> Vec<f64> {
    let width = 0.05;
    let rates = run.sending_rate(from_s, to_s, width);
    let starts = (1..rates.len()).filter(|&bin| rates[bin] > 1.12 && rates[bin - 1] <= 1.12);
    starts.map(|bin| from_s + bin as f64 * width).collect()
}

#[test]
fn probes_are_two_to_three_seconds_apart() {
    let run = alone(1000, 40);
    let probes = probes(&run, 2.0, 40.0);
    let mut gaps: Vec<f64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    // The wait begins with DOWN; REFILL and UP take another few rounds. A dip starts the wait anew.
    let median = gaps[gaps.len() / 2];
    assert!((2.0..3.7).contains(&median), "{gaps:?}");
    assert!(probes.len() >= 8, "{probes:?}");
}

#[test]
fn between_probes_it_sends_at_the_links_rate_without_a_queue() {
    let run = alone(1000, 40);
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
    let run = alone(1000, 40);
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
fn a_probe_that_loses_too_much_bounds_what_is_in_flight() {
    let limit = (0.25 * BDP) as u32;
    let run = alone(limit, 60);
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

/// The draft's aim (section 5.3.3.8): Reno and CUBIC can live beside it in a shallow buffer.
#[test]
fn it_leaves_reno_and_cubic_several_times_what_version_1_leaves() {
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
