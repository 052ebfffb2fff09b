//! The levels of a bucket over time, thinned out for a figure.

use super::trace::{in_order, LeakyBucket};
use crate::series::Arrival;

/// A point of V(t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// When a segment came.
    pub time_ns: i64,
    /// The level then, this packet included.
    pub bytes: f64,
    /// It was lost.
    pub lost: bool,
}

/// V(t) at a rate, for a figure: of each of `most` equal parts of the time the highest and lowest that passed, and the
/// highest and lowest that was lost.
pub fn levels(arrivals: &[Arrival], rate_bps: f64, most: usize) -> Vec<Level> {
    let arrivals = in_order(arrivals, |arrival| arrival.time_ns);
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
        return Vec::new();
    };
    let second = |arrival: &Arrival| arrival.time_ns.saturating_sub(first.time_ns) as f64 * 1e-9;
    let part_s = second(last) / most.max(1) as f64;
    let mut leak = LeakyBucket::new(rate_bps / 8.0);
    let mut kept = Vec::new();
    let mut extremes = [Extremes::default(); 2];
    let mut part = 0;
    for (place, arrival) in arrivals.iter().enumerate() {
        let now_s = second(arrival);
        let level = Level {
            time_ns: arrival.time_ns,
            bytes: leak.arrives(now_s, f64::from(arrival.bytes), arrival.lost),
            lost: arrival.lost,
        };
        let its_part = (now_s / part_s) as usize;
        if its_part != part {
            part = its_part;
            take_out(&mut extremes, &mut kept);
        }
        extremes[usize::from(arrival.lost)].take(place, level);
    }
    take_out(&mut extremes, &mut kept);
    kept
}

/// The first of the lowest levels and the last of the highest ones, with their places.
#[derive(Clone, Copy, Debug, Default)]
struct Extremes(Option<[(usize, Level); 2]>);

impl Extremes {
    #[inline]
    fn take(&mut self, place: usize, level: Level) {
        let [lowest, highest] = self.0.get_or_insert([(place, level); 2]);
        if level.bytes < lowest.1.bytes {
            *lowest = (place, level);
        }
        if level.bytes >= highest.1.bytes {
            *highest = (place, level);
        }
    }
}

/// Move the extremes of a part of the time to those that are kept, in the order of time.
fn take_out(extremes: &mut [Extremes; 2], kept: &mut Vec<Level>) {
    let taken = extremes.iter_mut().filter_map(|one| one.0.take());
    let mut found: Vec<(usize, Level)> = taken.flatten().collect();
    found.sort_unstable_by_key(|&(place, _)| place);
    found.dedup_by_key(|&mut (place, _)| place);
    kept.extend(found.into_iter().map(|(_, level)| level));
}
