//! Rows of all parts, in the order of a run on one thread.
//!
//! Samples are in the order of time and number. Rows that events write are in the order of the events. At equal times
//! the event with the lowest rank of those pending comes first, and may cause one of a lower rank: so a row is preceded
//! by those of other parts whose rank is lower than the highest rank that its own part has handled at that time.

use ackclock_core::tables::Tables;
use ackclock_core::Time;

use super::Simulation;

/// Position of a row among those of all parts: its time, and the highest rank of its part's events at that time.
type Position = (Time, u64);

/// Positions of the rows that events write.
#[derive(Default)]
pub struct Stamps {
    present: Position,
    events: Vec<Position>,
    paths: Vec<Position>,
}

impl Stamps {
    /// Record the rows that an event has added.
    #[inline]
    pub fn record(&mut self, time: Time, rank: u64, rows: &Tables) {
        let (present, highest) = self.present;
        let highest = if time == present {
            highest.max(rank)
        } else {
            rank
        };
        self.present = (time, highest);
        let (events, paths) = (rows.events.time_s.len(), rows.paths.flow.len());
        if events != self.events.len() || paths != self.paths.len() {
            self.events.resize(events, self.present);
            self.paths.resize(paths, self.present);
        }
    }
}

impl Simulation {
    /// Take the rows of all parts since the last call.
    pub(in crate::simulation) fn drain_parts(&mut self) -> Tables {
        let mut rows = Tables::default();
        let (mut events, mut paths) = (Vec::new(), Vec::new());
        let mut parts = self.parts.take();
        let others = parts.iter_mut().flat_map(|parts| &mut parts.others);
        for part in std::iter::once(&mut *self).chain(others) {
            let mut own = part.network.take_rows();
            if let Some(share) = &mut part.share {
                events.append(&mut share.stamps.events);
                paths.append(&mut share.stamps.paths);
            }
            rows.events.append(&mut own.events);
            rows.paths.append(&mut own.paths);
            rows.flow_samples.append(&mut own.flow_samples);
            rows.cubic_samples.append(&mut own.cubic_samples);
            rows.queue_samples.append(&mut own.queue_samples);
        }
        self.parts = parts;
        rows.events.reorder(&order(&events));
        rows.paths.reorder(&order(&paths));
        let samples = &mut rows.flow_samples;
        samples.reorder(&order(&sampled(&samples.time_s, &samples.flow)));
        let samples = &mut rows.cubic_samples;
        samples.reorder(&order(&sampled(&samples.time_s, &samples.flow)));
        let samples = &mut rows.queue_samples;
        samples.reorder(&order(&sampled(&samples.time_s, &samples.link)));
        rows
    }
}

/// Positions of samples. Times are not negative, so their bits are in their order.
fn sampled(times_s: &[f64], numbers: &[u32]) -> Vec<(u64, u32)> {
    let times = times_s.iter().map(|time_s| time_s.to_bits());
    times.zip(numbers.iter().copied()).collect()
}

/// Rows in the order of their positions; those at the same position stay in theirs.
fn order<T: Ord>(positions: &[T]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..positions.len()).collect();
    rows.sort_by_key(|&row| &positions[row]);
    rows
}
