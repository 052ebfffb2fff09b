//! ABCC on a link that nobody else uses, and among its like: what is predicted, and where equation 4.3 comes to rest.
//!
//! A segment leaves each millisecond and the RTT without queue is 100 ms.

use std::sync::Arc;

use ackclock_core::Time;
use ackclock_plan::{CongestionPlan, DelayedAck, FlowPlan, TcpPlan};
use ackclock_sim::Simulation;
use serde_json::{json, Value};

use crate::kit::{flow, link, linux, ms, path, plan, Conversation};

fn card() -> Value {
    json!({
        "alpha": 4.0,
        "beta": 0.25,
        "gamma": 1000.0,
        "groups": 4,
        "group_min": 4,
        "group_max": 8,
        "count_first": false,
    })
}

fn abcc(parameters: Value, tcp: TcpPlan) -> FlowPlan {
    FlowPlan {
        congestion: Arc::new(CongestionPlan {
            kind: "abcc".to_owned(),
            parameters,
        }),
        ..flow(tcp)
    }
}

fn with(alpha: f64, beta: f64) -> Value {
    let mut parameters = card();
    parameters["alpha"] = json!(alpha);
    parameters["beta"] = json!(beta);
    parameters
}

/// Segments per second that the window stands for: it is 2 (R RTTmin + α).
fn rate(tcp: &Conversation, least_rtt_s: f64) -> f64 {
    (tcp.sender.cwnd() / 2.0 - 4.0) / least_rtt_s
}

#[test]
fn the_rate_of_an_idle_link_is_measured_in_three_round_trips_to_within_two_percent() {
    for delayed_ack in [DelayedAck::Off, DelayedAck::Quick] {
        for seed in 0..20 {
            let tcp = TcpPlan {
                delayed_ack,
                ..linux()
            };
            let mut tcp = Conversation::new(&abcc(card(), tcp), ms(50))
                .seeded(seed)
                .spaced(ms(1));
            // Slow start's windows are 10, 20 and 40; the flights begin to be acknowledged at 200, 300 and 400 ms.
            tcp.run(ms(300));
            while tcp.sender.cwnd() < 150.0 {
                tcp.step();
            }
            assert!(tcp.now < ms(500), "{:?}", tcp.now);
            let found = rate(&tcp, 0.1) / 1000.0;
            assert!(
                (found - 1.0).abs() < 0.02,
                "{delayed_ack:?}, {seed}: {found}"
            );
        }
    }
}

#[test]
fn what_is_sent_is_paced_at_the_rate() {
    // The second after prediction, in segments: R is the link's 1000 per second, within a tenth.
    let mut tcp = Conversation::new(&abcc(card(), linux()), ms(50)).spaced(ms(1));
    tcp.run(ms(1000));
    let before = tcp.sent_segments();
    tcp.run(ms(2000));
    let sent = tcp.sent_segments() - before;
    assert!((900..=1100).contains(&sent), "{sent}");
}

/// Mean and most segments waiting once all has settled, and the share of the link that is used.
fn waiting(alpha: f64, beta: f64) -> (f64, f64, f64) {
    let mut tcp = Conversation::new(&abcc(with(alpha, beta), linux()), ms(50)).spaced(ms(1));
    tcp.run(ms(200_000));
    let settled = |seen: &&(Time, u32)| seen.0 >= ms(20_000);
    let seen = tcp.waiting().iter().filter(settled);
    let waiting: Vec<f64> = seen.map(|seen| f64::from(seen.1)).collect();
    let segments = waiting.len() as f64;
    let mean = waiting.iter().sum::<f64>() / segments;
    let most = waiting.iter().copied().fold(0.0, f64::max);
    (mean, most, segments / 180_000.0)
}

#[test]
fn a_single_flow_keeps_alpha_queued_and_the_link_busy() {
    // Equation 4.3 rests where (RTT − RTTmin) R = α. Rate and queue both integrate, so that they circle around it:
    // from R = C and an empty queue the queue swings to 2 α and back, the further the longer a round trip is
    // besides the swing's 2π RTT/√β.
    for alpha in [4.0, 8.0, 16.0] {
        let (mean, most, used) = waiting(alpha, 0.05);
        assert!((0.75..=1.35).contains(&(mean / alpha)), "{alpha}: {mean}");
        assert!(most < 3.0 * alpha, "{alpha}: {most}");
        assert!(used > 0.95, "{alpha}: {used}");
        let (mean, most, used) = waiting(alpha, 0.25);
        assert!((0.75..=1.6).contains(&(mean / alpha)), "{alpha}: {mean}");
        assert!(most < 4.5 * alpha, "{alpha}: {most}");
        assert!(used > 0.95, "{alpha}: {used}");
    }
}

#[test]
fn each_of_several_keeps_alpha_waiting() {
    // 8 Mbit/s and segments of 1052 bytes; all begin within the first round trip and see the empty path.
    for flows in [2, 4] {
        let one = |index: u64| FlowPlan {
            start: ms(7 * index),
            forward: path(ms(50), &[0]),
            reverse: path(ms(50), &[]),
            ..abcc(card(), linux())
        };
        let flows: Vec<FlowPlan> = (0..flows).map(one).collect();
        let expected = 4.0 * flows.len() as f64;
        let mut plan = plan(ms(200_000), vec![link(8e6, 1000)], flows);
        plan.warmup = ms(50_000);
        plan.record.packets = false;
        let mut simulation = Simulation::new(&plan, 1).expect("the kit's plans are sound");
        simulation.advance(plan.duration);
        let links = simulation.finish().links;
        let found = links.backlog_mean_p[0];
        assert!(
            (0.6..=1.5).contains(&(found / expected)),
            "{found}, {expected}"
        );
    }
}
