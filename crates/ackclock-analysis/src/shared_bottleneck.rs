//! Rates of concurrent flows that seem to share a queue or a link.

/// Flows that are kept; of two that fall into one place the later stays.
const SLOTS: usize = 32;
/// Two waits are the same if they differ by less than this share of the longer.
const MAX_DIFFERENCE: f64 = 0.25;

/// A flow's last round trip with a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// The flow.
    pub flow: u32,
    /// When it ended.
    pub end_ns: i64,
    /// Its duration; 0: no round.
    pub spent_ns: i64,
    /// The queueing delay, or the minimum spacing of packets.
    pub queue_ns: i64,
    /// The delivery rate.
    pub bps: f64,
}

impl Round {
    /// They overlap, nearly, and their packets wait for as long.
    fn is_shared_with(&self, other: &Self) -> bool {
        let apart_ns = (self.queue_ns - other.queue_ns).abs() as f64;
        let longer_ns = self.queue_ns.max(other.queue_ns) as f64;
        self.flow != other.flow
            && other.end_ns + other.spent_ns > self.end_ns - self.spent_ns
            && apart_ns < MAX_DIFFERENCE * longer_ns
    }
}

/// Rounds of flows by shared queue and by shared link.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedBottleneck {
    /// Through a queue: packets wait for equally long.
    pub queues: RecentRounds,
    /// Through a link: where they follow each other most closely, they do so after equally long.
    pub links: RecentRounds,
}

/// The last round trips of flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentRounds {
    rounds: [Round; SLOTS],
}

impl RecentRounds {
    /// A round trip is over.
    #[inline]
    pub fn put(&mut self, round: Round) {
        // Both directions of a connection have a number each.
        self.rounds[(round.flow / 2) as usize % SLOTS] = round;
    }

    /// Return the total rate of the other flows.
    pub fn bps(&self, round: &Round) -> f64 {
        let others = self.rounds.iter().filter(|other| other.spent_ns > 0);
        others
            .filter(|other| round.is_shared_with(other))
            .map(|other| other.bps)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Round = Round {
        flow: 2,
        end_ns: 1000,
        spent_ns: 100,
        queue_ns: 50,
        bps: 1e6,
    };

    #[test]
    fn those_count_that_wait_as_long_at_the_same_time() {
        let mut beside = RecentRounds::default();
        beside.put(ROUND);
        assert!(beside.bps(&ROUND).abs() < 1.0);
        let other = Round { flow: 4, ..ROUND };
        let waits_longer = Round {
            flow: 6,
            queue_ns: 80,
            ..ROUND
        };
        let long_ago = Round {
            flow: 8,
            end_ns: 700,
            ..ROUND
        };
        for round in [other, waits_longer, long_ago] {
            beside.put(round);
        }
        assert!((beside.bps(&ROUND) - 1e6).abs() < 1.0);
        beside.put(Round { bps: 3e6, ..other });
        assert!((beside.bps(&ROUND) - 3e6).abs() < 1.0);
    }
}
