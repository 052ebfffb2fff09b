//! The latency spin bit (RFC 9000 section 17.4): a square wave between the ends, with one edge for each round trip.
//!
//! ```text
//!   client sends 0 ──edge──▶ client sends 1 ──edge──▶ client sends 0
//!                    │                  ▲
//!                    └─ server reflects ┘
//! ```
//!
//! The server reflects the client's bit, and the client inverts the server's, so edges alternate between the ends. An
//! edge out of turn comes from reordering (RFC 9312 section 3.8.2) or from an end that does not spin; a random bit has
//! one in every fourth packet or more.

/// Packets that are needed: a random bit keeps this many in turn with a probability of (3/4)^32, which is 1e-4.
const MIN_PACKETS: u64 = 32;
/// Edges that are needed, two round trips.
const MIN_EDGES: u64 = 4;
/// The share of packets out of turn that reordering may cause; a random bit has 0.25 or more.
const MAX_OUT_OF_TURN: f64 = 0.05;

/// Behaviour of the spin bit of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinState {
    /// Too few packets, or those of one end only.
    Undecided,
    /// It never changes: spinning is disabled.
    Constant,
    /// It changes out of turn: spinning is disabled, and the bit is random.
    Random,
    /// It spins.
    Spinning,
}

impl SpinState {
    /// The names, in their order.
    pub const NAMES: [&str; 4] = ["undecided", "constant", "random", "spinning"];
}

/// Samples of a time: their number, minimum, sum and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The number of samples.
    pub count: u64,
    /// The smallest, in nanoseconds.
    pub min_ns: i64,
    /// The largest, in nanoseconds.
    pub max_ns: i64,
    sum_ns: i128,
}

impl Samples {
    /// Add one.
    pub fn add(&mut self, ns: i64) {
        (self.min_ns, self.max_ns) = if self.count == 0 {
            (ns, ns)
        } else {
            (self.min_ns.min(ns), self.max_ns.max(ns))
        };
        self.count += 1;
        self.sum_ns += i128::from(ns);
    }

    /// Return the mean in seconds; None without samples.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 * 1e-9)
    }

    /// Return the maximum in seconds; None without samples.
    pub fn max_s(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64 * 1e-9)
    }

    /// Return the minimum in seconds; None without samples.
    pub fn min_s(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min_ns as f64 * 1e-9)
    }
}

/// The spin bit of both ends of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin {
    /// The bit that each end, client and server, sends.
    bits: [Option<bool>; 2],
    /// When that bit began, if its beginning was seen.
    edges_ns: [Option<i64>; 2],
    packets: [u64; 2],
    edges: u64,
    out_of_turn: u64,
    /// Round trips: between edges of the client.
    round_trips: Samples,
    /// From the vantage point to the server and back.
    to_server: Samples,
    /// From the vantage point to the client and back.
    to_client: Samples,
}

impl Spin {
    /// Take the bit of a packet with a short header that one end, 0 the client, sent.
    pub fn take(&mut self, end: usize, bit: bool, now_ns: i64) {
        self.packets[end] += 1;
        let other = self.bits[1 - end];
        let Some(before) = self.bits[end] else {
            self.bits[end] = Some(bit);
            return;
        };
        if bit == before {
            return;
        }
        // The client inverts what the server sends; the server reflects what the client sends.
        let is_in_turn = other.is_none_or(|other| (bit == other) == (end == 1));
        if !is_in_turn {
            self.out_of_turn += 1;
            return;
        }
        self.edges += 1;
        self.bits[end] = Some(bit);
        let before_ns = self.edges_ns[end].replace(now_ns);
        if let Some(prompt_ns) = self.edges_ns[1 - end] {
            let half = [&mut self.to_client, &mut self.to_server];
            half[end].add(now_ns - prompt_ns);
        }
        if let (0, Some(before_ns)) = (end, before_ns) {
            self.round_trips.add(now_ns - before_ns);
        }
    }

    /// Return what it does, so far.
    pub fn state(&self) -> SpinState {
        let packets = self.packets[0] + self.packets[1];
        let both = self.packets.iter().all(|&packets| packets > 0);
        if packets < MIN_PACKETS || !both {
            SpinState::Undecided
        } else if self.out_of_turn as f64 > MAX_OUT_OF_TURN * packets as f64 {
            SpinState::Random
        } else if self.edges == 0 {
            SpinState::Constant
        } else if self.edges < MIN_EDGES {
            SpinState::Undecided
        } else {
            SpinState::Spinning
        }
    }

    /// Return the round-trip times, and those of the halves to the client and to the server; none unless it spins.
    pub fn rtts(&self) -> Option<[Samples; 3]> {
        let all = [self.round_trips, self.to_client, self.to_server];
        (self.state() == SpinState::Spinning).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A connection whose server is 30 ms and whose client is 10 ms from the vantage point, `packets` at each turn.
    fn spinning(packets: usize) -> Spin {
        let mut spin = Spin::default();
        for round in 0..20 {
            for copy in 0..packets {
                let late = copy as i64;
                spin.take(0, round % 2 == 1, 40 * round * MS + late);
            }
            for copy in 0..packets {
                let late = copy as i64;
                spin.take(1, round % 2 == 1, (40 * round + 30) * MS + late);
            }
        }
        spin
    }

    #[test]
    fn edges_give_the_round_trip_and_its_halves() {
        for packets in [1, 5] {
            let spin = spinning(packets);
            assert_eq!(spin.state(), SpinState::Spinning);
            let [all, to_client, to_server] = spin.rtts().unwrap();
            assert_eq!((all.min_ns, all.max_ns), (40 * MS, 40 * MS));
            assert_eq!(to_client.min_ns, 10 * MS);
            assert_eq!(to_server.max_ns, 30 * MS);
        }
    }

    #[test]
    fn a_late_packet_at_an_edge_makes_no_round_trip() {
        let mut spin = Spin::default();
        for round in 0..20_i64 {
            let bit = round % 2 == 1;
            spin.take(0, bit, 40 * round * MS);
            if round == 7 {
                spin.take(0, !bit, 40 * round * MS + 1);
                spin.take(0, bit, 40 * round * MS + 2);
            }
            spin.take(1, bit, (40 * round + 30) * MS);
        }
        assert_eq!(spin.state(), SpinState::Spinning);
        assert_eq!(spin.rtts().unwrap()[0].min_ns, 40 * MS);
    }

    #[test]
    fn random_and_constant_bits_have_no_round_trip() {
        let (mut random, mut constant) = (Spin::default(), Spin::default());
        let mut draw = 1_u32;
        for packet in 0..400 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random.take(packet % 2, draw >> 31 == 1, packet as i64 * MS);
            constant.take(packet % 2, true, packet as i64 * MS);
        }
        assert_eq!(random.state(), SpinState::Random);
        assert_eq!(constant.state(), SpinState::Constant);
        assert_eq!(random.rtts(), None);
    }

    #[test]
    fn one_end_or_few_packets_leave_it_undecided() {
        let mut one = Spin::default();
        for packet in 0..100 {
            one.take(1, packet / 10 % 2 == 1, packet * MS);
        }
        assert_eq!(one.state(), SpinState::Undecided);
        assert_eq!(Spin::default().state(), SpinState::Undecided);
    }
}
