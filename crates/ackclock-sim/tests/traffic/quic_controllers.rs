//! Controllers of the engine in a QUIC stack.

use ackclock_core::tables::{Tables, Totals};
use ackclock_core::Time;
use ackclock_plan::{
    CongestionPlan, FlowPlan, LossPlan, Plan, QuicCongestion, QuicPlan, StackCongestion, TcpPlan,
};
use ackclock_sim::Simulation;

use super::quic::{connection, goodput_bps, network, quic};
use super::run;
use crate::kit::cards::congestion_controls;
use crate::kit::{cubic, flow, link, linux, ms, path, plan, reno};

/// 20 Mbit/s, 40 ms and a buffer of one bandwidth–delay product of packets of 1500 bytes.
const RATE_BPS: f64 = 20e6;
const LIMIT: u32 = 66;
const DURATION: Time = Time::from_milliseconds(130_000);
const WARMUP: Time = Time::from_milliseconds(10_000);

fn with(congestion: QuicCongestion) -> QuicPlan {
    QuicPlan {
        congestion,
        ..connection()
    }
}

fn measured(plan: Plan) -> (Tables, Totals) {
    let (_, tables, totals) = run(
        &Plan {
            warmup: WARMUP,
            ..plan
        },
        1,
    );
    (tables, totals)
}

fn in_quic(congestion: QuicCongestion) -> (Tables, Totals) {
    measured(network(
        DURATION,
        RATE_BPS,
        LIMIT,
        vec![quic(&with(congestion))],
    ))
}

fn in_tcp(congestion: CongestionPlan) -> (Tables, Totals) {
    let flow = FlowPlan {
        congestion: congestion.into(),
        forward: path(ms(20), &[0]),
        reverse: path(ms(20), &[]),
        ..flow(TcpPlan {
            mss_bytes: 1448,
            ..linux()
        })
    };
    measured(plan(DURATION, vec![link(RATE_BPS, LIMIT)], vec![flow]))
}

#[derive(Debug)]
struct Summary {
    mean_cwnd: f64,
    recoveries: u64,
    goodput_bps: f64,
}

fn summary((tables, totals): &(Tables, Totals)) -> Summary {
    let samples = &tables.flow_samples;
    let later = samples.time_s.iter().zip(&samples.cwnd);
    let cwnd: Vec<f64> = later
        .filter(|(&at_s, _)| at_s > WARMUP.seconds())
        .map(|(_, &cwnd)| cwnd)
        .collect();
    Summary {
        mean_cwnd: cwnd.iter().sum::<f64>() / cwnd.len() as f64,
        recoveries: totals.flows.recoveries[0],
        goodput_bps: goodput_bps(totals, 0, DURATION.since(WARMUP)),
    }
}

/// The stack's loss detection and pacing under both. Ours counts whole segments, and does not grow while the pacer alone
/// holds packets back.
#[test]
fn reno_of_the_engine_behaves_as_new_reno_of_the_stack() {
    let ours = summary(&in_quic(QuicCongestion::Engine(reno())));
    let theirs = summary(&in_quic(QuicCongestion::Stack(StackCongestion::Reno)));
    assert_alike(&ours, &theirs, 0.02);
}

/// Over TCP a packet of 1500 bytes has 1448 of payload, over QUIC 1437.
#[test]
fn cubic_of_the_engine_behaves_as_over_tcp() {
    let in_stack = summary(&in_quic(QuicCongestion::Engine(cubic())));
    assert_alike(&in_stack, &summary(&in_tcp(cubic())), 0.01);
}

fn assert_alike(found: &Summary, expected: &Summary, tolerance: f64) {
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < tolerance;
    assert!(
        near(found.mean_cwnd, expected.mean_cwnd)
            && near(found.goodput_bps, expected.goodput_bps)
            && found.recoveries.abs_diff(expected.recoveries) <= 1,
        "{found:?} {expected:?}"
    );
}

/// A model-based controller has a pacing rate, which the stack follows: the link is busy and its queue short.
#[test]
fn bbr3_of_the_engine_paces_the_stack() {
    let bbr3 = congestion_controls()
        .into_iter()
        .find(|plan| plan.kind == "bbr3");
    let (tables, totals) = in_quic(QuicCongestion::Engine(bbr3.expect("a spec")));
    let found = summary(&(tables, totals));
    assert!(found.goodput_bps > 0.9 * RATE_BPS, "{found:?}");
    assert!(found.mean_cwnd < 2.5 * f64::from(LIMIT), "{found:?}");
}

#[test]
fn a_transfer_under_loss_is_complete_with_every_controller_that_a_stack_can_have() {
    for congestion in congestion_controls() {
        let transfer = QuicPlan {
            size_bytes: Some(200_000),
            ..with(QuicCongestion::Engine(congestion.clone()))
        };
        let mut plan = network(ms(120_000), 10e6, 50, vec![quic(&transfer)]);
        plan.links[0].loss = Some(LossPlan::Bernoulli { probability: 0.03 });
        if congestion.kind == "tahoe" {
            let error = Simulation::new(&plan, 1).map(drop).expect_err("tahoe");
            assert_eq!(
                error.to_string(),
                "\"tahoe\" takes all that is in flight for lost, which a QUIC stack does not"
            );
            continue;
        }
        let (_, tables, totals) = run(&plan, 1);
        assert_eq!(totals.flows.delivered_bytes, [200_000], "{congestion:?}");
        let (_, again, _) = run(&plan, 1);
        assert_eq!(format!("{tables:?}"), format!("{again:?}"));
    }
}
