//! Random loss before a queue.

use ackclock_plan::LossPlan;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::packet::{Kind, Packet};

/// Loss of packets that is independent of the queue.
pub struct RandomLoss {
    kind: LossPlan,
    /// Data packets seen, by flow, where they are counted.
    seen: Vec<u64>,
    random: Pcg64Mcg,
}

impl RandomLoss {
    /// The loss of a plan.
    pub fn new(kind: LossPlan, seed: u64) -> RandomLoss {
        RandomLoss {
            kind,
            seen: Vec::new(),
            random: Pcg64Mcg::new(u128::from(seed) << 64 | 0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Whether this packet is lost. Only data are, TCP's and UDP's, and SYNs where the plan says so: FINs and ACKs pass.
    #[inline]
    pub fn takes(&mut self, packet: &Packet) -> bool {
        let carries = matches!(packet.kind, Kind::Data | Kind::Datagram);
        match self.kind {
            LossPlan::WithSyn { syn, .. } if packet.kind.opens() => self.falls_on(syn),
            LossPlan::Bernoulli { probability } | LossPlan::WithSyn { probability, .. } => {
                carries && self.falls_on(probability)
            }
            LossPlan::Every { packets } => carries && self.is_due(packet.flow, packets),
        }
    }

    /// Whether this is the flow's n-th packet since the last that was.
    #[inline]
    fn is_due(&mut self, flow: u32, packets: u64) -> bool {
        let flow = flow as usize;
        if flow >= self.seen.len() {
            self.seen.resize(flow + 1, 0);
        }
        let seen = &mut self.seen[flow];
        *seen += 1;
        seen.is_multiple_of(packets)
    }

    /// One draw.
    #[inline]
    fn falls_on(&mut self, probability: f64) -> bool {
        (self.random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64) < probability
    }
}
