//! Sums over all connections, and the connections with the most data (top talkers), without keeping the tables of
//! millions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use ackclock_core::tables::{EventKind, UNKNOWN};

use crate::tables::{Events, Flows, Vantage};

/// Connections that were left out before their stalls are looked for.
const MAX_EVICTED: usize = 1 << 16;

/// Sums over the directions that were seen from a vantage; of delivered bytes, over those that carry their connection's
/// most data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct VantageTotals {
    pub directions: u64,
    pub payload_bytes: u64,
    pub delivered_bytes: u64,
    pub lost: u64,
    /// Connections with data that were not captured: their losses are unknown, and in no sum.
    pub unseen: u64,
    pub not_captured: u64,
    pub data_segments: u64,
}

/// A stall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallEvent {
    /// The flow.
    pub flow: u32,
    /// When it began.
    pub time_s: f64,
    /// Its duration.
    pub duration_s: f64,
    /// A [`crate::tables::Stall`].
    pub class: u8,
}

/// A connection that is kept: how much data it carries, its number, and where its rows are.
type AckTraces = (u64, u32, [Option<usize>; 2]);

/// Sums, and the connections with the most data: at most so many.
#[derive(Debug)]
pub struct TopTalkers {
    capacity: usize,
    totals: [VantageTotals; Vantage::NAMES.len()],
    /// The smallest first.
    kept: BinaryHeap<Reverse<AckTraces>>,
    rows: Flows,
    /// Free rows.
    free: Vec<usize>,
    stalls: Vec<StallEvent>,
    evicted: Vec<u32>,
}

impl TopTalkers {
    /// Create an empty selection.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            totals: <[VantageTotals; Vantage::NAMES.len()]>::default(),
            kept: BinaryHeap::new(),
            rows: Flows::default(),
            free: Vec::new(),
            stalls: Vec::new(),
            evicted: Vec::new(),
        }
    }

    /// Add rows; those of one connection are contiguous, and its events are not later.
    pub fn take(&mut self, flows: &Flows, events: &Events) {
        let stalls =
            (0..events.kind.len()).filter(|&row| events.kind[row] == EventKind::Stall as u8);
        self.stalls.extend(stalls.map(|row| StallEvent {
            flow: events.flow[row],
            time_s: events.time_s[row],
            duration_s: events.duration_s[row],
            class: events.class[row],
        }));
        let mut row = 0;
        for part in flows.flow.chunk_by(|one, other| one / 2 == other / 2) {
            let rows = row..row + part.len();
            let main = (rows.clone().rev()).max_by_key(|&row| bytes_of(flows, row));
            for row in rows.clone() {
                self.add_totals(flows, row, main == Some(row));
            }
            let bytes = rows.clone().map(|row| bytes_of(flows, row)).sum();
            let is_unseen = |row: usize| flows.lost[row] == UNKNOWN;
            if let Some(row) = rows.clone().find(|&row| is_unseen(row)) {
                self.totals[usize::from(flows.vantage[row])].unseen += 1;
            }
            self.add_connection(bytes, part[0] / 2, rows.clone(), flows);
            row = rows.end;
        }
        if self.evicted.len() > MAX_EVICTED {
            self.forget_evicted();
        }
    }

    fn add_totals(&mut self, flows: &Flows, row: usize, main: bool) {
        let totals = &mut self.totals[usize::from(flows.vantage[row])];
        totals.directions += 1;
        totals.payload_bytes += flows.payload_bytes[row];
        totals.delivered_bytes += u64::from(main) * or_zero(flows.delivered_bytes[row]);
        totals.lost += or_zero(flows.lost[row]) + or_zero(flows.lost_upstream[row]);
        totals.not_captured += or_zero(flows.not_captured[row]);
        totals.data_segments += flows.data_segments[row];
    }

    /// Keep a connection if it is larger than the smallest; of equally large ones the later.
    fn add_connection(&mut self, bytes: u64, number: u32, rows: Range<usize>, flows: &Flows) {
        if self.kept.len() == self.capacity {
            let larger =
                |smallest: &Reverse<AckTraces>| (bytes, number) > (smallest.0 .0, smallest.0 .1);
            if !self.kept.peek().is_some_and(larger) {
                self.evicted.push(number);
                return;
            }
            if let Some(Reverse((_, number, slots))) = self.kept.pop() {
                self.evicted.push(number);
                self.free.extend(slots.into_iter().flatten());
            }
        }
        let mut slots = [None; 2];
        for (slot, row) in slots.iter_mut().zip(rows) {
            let at = self.free.pop().unwrap_or(self.rows.flow.len());
            self.rows.put(at, flows, row);
            *slot = Some(at);
        }
        self.kept.push(Reverse((bytes, number, slots)));
    }

    /// Forget the stalls of connections that were left out.
    fn forget_evicted(&mut self) {
        let mut evicted = std::mem::take(&mut self.evicted);
        evicted.sort_unstable();
        let is_evicted = |flow: u32| evicted.binary_search(&(flow / 2)).is_ok();
        self.stalls.retain(|stall| !is_evicted(stall.flow));
    }

    /// The sums of each vantage, by [`Vantage`].
    pub fn totals(&self) -> &[VantageTotals] {
        &self.totals
    }

    /// The rows of the connections with the most data, in the order of their numbers.
    pub fn rows(&self) -> Flows {
        let mut order: Vec<usize> = self
            .kept
            .iter()
            .flat_map(|kept| kept.0 .2)
            .flatten()
            .collect();
        order.sort_by_key(|&row| self.rows.flow[row]);
        let mut rows = Flows::default();
        for (slot, row) in order.into_iter().enumerate() {
            rows.put(slot, &self.rows, row);
        }
        rows
    }

    /// Their stalls, in the order of time.
    pub fn stalls(&self) -> Vec<StallEvent> {
        let mut kept: Vec<u32> = self.kept.iter().map(|kept| kept.0 .1).collect();
        kept.sort_unstable();
        let is_kept = |stall: &&StallEvent| kept.binary_search(&(stall.flow / 2)).is_ok();
        let mut stalls: Vec<StallEvent> = self.stalls.iter().filter(is_kept).copied().collect();
        stalls.sort_by(|one, other| one.time_s.total_cmp(&other.time_s));
        stalls
    }
}

/// The bytes that a row's direction sent: those captured, or else those acknowledged.
fn bytes_of(flows: &Flows, row: usize) -> u64 {
    flows.payload_bytes[row].max(or_zero(flows.delivered_bytes[row]))
}

/// A count of which the unknown part is left out.
fn or_zero(count: u64) -> u64 {
    if count == UNKNOWN {
        0
    } else {
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of directions with so much data, and what else sums need.
    fn rows(of: &[(u32, u64)]) -> Flows {
        let counts = vec![1; of.len()];
        Flows {
            flow: of.iter().map(|&(flow, _)| flow).collect(),
            payload_bytes: of.iter().map(|&(_, bytes)| bytes).collect(),
            vantage: vec![Vantage::Sender as u8; of.len()],
            delivered_bytes: of.iter().map(|&(_, bytes)| bytes).collect(),
            lost: counts.clone(),
            lost_upstream: counts.clone(),
            not_captured: counts.clone(),
            data_segments: counts,
            ..Flows::default()
        }
    }

    fn stalls(of: &[u32]) -> Events {
        Events {
            flow: of.to_vec(),
            time_s: vec![1.0; of.len()],
            kind: vec![EventKind::Stall as u8; of.len()],
            class: vec![0; of.len()],
            duration_s: vec![0.5; of.len()],
            ..Events::default()
        }
    }

    #[test]
    fn of_a_vantage_all_directions_are_summed() {
        let mut largest = TopTalkers::new(1);
        let mut of_two = rows(&[(0, 100), (1, 50)]);
        of_two.vantage[1] = Vantage::Middle as u8;
        largest.take(&of_two, &Events::default());
        largest.take(&rows(&[(2, 7)]), &Events::default());
        let sender = VantageTotals {
            directions: 2,
            payload_bytes: 107,
            delivered_bytes: 107,
            lost: 4,
            unseen: 0,
            not_captured: 2,
            data_segments: 2,
        };
        assert_eq!(largest.totals()[Vantage::Sender as usize], sender);
        let middle = largest.totals()[Vantage::Middle as usize];
        assert_eq!((middle.payload_bytes, middle.delivered_bytes), (50, 0));
    }

    #[test]
    fn top_talkers_are_ranked_by_bytes_of_both_directions() {
        let mut largest = TopTalkers::new(2);
        largest.take(
            &rows(&[(0, 100), (4, 110), (2, 60), (3, 60)]),
            &Events::default(),
        );
        largest.take(&rows(&[(6, 5), (8, 115)]), &Events::default());
        assert_eq!(largest.rows().flow, [2, 3, 8]);
    }

    #[test]
    fn of_equally_large_ones_the_later_are_kept() {
        let mut largest = TopTalkers::new(3);
        for number in 0..100 {
            largest.take(&rows(&[(2 * number, 10)]), &Events::default());
            assert!(largest.rows.flow.len() <= 3);
        }
        assert_eq!(largest.rows().flow, [194, 196, 198]);
    }

    #[test]
    fn stalls_are_dropped_with_their_connection() {
        let mut largest = TopTalkers::new(1);
        largest.take(&rows(&[(0, 10)]), &stalls(&[0, 2, 5]));
        largest.take(&rows(&[(2, 30), (4, 20), (5, 5)]), &Events::default());
        let flows = |of: &[StallEvent]| of.iter().map(|stall| stall.flow).collect::<Vec<_>>();
        assert_eq!(flows(&largest.stalls()), [2]);
        largest.forget_evicted();
        assert_eq!(flows(&largest.stalls), [2]);
    }

    #[test]
    fn no_connection_is_none() {
        let mut largest = TopTalkers::new(2);
        largest.take(&Flows::default(), &Events::default());
        assert!(largest.rows().flow.is_empty() && largest.stalls().is_empty());
    }
}
