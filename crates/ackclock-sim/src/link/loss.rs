//! Random loss before a queue.
//!
//! E. Gilbert: Capacity of a burst-noise channel, Bell System Technical Journal 39(5), 1960; E. Elliott: Estimates of
//! error rates for codes on burst-noise channels, BSTJ 42(5), 1963. As in netem, a packet uses the present state, then
//! draws the next one, and is lost with the probability of the state that it used.
//!
//! ACKs are thinned by number: of n of a flow in sequence the last goes on. RFC 3449 has it by queues: its ACK filtering
//! (section 5.2.1) drops an older ACK where a newer one waits, its ACK decimation (section 5.2.2) the newest at a full
//! queue. As in decimation, SACK blocks and ECN feedback make no difference; as in filtering, what carries data, opens
//! or closes is no ACK.
//!
//! Replies to datagrams (reports of media, what a QUIC server sends) are lost as ACKs are, but never thinned: a device on
//! the path cannot tell what they acknowledge.

use ackclock_core::random::unit_interval;
use ackclock_plan::LossPlan;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::packet::{Kind, Packet};

/// Loss of packets that is independent of the queue.
pub struct RandomLoss {
    kind: LossPlan,
    /// Packets so far, by flow, where they are counted: those with data, or ACKs.
    counts: Vec<u64>,
    /// True while the chain is in the bad state.
    is_bad: bool,
    random: Pcg64Mcg,
}

impl RandomLoss {
    /// The loss of a plan.
    pub fn new(kind: LossPlan, seed: u64) -> RandomLoss {
        RandomLoss {
            kind,
            counts: Vec::new(),
            is_bad: false,
            random: Pcg64Mcg::new(u128::from(seed) << 64 | 0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Set another loss model, which starts in the good state.
    pub fn set(&mut self, kind: LossPlan) {
        self.kind = kind;
        self.is_bad = false;
    }

    /// Draw whether a packet is lost. Only data packets of TCP and UDP can be, and SYNs, ACKs and replies to datagrams
    /// if the plan says so, not FINs.
    #[inline]
    pub fn draw_drop(&mut self, packet: &Packet) -> bool {
        let carries = packet.kind.carries_payload();
        match self.kind {
            LossPlan::ByKind { syn, .. } if packet.kind.opens() => self.occurs(syn),
            LossPlan::ByKind {
                ack, ack_thinning, ..
            } if packet.kind == Kind::Ack => {
                let is_kept = ack_thinning == 1 || self.is_due(packet.flow, ack_thinning);
                !is_kept || (ack > 0.0 && self.occurs(ack))
            }
            LossPlan::ByKind { ack, .. } if packet.kind == Kind::Echo => {
                ack > 0.0 && self.occurs(ack)
            }
            LossPlan::Bernoulli { probability } | LossPlan::ByKind { probability, .. } => {
                carries && self.occurs(probability)
            }
            LossPlan::GilbertElliott {
                p_good_to_bad,
                p_bad_to_good,
                in_bad,
                in_good,
            } => {
                let was_bad = self.is_bad;
                let (leaves, draw_loss) = if was_bad {
                    (p_bad_to_good, in_bad)
                } else {
                    (p_good_to_bad, in_good)
                };
                carries && {
                    self.is_bad = was_bad != self.occurs(leaves);
                    self.occurs(draw_loss)
                }
            }
            LossPlan::Every { packets } => carries && self.is_due(packet.flow, packets),
        }
    }

    /// True if this is the last of `packets` packets of the flow; counts it.
    #[inline]
    fn is_due(&mut self, flow: u32, packets: u64) -> bool {
        let flow = flow as usize;
        if flow >= self.counts.len() {
            self.counts.resize(flow + 1, 0);
        }
        let count = &mut self.counts[flow];
        *count += 1;
        count.is_multiple_of(packets)
    }

    /// Draw an event of this probability.
    #[inline]
    fn occurs(&mut self, probability: f64) -> bool {
        unit_interval(self.random.next_u64()) < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    /// Losses of `packets` data packets.
    fn losses(kind: LossPlan, packets: u64) -> Vec<bool> {
        let mut loss = RandomLoss::new(kind, 7);
        let data = |sequence| Packet {
            kind: Kind::Data,
            ..packet(sequence, 1000)
        };
        (0..packets).map(|n| loss.draw_drop(&data(n))).collect()
    }

    fn bursts(in_bad: f64, in_good: f64) -> Vec<bool> {
        let kind = LossPlan::GilbertElliott {
            p_good_to_bad: 0.01,
            p_bad_to_good: 0.25,
            in_bad,
            in_good,
        };
        losses(kind, 1_000_000)
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    /// The chain is bad for 0.01 / 0.26 of the packets, 4 in a row in the mean: 10 000 bursts, so the mean burst has a
    /// standard error of √12 / 100, and the share one of about 1.3 %.
    #[test]
    fn loss_bursts_follow_the_markov_chain() {
        let lost = bursts(1.0, 0.0);
        let count = lost.windows(2).filter(|pair| pair[1] && !pair[0]).count() as f64;
        let length = share(&lost) * 1e6 / count;
        assert!((length - 4.0).abs() < 0.11, "{length}");
        assert!(
            (share(&lost) / (0.01 / 0.26) - 1.0).abs() < 0.04,
            "{}",
            share(&lost)
        );
    }

    #[test]
    fn replies_to_datagrams_are_lost_as_acks_and_not_thinned() {
        let kind = |ack, ack_thinning| LossPlan::ByKind {
            probability: 1.0,
            syn: 0.0,
            ack,
            ack_thinning,
        };
        let lost = |plan| {
            let mut loss = RandomLoss::new(plan, 7);
            let reply = Packet {
                kind: Kind::Echo,
                ..packet(0, 100)
            };
            (0..100).filter(|_| loss.draw_drop(&reply)).count()
        };
        assert_eq!(lost(kind(1.0, 1)), 100);
        assert_eq!(lost(kind(0.0, 8)), 0);
    }

    #[test]
    fn each_state_loses_with_its_own_chance() {
        let bad = 0.01 / 0.26;
        let expected = bad * 0.5 + (1.0 - bad) * 0.02;
        assert!((share(&bursts(0.5, 0.02)) / expected - 1.0).abs() < 0.03);
        assert_eq!(share(&bursts(0.0, 0.0)), 0.0);
    }

    #[test]
    fn another_law_begins_in_the_good_state() {
        let always_bad = LossPlan::GilbertElliott {
            p_good_to_bad: 1.0,
            p_bad_to_good: 1e-9,
            in_bad: 1.0,
            in_good: 0.0,
        };
        let mut loss = RandomLoss::new(always_bad, 1);
        let data = Packet {
            kind: Kind::Data,
            ..packet(0, 1000)
        };
        assert_eq!(
            [loss.draw_drop(&data), loss.draw_drop(&data)],
            [false, true]
        );
        loss.set(always_bad);
        assert_eq!(
            [loss.draw_drop(&data), loss.draw_drop(&data)],
            [false, true]
        );
    }
}
