//! Windows, rates, samples: what no run may exceed.

use std::collections::HashMap;

use ackclock_core::tables::{FlowSamples, Links, QueueSamples, Totals};
use ackclock_plan::{DelayedAck, FlowPlan, LinkPlan, LossDetection, Plan};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::plans::{any_plan, any_reader, any_tcp, any_writes, cases, simulate};
use crate::kit::{cubic, data, ms, reno, transfer, us, Conversation};

/// Largest IP packet of the generated plans, with room for all options.
const LARGEST_BYTES: f64 = 1600.0;

/// Burst of a token bucket, besides the packet that overdraws it.
fn burst_bytes(link: &LinkPlan) -> f64 {
    link.burst_bytes.map_or(0.0, |bytes| bytes as f64)
}

/// Largest error of an RTT from timestamps.
const TIMESTAMP_TICK_S: f64 = 1e-3;

fn check_flow_samples(plan: &Plan, samples: &FlowSamples) -> Result<(), TestCaseError> {
    let mut delivered: HashMap<u32, u64> = HashMap::new();
    for row in 0..samples.time_s.len() {
        let flow = &plan.flows[samples.flow[row] as usize];
        prop_assert!(samples.cwnd[row].is_finite() && samples.cwnd[row] >= 1.0);
        prop_assert!(samples.ssthresh[row].is_nan() || samples.ssthresh[row] >= 2.0);
        let base_s = (flow.forward.delay + flow.reverse.delay).seconds();
        let least_s = base_s - TIMESTAMP_TICK_S;
        prop_assert!(samples.srtt_s[row].is_nan() || samples.srtt_s[row] >= least_s);
        let before = delivered.insert(samples.flow[row], samples.delivered_bytes[row]);
        prop_assert!(before.unwrap_or(0) <= samples.delivered_bytes[row]);
        prop_assert!(samples.delivered_bytes[row] <= flow.size_bytes.unwrap_or(u64::MAX));
    }
    Ok(())
}

fn check_queue_samples(plan: &Plan, samples: &QueueSamples) -> Result<(), TestCaseError> {
    for row in 0..samples.time_s.len() {
        let link = &plan.links[samples.link[row] as usize];
        let limit = |name: &str| link.queue.parameters[name].as_u64().unwrap_or(u64::MAX);
        prop_assert!(u64::from(samples.backlog_p[row]) <= limit("limit_packets"));
        prop_assert!(samples.backlog_bytes[row] <= limit("limit_bytes"));
        // A packet counts when it has left, so one that was begun before the interval may come on top.
        let interval_bytes = link.rate.bytes_per_second() * plan.record.interval.seconds();
        let bound = 1.0 + (LARGEST_BYTES + burst_bytes(link)) / interval_bytes;
        prop_assert!((0.0..=bound).contains(&samples.utilisation[row]));
    }
    Ok(())
}

/// A link's counts over the measured part fit into its length.
fn check_links(plan: &Plan, links: &Links) -> Result<(), TestCaseError> {
    let measured_s = (plan.duration - plan.warmup).seconds();
    for (index, link) in plan.links.iter().enumerate() {
        let packet_s = (LARGEST_BYTES + burst_bytes(link)) / link.rate.bytes_per_second();
        prop_assert!(links.busy_s[index] <= measured_s + packet_s);
        prop_assert!((0.0..=measured_s * (1.0 + 1e-12)).contains(&links.empty_s[index]));
        let bound_bytes =
            link.rate.bytes_per_second() * measured_s + LARGEST_BYTES + burst_bytes(link);
        prop_assert!(links.departed_bytes[index] as f64 <= bound_bytes);
        prop_assert!(links.backlog_mean_bytes[index] >= links.backlog_mean_p[index] * 40.0 - 1e-6);
        let sojourns: u64 = links.sojourn_counts[index].iter().sum();
        prop_assert!(
            sojourns.abs_diff(links.departed_p[index]) <= 1,
            "one may be in transmission"
        );
        prop_assert!(links.sojourn_edges_s[index]
            .windows(2)
            .all(|pair| pair[0] < pair[1]));
        if sojourns > 0 {
            prop_assert!(links.sojourn_mean_s[index] <= links.sojourn_max_s[index] * (1.0 + 1e-9));
        }
    }
    Ok(())
}

/// Goodput of all flows together is at most the bottleneck's rate.
fn check_goodput(plan: &Plan, totals: &Totals) -> Result<(), TestCaseError> {
    let delivered: u64 = totals.flows.delivered_bytes.iter().sum();
    let possible_bytes = plan.links[0].rate.bytes_per_second() * plan.duration.seconds()
        + LARGEST_BYTES
        + burst_bytes(&plan.links[0]);
    prop_assert!(delivered as f64 <= possible_bytes);
    for (index, flow) in plan.flows.iter().enumerate() {
        let delivered = totals.flows.delivered_bytes[index];
        prop_assert!(delivered <= flow.size_bytes.unwrap_or(u64::MAX));
        prop_assert!(totals.flows.measured_bytes[index] <= delivered);
        prop_assert!(totals.flows.measured_sent_packets[index] <= totals.flows.sent_packets[index]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn samples_and_totals_are_within_bounds(plan in any_plan(), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        let tables = simulation.drain();
        let totals = simulation.finish();
        check_flow_samples(&plan, &tables.flow_samples)?;
        check_queue_samples(&plan, &tables.queue_samples)?;
        check_links(&plan, &totals.links)?;
        check_goodput(&plan, &totals)?;
    }
}

/// A transfer over a wire that loses the packets of some numbers, handshake and FIN included.
#[derive(Clone, Debug)]
struct Trial {
    flow: FlowPlan,
    lost: Vec<u64>,
    one_way_ms: u64,
    spacing_us: u64,
}

fn trial() -> impl Strategy<Value = Trial> {
    (
        any_tcp(),
        0..120_u64,
        any::<bool>(),
        prop::collection::vec(0..400_u64, 0..80),
        1..150_u64,
        0..5000_u64,
        (any_reader(), any_writes()),
    )
        .prop_map(
            |(tcp, segments, is_reno, lost, one_way_ms, spacing_us, (slow_reader, writes))| Trial {
                flow: FlowPlan {
                    congestion: if is_reno { reno() } else { cubic() }.into(),
                    slow_reader,
                    writes,
                    ..transfer(tcp, segments)
                },
                lost,
                one_way_ms,
                spacing_us,
            },
        )
}

/// A handler sends what the window allows, or a single segment beyond it: the first retransmission of an
/// episode, New Reno's of a partial ACK, or a probe; and the last one with the FIN, which needs no room.
fn check_step(conversation: &mut Conversation, flow: &FlowPlan) -> Result<(), TestCaseError> {
    let before = conversation.sent_segments();
    conversation.step();
    let sent = conversation.sent_segments() - before;
    let (cwnd, in_flight) = (conversation.sender.cwnd(), conversation.sender.in_flight());
    prop_assert!(cwnd.is_finite() && cwnd >= 1.0);
    let mss_bytes = u64::from(flow.tcp.mss_bytes);
    let segments = flow.size_bytes.unwrap_or(0).div_ceil(mss_bytes);
    let fin = u8::from(flow.tcp.tso_batching && conversation.sent_end() >= segments);
    prop_assert!(
        sent <= 1 + u64::from(fin) || f64::from(in_flight) <= cwnd + f64::from(fin),
        "{sent} sent, {in_flight} > {cwnd}"
    );
    let window = flow
        .tcp
        .receive_window_bytes
        .map_or(u64::MAX, |bytes| (bytes / mss_bytes).max(1));
    prop_assert!(conversation.outstanding() <= window);
    prop_assert!(conversation.sent_end() <= conversation.window_end());
    let unread = conversation.receiver.unread_bytes();
    prop_assert!(
        unread <= window.saturating_mul(mss_bytes),
        "{unread} unread"
    );
    let buffer = flow
        .tcp
        .send_buffer_bytes
        .filter(|_| !flow.tcp.tso_batching);
    if let Some(bytes) = buffer {
        prop_assert!(conversation.outstanding() <= (bytes / mss_bytes).max(1));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn a_transfer_ends_within_its_windows_for_any_loss(trial in trial()) {
        let mut conversation = Conversation::new(&trial.flow, ms(trial.one_way_ms))
            .spaced(us(trial.spacing_us))
            .losing_numbers(trial.lost.iter().copied());
        conversation.run(ms(0));
        let mut steps = 0;
        while !conversation.next().is_never() {
            check_step(&mut conversation, &trial.flow)?;
            steps += 1;
            prop_assert!(steps < 100_000, "it goes on for ever:\n{}", conversation.text());
        }
        let size = trial.flow.size_bytes.unwrap_or(0);
        prop_assert_eq!(conversation.receiver.delivered_bytes(), size);
        prop_assert_eq!(conversation.sender.acknowledged_bytes(), size);
        prop_assert!(conversation.sender.finished.is_some());
        prop_assert!(!conversation.sender.is_active());
        prop_assert_eq!(conversation.sender.in_flight(), 0);
        prop_assert!(conversation.receiver.is_closed() && conversation.receiver.unread_bytes() == 0);
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn with_sack_only_probes_and_timeouts_retransmit_delivered_segments(
        trial in trial(),
        lost_data in prop::collection::vec((0..100_u64, 1..3_u32), 0..40),
        by_time in any::<bool>(),
    ) {
        // No ACK is lost and nothing is reordered, so a segment that is marked lost is.
        let mut flow = trial.flow;
        flow.tcp.sack = true;
        flow.slow_reader = None;
        flow.tcp.min_rto = ms(200);
        flow.tcp.rto_floor_on_variance = true;
        flow.tcp.delayed_ack = DelayedAck::Off;
        if by_time {
            flow.tcp.loss_detection = LossDetection::Rack;
        }
        let lost = lost_data.into_iter().map(|(segment, times)| data(segment).times(times));
        let mut conversation = Conversation::new(&flow, ms(trial.one_way_ms))
            .spaced(us(trial.spacing_us % 1000 + 1))
            .losing(lost);
        conversation.run(ms(0));
        while !conversation.next().is_never() {
            conversation.step();
        }
        let counters = conversation.sender.counters;
        let duplicates = conversation.receiver.duplicates;
        prop_assert!(duplicates <= counters.tail_probes, "{duplicates}:\n{}", conversation.text());
    }
}
