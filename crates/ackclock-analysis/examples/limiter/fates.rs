//! Loss detection for captures that were taken at the sender: the minimum that the measurement needs.

use ackclock_core::tcp::seq;
use std::collections::{BTreeMap, HashMap};

use ackclock_analysis::series::{Arrival, RttSample};
use ackclock_pcap::files::Capture;
use ackclock_pcap::packet::{Address, Endpoint, Flags, Segment};

/// The bytes of an Ethernet frame that captures leave out.
const FRAME_CHECK_SEQUENCE: u32 = 4;

/// The data from one host to another.
#[derive(Default)]
pub struct Direction {
    /// Its packets.
    pub arrivals: Vec<Arrival>,
    /// The round trips.
    pub rtts: Vec<RttSample>,
    /// The flows that sent something.
    pub flows: u32,
}

/// Bytes that are sent together, and each time they were.
struct Block {
    end: i64,
    copies: Vec<usize>,
    delivered_ns: Option<i64>,
    duplicates: usize,
}

#[derive(Default)]
struct Flow {
    number: u32,
    blocks: BTreeMap<i64, Block>,
    last: Option<(u32, i64)>,
    acknowledged: i64,
    rtt_min_ns: Option<i64>,
}

impl Flow {
    /// The number without wrapping.
    fn unwrapped(&mut self, number: u32) -> i64 {
        let (known, at) = *self.last.get_or_insert((number, 1 << 40));
        let at = at + i64::from(seq::distance(number, known));
        self.last = Some((number, at));
        at
    }

    fn sent(&mut self, start: i64, end: i64, arrival: usize) {
        let mut covered = false;
        let from = self
            .blocks
            .range(..=start)
            .next_back()
            .map_or(start, |(&first, _)| first);
        for (&first, block) in self.blocks.range_mut(from..end) {
            if block.end > start && first < end {
                block.copies.push(arrival);
                covered = true;
            }
        }
        if !covered {
            self.blocks.insert(
                start,
                Block {
                    end,
                    copies: vec![arrival],
                    delivered_ns: None,
                    duplicates: 0,
                },
            );
        }
    }

    fn delivered(&mut self, start: i64, end: i64, now_ns: i64, direction: &mut Direction) {
        let mut newest = None;
        for (_, block) in self.blocks.range_mut(start..end) {
            if block.end > end || block.delivered_ns.is_some() {
                continue;
            }
            block.delivered_ns = Some(now_ns);
            if let [only] = block.copies[..] {
                newest = Some(direction.arrivals[only].time_ns);
            }
        }
        if let Some(sent_ns) = newest {
            let rtt_ns = now_ns - sent_ns;
            self.rtt_min_ns = Some(self.rtt_min_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
            direction.rtts.push(RttSample {
                time_ns: sent_ns,
                rtt_ns,
                flow: self.number,
                path: 0,
                behind: false,
            });
        }
    }

    fn acknowledgement(&mut self, segment: &Segment, now_ns: i64, direction: &mut Direction) {
        let ack = self.unwrapped(segment.acknowledgement);
        let sack: Vec<(i64, i64)> = segment
            .options
            .sack()
            .iter()
            .map(|&(from, to)| {
                let at =
                    |number: u32| ack + i64::from(seq::distance(number, segment.acknowledgement));
                (at(from), at(to))
            })
            .collect();
        let duplicate = sack.first().is_some_and(|&(from, to)| {
            to <= ack
                || sack
                    .get(1)
                    .is_some_and(|&(low, high)| low <= from && to <= high)
        });
        if duplicate {
            for (_, block) in self.blocks.range_mut(sack[0].0..sack[0].1) {
                block.duplicates += 1;
            }
        }
        if ack > self.acknowledged {
            let from = self.acknowledged;
            self.acknowledged = ack;
            self.delivered(from, ack, now_ns, direction);
        }
        for &(from, to) in sack.iter().skip(usize::from(duplicate)) {
            self.delivered(from, to, now_ns, direction);
        }
    }

    /// Mark what was lost. A copy that had no time to be acknowledged is not the one that arrived.
    fn finish(&self, direction: &mut Direction) {
        let least_ns = self.rtt_min_ns.unwrap_or(0) * 9 / 10;
        let mut known = HashMap::new();
        for block in self.blocks.values() {
            let copies = &block.copies;
            let arrived = match block.delivered_ns {
                Some(delivered_ns) => copies
                    .iter()
                    .rposition(|&copy| direction.arrivals[copy].time_ns + least_ns <= delivered_ns)
                    .unwrap_or(0),
                None => copies.len() - 1,
            };
            let mut duplicates = block.duplicates;
            for (place, &copy) in copies.iter().enumerate().rev() {
                let lost = if place == arrived {
                    false
                } else if duplicates > 0 {
                    duplicates -= 1;
                    false
                } else {
                    true
                };
                let all: &mut bool = known.entry(copy).or_insert(true);
                *all &= lost;
            }
        }
        for (copy, lost) in known {
            direction.arrivals[copy].lost = lost;
        }
    }
}

/// Return the data of each pair of hosts, largest first; with `pool`, all data from lower ports to higher ones and
/// back.
pub fn directions(capture: &mut Capture, pool: bool) -> Vec<Direction> {
    let mut directions: HashMap<(Address, Address), Direction> = HashMap::new();
    let key = |from: Endpoint, to: Endpoint| {
        if pool {
            (Address(u128::from(from.port > to.port)), Address(0))
        } else {
            (from.address, to.address)
        }
    };
    let mut flows: HashMap<(Endpoint, Endpoint), Flow> = HashMap::new();
    for segment in capture.filter(|segment| !segment.duplicate) {
        let Some(now_ns) = segment.time_ns else {
            continue;
        };
        let (from, to) = (segment.source, segment.destination);
        let controls =
            u32::from(segment.flags.has(Flags::SYN)) + u32::from(segment.flags.has(Flags::FIN));
        let direction = directions.entry(key(from, to)).or_default();
        let flow = flows.entry((from, to)).or_insert_with(|| {
            direction.flows += 1;
            Flow {
                number: direction.flows - 1,
                ..Flow::default()
            }
        });
        let start = flow.unwrapped(segment.sequence);
        let end = start + i64::from(segment.payload_bytes + controls);
        if end > start {
            flow.sent(start, end, direction.arrivals.len());
        }
        direction.arrivals.push(Arrival {
            time_ns: now_ns,
            bytes: segment.frame_bytes + FRAME_CHECK_SEQUENCE,
            path: 0,
            lost: false,
        });
        if segment.flags.has(Flags::ACK) {
            if let Some(flow) = flows.get_mut(&(to, from)) {
                let back = directions.entry(key(to, from)).or_default();
                flow.acknowledgement(&segment, now_ns, back);
            }
        }
    }
    for ((from, to), flow) in &flows {
        if let Some(direction) = directions.get_mut(&key(*from, *to)) {
            flow.finish(direction);
        }
    }
    let mut directions: Vec<Direction> = directions.into_values().collect();
    for direction in &mut directions {
        direction.arrivals.sort_by_key(|arrival| arrival.time_ns);
        direction.rtts.sort_by_key(|sample| sample.time_ns);
    }
    directions.sort_by_key(|direction| {
        std::cmp::Reverse(
            direction
                .arrivals
                .iter()
                .map(|arrival| u64::from(arrival.bytes))
                .sum::<u64>(),
        )
    });
    directions
}
