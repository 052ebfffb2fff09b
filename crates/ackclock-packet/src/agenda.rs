//! What happens next: a tournament over all sources of events.
//!
//! Every source (a link, a delay line, a timer) has at most one pending event, so only the times of the
//! sources change. A winner tree keeps the earliest: setting a time
//! plays the matches up to the root, log2(n) comparisons without a search, and a timer moves
//! without leaving a cancelled entry behind.
//!
//! Order is total: by time, then by the source's rank, which is its number unless said otherwise.

use ackclock_units::Time;

/// A source's event: its time, the source's rank, its number, from the highest bits to the lowest.
type Entry = u128;

fn entry(time: Time, rank: u32, source: usize) -> Entry {
    u128::from(time.picoseconds()) << 64 | u128::from(rank) << 32 | source as u128
}

#[inline(always)]
fn time_of(entry: Entry) -> Time {
    Time::from_picoseconds((entry >> 64) as u64)
}

/// The pending event of each source, the earliest first.
pub struct Agenda {
    /// `nodes[1]` is the winner of all, `nodes[width + i]` is source `i`.
    nodes: Vec<Entry>,
    width: usize,
}

impl Agenda {
    /// An agenda of `sources` sources, none of which has an event.
    pub fn new(sources: usize) -> Agenda {
        let mut agenda = Agenda {
            nodes: Vec::new(),
            width: 0,
        };
        agenda.make_room(sources);
        agenda
    }

    /// Makes room for so many sources; those that are there keep their events.
    pub fn make_room(&mut self, sources: usize) {
        let width = sources.max(1).next_power_of_two();
        if width <= self.width {
            return;
        }
        let mut nodes = vec![0; width];
        nodes.extend_from_slice(&self.nodes[self.width..]);
        nodes.extend((self.width..width).map(|source| entry(Time::NEVER, source as u32, source)));
        for node in (1..width).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        (self.nodes, self.width) = (nodes, width);
    }

    /// The earliest event: its time ([`Time::NEVER`] if there is none) and its source.
    #[inline]
    pub fn next(&self) -> (Time, usize) {
        let first = self.nodes[1];
        (time_of(first), first as u32 as usize)
    }

    /// When the source's event is due.
    #[inline]
    pub fn time(&self, source: usize) -> Time {
        time_of(self.nodes[self.width + source])
    }

    /// Sets the source's event; [`Time::NEVER`] removes it.
    #[inline]
    pub fn set(&mut self, source: usize, time: Time) {
        let rank = (self.nodes[self.width + source] >> 32) as u32;
        self.play(source, entry(time, rank, source));
    }

    /// Sets the source's event unless it has an earlier one.
    #[inline]
    pub fn advance(&mut self, source: usize, time: Time) {
        if time < self.time(source) {
            self.set(source, time);
        }
    }

    /// Gives a source this rank and no event.
    pub fn enrol(&mut self, source: usize, rank: u32) {
        self.play(source, entry(Time::NEVER, rank, source));
    }

    #[inline]
    fn play(&mut self, source: usize, entry: Entry) {
        let nodes = self.nodes.as_mut_slice();
        let (mut node, mut winner) = (self.width + source, entry);
        nodes[node] = winner;
        while node > 1 {
            winner = winner.min(nodes[node ^ 1]);
            node >>= 1;
            if nodes[node] == winner {
                return;
            }
            nodes[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_lower_source() {
        let mut agenda = Agenda::new(5);
        for source in [4, 2, 3] {
            agenda.set(source, Time::from_milliseconds(7));
        }
        assert_eq!(agenda.next(), (Time::from_milliseconds(7), 2));
        agenda.set(2, Time::NEVER);
        assert_eq!(agenda.next(), (Time::from_milliseconds(7), 3));
    }

    #[test]
    fn an_empty_agenda_never_fires() {
        assert_eq!(Agenda::new(0).next().0, Time::NEVER);
        assert_eq!(Agenda::new(3).next().0, Time::NEVER);
    }

    #[test]
    fn ties_go_to_the_lower_rank() {
        let mut agenda = Agenda::new(3);
        for (source, rank) in [(0, 9), (1, 7), (2, 8)] {
            agenda.enrol(source, rank);
            agenda.set(source, Time::from_milliseconds(1));
        }
        assert_eq!(agenda.next().1, 1);
        agenda.enrol(1, 10);
        assert_eq!(agenda.next(), (Time::from_milliseconds(1), 2));
        agenda.set(1, Time::from_milliseconds(1));
        agenda.set(2, Time::NEVER);
        assert_eq!(agenda.next().1, 0);
    }

    #[test]
    fn more_room_keeps_the_events() {
        let mut agenda = Agenda::new(2);
        agenda.enrol(0, 5);
        for source in [0, 1] {
            agenda.set(source, Time::from_milliseconds(3));
        }
        agenda.make_room(9);
        assert_eq!(agenda.next(), (Time::from_milliseconds(3), 1));
        agenda.set(8, Time::from_milliseconds(2));
        assert_eq!(agenda.next(), (Time::from_milliseconds(2), 8));
    }

    proptest! {
        #[test]
        fn agrees_with_a_linear_search(changes in prop::collection::vec((0_usize..13, 0_u64..50), 1..200)) {
            let mut agenda = Agenda::new(13);
            let mut times = [Time::NEVER; 13];
            for (source, when) in changes {
                let time = if when == 0 { Time::NEVER } else { Time::from_microseconds(when) };
                times[source] = time;
                agenda.set(source, time);
                let earliest = *times.iter().min().unwrap();
                prop_assert_eq!(agenda.next().0, earliest);
                if !earliest.is_never() {
                    let first = times.iter().position(|&time| time == earliest).unwrap();
                    prop_assert_eq!(agenda.next().1, first);
                }
            }
        }
    }
}
