//! One bottleneck, long flows, and what is looked at afterwards.

use ackclock_core::tables::{EventKind, Tables, Totals};
use ackclock_core::Time;
use ackclock_plan::{CongestionPlan, FlowPlan, Plan, TcpPlan};
use ackclock_sim::Simulation;
use serde_json::Value;

use crate::kit::{flow, link, linux, ms, path, plan};

/// Wire bytes of a full segment with timestamps.
pub const PACKET_BYTES: f64 = 1052.0;

/// A bottleneck of so many full packets per second, with a base RTT and a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    pub packets_per_s: f64,
    pub rtt_ms: u64,
    pub limit_packets: u32,
}

/// Measures of a run.
pub struct Run {
    pub tables: Tables,
    pub totals: Totals,
    warmup_s: f64,
}

pub fn control(kind: &str, parameters: Value) -> CongestionPlan {
    CongestionPlan {
        kind: kind.to_owned(),
        parameters,
    }
}

impl Bottleneck {
    /// Endless flows that start a second apart, looked at after `warmup_s`.
    pub fn run(&self, controls: &[CongestionPlan], warmup_s: u64, duration_s: u64) -> Run {
        self.run_with(&linux(), controls, warmup_s, duration_s)
    }

    /// Run with another TCP than [`Bottleneck::run`].
    pub fn run_with(
        &self,
        tcp: &TcpPlan,
        controls: &[CongestionPlan],
        warmup_s: u64,
        duration_s: u64,
    ) -> Run {
        let one_way = ms(self.rtt_ms / 2);
        let flow_of = |(index, congestion): (u64, &CongestionPlan)| FlowPlan {
            start: ms(1000 * index),
            congestion: congestion.clone().into(),
            forward: path(one_way, &[0]),
            reverse: path(one_way, &[]),
            ..flow(tcp.clone())
        };
        let flows = (0..).zip(controls).map(flow_of).collect();
        let rate_bps = 8.0 * PACKET_BYTES * self.packets_per_s;
        let mut plan = plan(
            ms(1000 * duration_s),
            vec![link(rate_bps, self.limit_packets)],
            flows,
        );
        plan.warmup = ms(1000 * warmup_s);
        plan.record.packets = false;
        Run::of(&plan)
    }
}

impl Run {
    fn of(plan: &Plan) -> Run {
        let mut simulation = Simulation::new(plan, 1).expect("the kit's plans are sound");
        simulation.advance(plan.duration);
        Run {
            tables: simulation.drain(),
            totals: simulation.finish(),
            warmup_s: plan.warmup.seconds(),
        }
    }

    /// Packets that waited at the bottleneck on average, the one in transmission not counted.
    pub fn backlog(&self) -> f64 {
        self.totals.links.backlog_mean_p[0]
    }

    /// The bottleneck's mean sojourn time.
    pub fn sojourn(&self) -> Time {
        Time::from_seconds(self.totals.links.sojourn_mean_s[0])
    }

    /// The share of the bottleneck that a flow had.
    pub fn share(&self, flow: usize) -> f64 {
        let bytes = &self.totals.flows.measured_bytes;
        bytes[flow] as f64 / bytes.iter().sum::<u64>() as f64
    }

    /// Windows of the first flow after the warm-up.
    pub fn windows(&self) -> Vec<f64> {
        let samples = &self.tables.flow_samples;
        let rows = 0..samples.time_s.len();
        rows.filter(|&row| samples.flow[row] == 0 && samples.time_s[row] > self.warmup_s)
            .map(|row| samples.cwnd[row])
            .collect()
    }

    /// Number of events of a kind after the warm-up.
    pub fn count(&self, happening: EventKind) -> usize {
        let events = &self.tables.events;
        let kind = happening as u8;
        debug_assert!(usize::from(kind) < EventKind::NAMES.len());
        (0..events.kind.len())
            .filter(|&row| events.kind[row] == kind && events.time_s[row] > self.warmup_s)
            .count()
    }
}
