//! Real-time media on a link.

use ackclock_core::{Rate, Time};
use ackclock_plan::{
    CongestionPlan, DatagramPlan, EcnMode, FeedbackTrigger, ImpairmentPlan, LossPlan, MediaPlan,
    PcapPlan, Plan, SourcePlan,
};
use ackclock_sim::Simulation;
use proptest::prelude::*;

use super::run;
use crate::kit::cards::realtime_controls;
use crate::kit::{link, ms, path, plan};

/// 150 kbit/s to 1.5 Mbit/s, 50 ms each way.
fn video(congestion: CongestionPlan) -> DatagramPlan {
    let media = MediaPlan {
        congestion,
        min_rate: Rate::from_bits_per_second(150e3),
        start_rate: Rate::from_bits_per_second(300e3),
        max_rate: Rate::from_bits_per_second(1.5e6),
        frames_per_s: 30.0,
        size_variation: 0.15,
        reaction: ms(200),
        feedback_interval: ms(100),
        feedback: FeedbackTrigger::Interval,
        circuit_breaker: false,
        ecn: EcnMode::Off,
    };
    DatagramPlan {
        group: 0,
        start: Time::ZERO,
        stop: None,
        priority: 0,
        ends: None,
        forward: path(ms(50), &[0]),
        reverse: path(ms(50), &[]),
        payload_bytes: 1200,
        header_bytes: 40,
        source: SourcePlan::Media(media),
    }
}

fn control(name: &str) -> CongestionPlan {
    let mut every = realtime_controls().into_iter();
    every
        .find(|control| control.kind == name)
        .expect("a spec of that name")
}

fn network(duration: Time, rate_bps: f64, limit: u32, videos: Vec<DatagramPlan>) -> Plan {
    Plan {
        datagrams: videos,
        ..plan(duration, vec![link(rate_bps, limit)], vec![])
    }
}

/// RFC 8698: in the steady state x_curr = PRIO · XREF · RMAX / r_ref, which is 10 ms · 1.5/1 = 15 ms of queueing
/// delay on a link of 1 Mbit/s. The signal is the smallest delay of the last 120 ms; the mean is longer by about
/// half of the serialisation of a frame, 33 ms of packets that leave the pacer at 1 Mbit/s and wait for little.
#[test]
fn nada_keeps_the_queueing_delay_of_its_equilibrium() {
    let mut plan = network(ms(60_000), 1e6, 100, vec![video(control("nada"))]);
    plan.warmup = ms(20_000);
    let (_, _, totals) = run(&plan, 1);
    let delay_s = totals.links.sojourn_mean_s[0];
    assert!((0.010..0.025).contains(&delay_s), "{delay_s}");
    let rate_bps = 8.0 * totals.flows.measured_bytes[0] as f64 / 40.0;
    // 1200 of 1240 bytes are payload.
    assert!((0.90..0.97).contains(&(rate_bps / 1e6)), "{rate_bps}");
    assert_eq!(totals.flows.dropped_packets, [0]);
}

#[test]
fn a_wide_link_leaves_every_video_at_its_highest_rate_without_delay() {
    for control in realtime_controls() {
        let name = control.kind.clone();
        let mut plan = network(ms(40_000), 100e6, 100, vec![video(control)]);
        plan.warmup = ms(30_000);
        let (_, tables, totals) = run(&plan, 1);
        let rate_bps = 8.0 * totals.flows.measured_bytes[0] as f64 / 10.0;
        let payload_bps = 1.5e6 * 1200.0 / 1240.0;
        assert!(
            (rate_bps / payload_bps - 1.0).abs() < 0.06,
            "{name}: {rate_bps}"
        );
        // 30 frames a second, all displayed, in order.
        let frames = &tables.frames;
        assert!(frames.frame.windows(2).all(|pair| pair[1] == pair[0] + 1));
        assert!(
            (i64::try_from(frames.frame.len()).unwrap_or(0) - 1198).abs() <= 2,
            "{name}"
        );
        assert!(frames.delay_s.iter().all(|&delay_s| delay_s > 0.05));
    }
}

#[test]
fn an_unknown_control_is_rejected_before_the_run() {
    let mut unknown = control("gcc");
    unknown.kind = "cubic".to_owned();
    let plan = network(ms(100), 1e6, 10, vec![video(unknown)]);
    let error = Simulation::new(&plan, 1).err().expect("no such control");
    assert!(error.to_string().contains("cubic"), "{error}");
}

/// A network that loses, duplicates and damages packets, with and without captures.
fn any_network() -> impl Strategy<Value = Plan> {
    let shares = (0.0..0.3_f64, 0.0..0.3_f64, 0.0..0.1_f64);
    let rates = (50e3..20e6_f64, 2..200_u32);
    (0..3_usize, rates, shares, any::<bool>(), 1..400_u64).prop_map(
        |(control, (rate_bps, limit), (loss, duplicate, corrupt), is_captured, feedback_ms)| {
            let mut flow = video(realtime_controls().swap_remove(control));
            if let SourcePlan::Media(media) = &mut flow.source {
                media.feedback_interval = ms(feedback_ms);
                media.ecn = EcnMode::Classic;
                media.circuit_breaker = is_captured;
                if is_captured {
                    media.feedback = FeedbackTrigger::Frame;
                }
            }
            let mut plan = network(ms(4000), rate_bps, limit, vec![flow.clone(), flow]);
            plan.links[0].loss = Some(LossPlan::Bernoulli { probability: loss });
            plan.links[0].delay = ms(5);
            plan.links[0].medium = Some(ImpairmentPlan {
                reorder: 0.1,
                duplicate,
                corrupt,
                ..ImpairmentPlan::NONE
            });
            plan.record.pcap = PcapPlan::Senders(is_captured);
            plan
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn packets_are_conserved_and_runs_repeat(plan in any_network(), cut in 0.0..1.0_f64) {
        let mut simulation = Simulation::new(&plan, 1).expect("a sound plan");
        simulation.advance(plan.duration.scaled(cut));
        let mut frames = simulation.drain().frames;
        simulation.advance(plan.duration);
        frames.append(&mut simulation.drain().frames);
        let (sent, gone) = simulation.packets_sent_and_accounted();
        prop_assert_eq!(sent, gone + simulation.packets_in_transit());
        let (_, tables, totals) = run(&plan, 1);
        prop_assert_eq!(format!("{frames:?}"), format!("{:?}", tables.frames));
        prop_assert_eq!(format!("{:?}", simulation.finish()), format!("{totals:?}"));
    }
}
