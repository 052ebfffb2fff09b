//! A bottleneck of 20 Mb/s and 50 ms, and what to look at.

use ackclock_core::tables::{FlowSamples, PacketAction, Packets, Totals};
use ackclock_core::Time;
use ackclock_plan::{CongestionPlan, FlowPlan, Plan, TcpPlan};
use ackclock_sim::Simulation;

use crate::kit::cards::congestion_controls;
use crate::kit::{flow, link, linux, ms, path, plan, HEADER_BYTES, MSS_BYTES};

/// Rate of the link.
pub const RATE_BPS: f64 = 20e6;
/// Propagation delay, both ways together.
pub const RTT_MS: u64 = 50;
/// Bytes of a full packet: payload, headers, timestamps.
pub const PACKET_BYTES: u32 = MSS_BYTES + HEADER_BYTES + 12;
/// Packets that fill the path.
pub const BDP: f64 = RATE_BPS * 0.050 / (8.0 * PACKET_BYTES as f64);
/// Full packets that the link sends per second.
pub const PACKETS_PER_S: f64 = RATE_BPS / (8.0 * PACKET_BYTES as f64);

/// BBR with the defaults of its algorithm spec.
pub fn bbr() -> CongestionPlan {
    with_defaults("bbr")
}

/// BBRv3 with the defaults of its algorithm spec.
pub fn bbr3() -> CongestionPlan {
    with_defaults("bbr3")
}

fn with_defaults(kind: &str) -> CongestionPlan {
    let mut cards = congestion_controls().into_iter();
    cards
        .find(|control| control.kind == kind)
        .expect("a card of that name")
}

/// Flows over one bottleneck behind a queue of `limit_packets`.
pub fn sharing(congestion: &[CongestionPlan], limit_packets: u32, duration: Time) -> Plan {
    let sender = |congestion: &CongestionPlan| FlowPlan {
        congestion: congestion.clone().into(),
        forward: path(Time::ZERO, &[0]),
        reverse: path(ms(RTT_MS), &[]),
        ..flow(TcpPlan {
            tso_batching: true,
            ..linux()
        })
    };
    let flows = congestion.iter().map(sender).collect();
    let mut plan = plan(duration, vec![link(RATE_BPS, limit_packets)], flows);
    plan.record.interval = ms(10);
    plan
}

/// Results of a run.
pub struct Run {
    pub samples: FlowSamples,
    pub packets: Packets,
    pub totals: Totals,
}

/// Run a plan to its end.
pub fn run(plan: &Plan, seed: u64) -> Run {
    let mut simulation = Simulation::new(plan, seed).expect("a sound plan");
    simulation.advance(plan.duration);
    let tables = simulation.drain();
    Run {
        samples: tables.flow_samples,
        packets: tables.packets,
        totals: simulation.finish(),
    }
}

impl Run {
    /// Times at which the sender offered data to the link, s.
    pub fn departures(&self) -> Vec<f64> {
        let offered = |&row: &usize| {
            self.packets.what[row] == PacketAction::Enqueue as u8
                && self.packets.wire_bytes[row] == PACKET_BYTES
        };
        let rows = (0..self.packets.time_s.len()).filter(offered);
        rows.map(|row| self.packets.time_s[row]).collect()
    }

    /// Rate of departures over the link's, in bins of `width_s` from `from_s` on.
    pub fn sending_rate(&self, from_s: f64, to_s: f64, width_s: f64) -> Vec<f64> {
        let mut counts = vec![0.0; ((to_s - from_s) / width_s) as usize];
        for at in self.departures() {
            let bin = ((at - from_s) / width_s).floor();
            if bin >= 0.0 && (bin as usize) < counts.len() {
                counts[bin as usize] += 1.0;
            }
        }
        counts
            .iter()
            .map(|count| count / (width_s * PACKETS_PER_S))
            .collect()
    }

    /// The pacing rate over the link's as the gaps between departures show it, in spans of one rate (within a
    /// twentieth): rate, start and length, s.
    pub fn paces(&self, from_s: f64, to_s: f64) -> Vec<(f64, f64, f64)> {
        let mut paces: Vec<(f64, f64, f64)> = Vec::new();
        let mut batch = (f64::NEG_INFINITY, 0.0);
        for at in self.departures() {
            if at - batch.0 < 1e-9 {
                batch.1 += 1.0;
                continue;
            }
            let rate = batch.1 / ((at - batch.0) * PACKETS_PER_S);
            if (from_s..to_s).contains(&batch.0) {
                match paces.last_mut() {
                    Some(pace) if (rate - pace.0).abs() < 0.05 => pace.2 = at - pace.1,
                    _ => paces.push((rate, batch.0, at - batch.0)),
                }
            }
            batch = (at, 1.0);
        }
        paces
    }

    /// Time and window of the samples of a flow.
    pub fn windows(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let times = self.samples.time_s.iter().copied();
        times.zip(self.samples.cwnd.iter().copied())
    }

    /// Spans in which the window is at most `segments`: start and length, s.
    pub fn dips(&self, segments: f64, after_s: f64) -> Vec<(f64, f64)> {
        let mut dips: Vec<(f64, f64)> = Vec::new();
        let mut inside = false;
        for (at, cwnd) in self.windows().filter(|&(at, _)| at > after_s) {
            if cwnd <= segments && !inside {
                dips.push((at, 0.0));
            }
            inside = cwnd <= segments;
            if let Some(dip) = dips.last_mut().filter(|_| inside) {
                dip.1 = at - dip.0;
            }
        }
        dips
    }
}
