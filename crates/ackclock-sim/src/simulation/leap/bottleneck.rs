//! The bottleneck of a plan on which leaps are possible, and its queue as a function of the windows.

use ackclock_core::Time;
use ackclock_plan::{EcnMode, FlowPlan, LinkPlan, PcapPlan, Plan};

/// Iterations of Newton's method for the queueing delay; from one step to the next it hardly changes.
const ITERATIONS: usize = 8;
/// Relative accuracy of the sum of rates.
const ACCURACY: f64 = 1e-9;

/// A link without impairments behind a drop-tail queue, which every flow passes and which alone can queue.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    /// Packets per second.
    pub rate: f64,
    /// Packets that fit into the queue.
    pub limit_p: f64,
    /// Bytes of a full segment on the wire, with the link's frame.
    pub wire_bytes: u32,
    /// Longest sum of propagation delays of a flow, s.
    pub base_rtt_s: f64,
}

impl Bottleneck {
    /// The bottleneck of a plan; `None` if leaps are impossible in it.
    pub fn of_plan(plan: &Plan) -> Option<Bottleneck> {
        let [link] = plan.links.as_slice() else {
            return None;
        };
        let first = plan.flows.first()?;
        let segment_bytes = segment_bytes(first);
        let is_uniform = plan
            .flows
            .iter()
            .all(|flow| can_leap(flow) && segment_bytes == self::segment_bytes(flow));
        let records_packets = plan.record.packets
            || plan.record.delays
            || plan.record.pcap != PcapPlan::Senders(false);
        if !is_uniform || records_packets || !plan.datagrams.is_empty() {
            return None;
        }
        let wire_bytes = segment_bytes + link.frame_overhead_bytes;
        let base_rtts = plan.flows.iter().map(|flow| base_rtt(flow).seconds());
        Some(Bottleneck {
            rate: link.rate.bytes_per_second() / f64::from(wire_bytes),
            limit_p: limit_p(link, wire_bytes)?,
            wire_bytes,
            base_rtt_s: base_rtts.fold(0.0, f64::max),
        })
    }

    /// The time in which `packets` are transmitted, s.
    pub fn drain_s(&self, packets: f64) -> f64 {
        packets / self.rate
    }

    /// Queueing delay in s at which flows with these windows and base RTTs (s) fill the link, from a guess that is not
    /// larger; 0 if they do not fill it. It solves Σ wᵢ / (bᵢ + q) = rate by Newton's method, which approaches the
    /// solution from below, since the sum is convex and falls with q.
    pub fn queueing_delay_s(
        &self,
        flows: &(impl Iterator<Item = (f64, f64)> + Clone),
        guess_s: f64,
    ) -> f64 {
        let mut delay_s = guess_s;
        for _ in 0..ITERATIONS {
            let (mut sum, mut slope) = (0.0, 0.0);
            for (window, base_s) in flows.clone() {
                let rate = window / (base_s + delay_s);
                sum += rate;
                slope += rate / (base_s + delay_s);
            }
            let excess = sum - self.rate;
            if slope <= 0.0 || excess.abs() <= ACCURACY * self.rate {
                break;
            }
            delay_s = (delay_s + excess / slope).max(0.0);
        }
        delay_s
    }
}

/// Sum of the propagation delays of a flow.
pub fn base_rtt(flow: &FlowPlan) -> Time {
    let hops = flow.forward.hops.iter().map(|hop| hop.delay);
    hops.fold(flow.forward.delay + flow.reverse.delay, |sum, delay| {
        sum + delay
    })
}

/// Bytes of a full segment as an IP packet.
fn segment_bytes(flow: &FlowPlan) -> u32 {
    flow.tcp.mss_bytes + flow.tcp.segment_header_bytes()
}

/// Return true if a flow is a plain TCP through one link, whose window grows by what is acknowledged.
fn can_leap(flow: &FlowPlan) -> bool {
    flow.ends.is_none()
        && flow.forward.hops.len() == 1
        && flow.reverse.hops.is_empty()
        && flow.tcp.byte_counting
        && flow.tcp.ecn == EcnMode::Off
        && flow.tcp.send_buffer_bytes.is_none()
        && base_rtt(flow) > Time::ZERO
}

/// Packets of `wire_bytes` that fit into the queue of a link that only transmits and delays.
fn limit_p(link: &LinkPlan, wire_bytes: u32) -> Option<f64> {
    let is_plain = link.ends.is_none()
        && link.loss.is_none()
        && link.medium.is_none()
        && link.trace.is_none()
        && link.burst_bytes.is_none();
    if !is_plain {
        return None;
    }
    let parameters = &link.queue.parameters;
    match link.queue.discipline.as_str() {
        "pfifo" => parameters["limit_packets"].as_f64(),
        "bfifo" => Some((parameters["limit_bytes"].as_f64()? / f64::from(wire_bytes)).floor()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTTLENECK: Bottleneck = Bottleneck {
        rate: 1000.0,
        limit_p: 100.0,
        wire_bytes: 1500,
        base_rtt_s: 0.1,
    };

    #[test]
    fn the_queue_holds_what_the_windows_exceed_the_pipe_by() {
        let flows = [(70.0, 0.1), (80.0, 0.1)];
        let delay_s = BOTTLENECK.queueing_delay_s(&flows.into_iter(), 0.0);
        assert!((delay_s * BOTTLENECK.rate - 50.0).abs() < 1e-6);
        let flows = [(30.0, 0.1), (60.0, 0.1)];
        assert!(BOTTLENECK.queueing_delay_s(&flows.into_iter(), 0.0) <= 0.0);
    }

    #[test]
    fn flows_of_unequal_round_trips_fill_the_link() {
        let flows = [(90.0, 0.05), (40.0, 0.2)];
        let delay_s = BOTTLENECK.queueing_delay_s(&flows.into_iter(), 0.0);
        let sum: f64 = flows
            .iter()
            .map(|(window, base_s)| window / (base_s + delay_s))
            .sum();
        assert!(
            delay_s > 0.0 && (sum / BOTTLENECK.rate - 1.0).abs() < 1e-6,
            "{sum}"
        );
    }
}
