//! What happens next: a tournament over all sources of events.
//!
//! Every source (a link, a delay line, a timer) has at most one pending event, so the set of
//! sources is fixed and only their times change. A winner tree keeps the earliest: setting a time
//! plays the matches up to the root, log2(n) comparisons without a search, and a timer moves
//! without leaving a cancelled entry behind.
//!
//! Order is total: by time, then by the source's number.

use ackclock_units::Time;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    time: Time,
    source: u32,
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
        let width = sources.max(1).next_power_of_two();
        let leaf = |node: usize| (node % width) as u32;
        let nodes = (0..2 * width)
            .map(|node| Entry {
                time: Time::NEVER,
                source: if node >= width { leaf(node) } else { 0 },
            })
            .collect();
        Agenda { nodes, width }
    }

    /// The earliest event: its time ([`Time::NEVER`] if there is none) and its source.
    #[inline]
    pub fn next(&self) -> (Time, usize) {
        let Entry { time, source } = self.nodes[1];
        (time, source as usize)
    }

    /// When the source's event is due.
    #[inline]
    pub fn time(&self, source: usize) -> Time {
        self.nodes[self.width + source].time
    }

    /// Sets the source's event; [`Time::NEVER`] removes it.
    #[inline]
    pub fn set(&mut self, source: usize, time: Time) {
        let mut node = self.width + source;
        self.nodes[node].time = time;
        while node > 1 {
            let (left, right) = (self.nodes[node & !1], self.nodes[node | 1]);
            let winner = if right.time < left.time { right } else { left };
            node >>= 1;
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// Sets the source's event unless it has an earlier one.
    #[inline]
    pub fn advance(&mut self, source: usize, time: Time) {
        if time < self.time(source) {
            self.set(source, time);
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
