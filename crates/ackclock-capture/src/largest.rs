//! What answers need of all connections, without their tables: sums over them, and one by one those with the most data,
//! as there may be millions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use ackclock_core::tables::EventKind;

use crate::tables::{Events, Flows, Vantage};

/// Connections that were left out before their silences are looked for.
const MOST_GONE: usize = 1 << 16;

/// Sums over the directions that were seen from a vantage; of delivered bytes, over those that carry their connection's
/// most data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Seen {
    pub directions: u64,
    pub payload_bytes: u64,
    pub delivered_bytes: u64,
    pub lost: u64,
    pub capture_lost: u64,
    pub data_segments: u64,
}

/// A silence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stood {
    /// Of which direction.
    pub flow: u32,
    /// When it began.
    pub time_s: f64,
    /// How long it was.
    pub duration_s: f64,
    /// A [`crate::tables::Stall`].
    pub class: u8,
}

/// A connection that is kept: how much data it carries, its number, and where its rows are.
type Kept = (u64, u32, [Option<usize>; 2]);

/// Sums, and the connections with the most data: at most so many.
#[derive(Debug)]
pub struct Largest {
    most: usize,
    seen: [Seen; Vantage::NAMES.len()],
    /// The smallest first.
    kept: BinaryHeap<Reverse<Kept>>,
    rows: Flows,
    /// Rows that are nobody's any more.
    free: Vec<usize>,
    stalls: Vec<Stood>,
    gone: Vec<u32>,
}

impl Largest {
    /// Of nothing so far.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            seen: <[Seen; Vantage::NAMES.len()]>::default(),
            kept: BinaryHeap::new(),
            rows: Flows::default(),
            free: Vec::new(),
            stalls: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Takes rows in; those of one connection come together, and its events no later.
    pub fn take(&mut self, flows: &Flows, events: &Events) {
        let stalls =
            (0..events.kind.len()).filter(|&row| events.kind[row] == EventKind::Stall as u8);
        self.stalls.extend(stalls.map(|row| Stood {
            flow: events.flow[row],
            time_s: events.time_s[row],
            duration_s: events.duration_s[row],
            class: events.class[row],
        }));
        let mut row = 0;
        for part in flows.flow.chunk_by(|one, other| one / 2 == other / 2) {
            let rows = row..row + part.len();
            let main = (rows.clone().rev()).max_by_key(|&row| flows.payload_bytes[row]);
            for row in rows.clone() {
                self.count(flows, row, main == Some(row));
            }
            let bytes = flows.payload_bytes[rows.clone()].iter().sum();
            self.connection(bytes, part[0] / 2, rows.clone(), flows);
            row = rows.end;
        }
        if self.gone.len() > MOST_GONE {
            self.forget();
        }
    }

    fn count(&mut self, flows: &Flows, row: usize, main: bool) {
        let seen = &mut self.seen[usize::from(flows.vantage[row])];
        seen.directions += 1;
        seen.payload_bytes += flows.payload_bytes[row];
        seen.delivered_bytes += u64::from(main) * flows.delivered_bytes[row];
        seen.lost += flows.lost[row] + flows.lost_before[row];
        seen.capture_lost += flows.capture_lost[row];
        seen.data_segments += flows.data_segments[row];
    }

    /// Keeps a connection if it is larger than the smallest; of equally large ones the later.
    fn connection(&mut self, bytes: u64, number: u32, rows: Range<usize>, flows: &Flows) {
        if self.kept.len() == self.most {
            let larger =
                |smallest: &Reverse<Kept>| (bytes, number) > (smallest.0 .0, smallest.0 .1);
            if !self.kept.peek().is_some_and(larger) {
                self.gone.push(number);
                return;
            }
            if let Some(Reverse((_, number, places))) = self.kept.pop() {
                self.gone.push(number);
                self.free.extend(places.into_iter().flatten());
            }
        }
        let mut places = [None; 2];
        for (place, row) in places.iter_mut().zip(rows) {
            let at = self.free.pop().unwrap_or(self.rows.flow.len());
            self.rows.put(at, flows, row);
            *place = Some(at);
        }
        self.kept.push(Reverse((bytes, number, places)));
    }

    /// Forgets the silences of connections that were left out.
    fn forget(&mut self) {
        let mut gone = std::mem::take(&mut self.gone);
        gone.sort_unstable();
        let is_gone = |flow: u32| gone.binary_search(&(flow / 2)).is_ok();
        self.stalls.retain(|stall| !is_gone(stall.flow));
    }

    /// The sums of each vantage, by [`Vantage`].
    pub fn seen(&self) -> &[Seen] {
        &self.seen
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
        for (place, row) in order.into_iter().enumerate() {
            rows.put(place, &self.rows, row);
        }
        rows
    }

    /// Their silences, in the order of time.
    pub fn stalls(&self) -> Vec<Stood> {
        let mut kept: Vec<u32> = self.kept.iter().map(|kept| kept.0 .1).collect();
        kept.sort_unstable();
        let known = |stall: &&Stood| kept.binary_search(&(stall.flow / 2)).is_ok();
        let mut stalls: Vec<Stood> = self.stalls.iter().filter(known).copied().collect();
        stalls.sort_by(|one, other| one.time_s.total_cmp(&other.time_s));
        stalls
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
            lost_before: counts.clone(),
            capture_lost: counts.clone(),
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
        let mut largest = Largest::new(1);
        let mut of_two = rows(&[(0, 100), (1, 50)]);
        of_two.vantage[1] = Vantage::Middle as u8;
        largest.take(&of_two, &Events::default());
        largest.take(&rows(&[(2, 7)]), &Events::default());
        let sender = Seen {
            directions: 2,
            payload_bytes: 107,
            delivered_bytes: 107,
            lost: 4,
            capture_lost: 2,
            data_segments: 2,
        };
        assert_eq!(largest.seen()[Vantage::Sender as usize], sender);
        let middle = largest.seen()[Vantage::Middle as usize];
        assert_eq!((middle.payload_bytes, middle.delivered_bytes), (50, 0));
    }

    #[test]
    fn the_largest_connections_are_those_of_most_bytes_in_both_directions() {
        let mut largest = Largest::new(2);
        largest.take(
            &rows(&[(0, 100), (4, 110), (2, 60), (3, 60)]),
            &Events::default(),
        );
        largest.take(&rows(&[(6, 5), (8, 115)]), &Events::default());
        assert_eq!(largest.rows().flow, [2, 3, 8]);
    }

    #[test]
    fn of_equally_large_ones_the_later_stay_however_many_come() {
        let mut largest = Largest::new(3);
        for number in 0..100 {
            largest.take(&rows(&[(2 * number, 10)]), &Events::default());
            assert!(largest.rows.flow.len() <= 3);
        }
        assert_eq!(largest.rows().flow, [194, 196, 198]);
    }

    #[test]
    fn silences_go_with_their_connection() {
        let mut largest = Largest::new(1);
        largest.take(&rows(&[(0, 10)]), &stalls(&[0, 2, 5]));
        largest.take(&rows(&[(2, 30), (4, 20), (5, 5)]), &Events::default());
        let flows = |of: &[Stood]| of.iter().map(|stall| stall.flow).collect::<Vec<_>>();
        assert_eq!(flows(&largest.stalls()), [2]);
        largest.forget();
        assert_eq!(flows(&largest.stalls), [2]);
    }

    #[test]
    fn no_connection_is_none() {
        let mut largest = Largest::new(2);
        largest.take(&Flows::default(), &Events::default());
        assert!(largest.rows().flow.is_empty() && largest.stalls().is_empty());
    }
}
