//! Hash of flows to queues, perturbed by the seed.

use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// Keyed map of flows to 32-bit values. Two keys give unrelated maps.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash {
    key: u64,
}

impl FlowHash {
    /// Draw a random map.
    pub fn draw(random: &mut Pcg64Mcg) -> FlowHash {
        FlowHash {
            key: random.next_u64(),
        }
    }

    /// The flow's value: the finaliser of `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014) over flow and key.
    #[inline]
    pub fn of(self, flow: u32) -> u32 {
        let mut z = self.key ^ u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }

    /// One of `queues` queues: the value as a fraction of its range.
    #[inline]
    pub fn queue(self, flow: u32, queues: usize) -> usize {
        ((u64::from(self.of(flow)) * queues as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::CONTEXT;
    use crate::queue::QueueContext;

    fn hash(seed: u64) -> FlowHash {
        let context = QueueContext { seed, ..CONTEXT };
        FlowHash::draw(&mut context.random())
    }

    /// 10,000 flows in 16 queues: 625 each, with a standard deviation of 24 for a perfect hash.
    #[test]
    fn flows_are_spread_evenly() {
        let mut counts = [0_i32; 16];
        for flow in 0..10_000 {
            counts[hash(7).queue(flow, 16)] += 1;
        }
        assert!(
            counts.iter().all(|count| (count - 625).abs() < 120),
            "{counts:?}"
        );
    }

    /// One in 64 of 1000 flows keeps its queue by chance when the seed changes: 16, standard deviation 4.
    #[test]
    fn another_seed_is_another_map() {
        let same = (0..1000)
            .filter(|&flow| hash(1).queue(flow, 64) == hash(2).queue(flow, 64))
            .count();
        assert!(same < 36, "{same}");
        assert!((0..1000).all(|flow| hash(1).of(flow) == hash(1).of(flow)));
    }
}
