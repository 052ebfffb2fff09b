//! Initial numbers of the two ends of a connection in a capture.

use ackclock_core::Time;
use ackclock_traffic::flow_stream;
use rand_core::RngCore;

/// Initial numbers of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct First {
    /// Initial sequence number.
    pub sequence: u32,
    /// Identification of its first IP packet.
    pub identification: u16,
    /// Value of its timestamp clock at the start of the simulation, ms.
    pub clock_ms: u32,
}

/// Initial numbers of both ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    pub sender: First,
    pub receiver: First,
}

impl Numbers {
    /// Draw the numbers of a flow in a run with this seed.
    pub fn drawn(seed: u64, flow: u32) -> Numbers {
        let mut random = flow_stream(seed, u64::from(flow));
        random.next_u64(); // it says when the flow begins
        Numbers {
            sender: First::drawn(&mut random),
            receiver: First::drawn(&mut random),
        }
    }
}

impl First {
    /// Value of the timestamp clock at a time.
    pub fn shown(&self, time: Time) -> u32 {
        self.clock_ms
            .wrapping_add((time.microseconds() / 1000) as u32)
    }

    /// Draw random numbers, as RFC 6528 requires for sequences and Linux does for the others. In one connection of
    /// eight the sequence starts within 2^8 to 2^24 of its wrap, since a short capture would rarely contain one
    /// otherwise.
    fn drawn(random: &mut impl RngCore) -> First {
        let [which, any, other] = [(); 3].map(|()| random.next_u64());
        let sequence = if which.is_multiple_of(8) {
            u32::MAX - (any as u32 >> (8 + (which >> 3) % 16))
        } else {
            any as u32
        };
        First {
            sequence,
            identification: other as u16,
            clock_ms: (other >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_sequences_wraps_early() {
        let near = |flow| Numbers::drawn(7, flow).sender.sequence > u32::MAX - (1 << 24);
        let count = (0..8000).filter(|&flow| near(flow)).count();
        // 1/8, and 1/256 of the others, of 8000: 1027, with a standard deviation of 30.
        assert!((900..1150).contains(&count), "{count}");
    }

    #[test]
    fn numbers_follow_from_seed_and_flow() {
        let first = |seed, flow| Numbers::drawn(seed, flow).sender.sequence;
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(2, 2));
        assert_ne!(first(1, 2), first(1, 3));
    }
}
