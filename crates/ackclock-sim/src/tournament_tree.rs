//! Tournament tree: event queue of sources with at most one pending event each.
//!
//! Every source (a link, a delay line, a timer) has at most one pending event, so only the times of the
//! sources change. A tree of matches of two entries each keeps the earliest: setting a time
//! plays the matches up to the root, log2(n) of them without a search, and a timer moves
//! without leaving a cancelled entry behind.
//!
//! The order is total: by time, then by the source's rank, which is its number by default.

use ackclock_core::Time;

/// A source's event: its time, the source's rank, its number, from the highest bits to the lowest.
type Entry = u128;

fn entry(time: Time, rank: u32, source: usize) -> Entry {
    at(time, Entry::from(rank) << 32 | source as Entry)
}

/// The same source's event at another time.
#[inline(always)]
fn at(time: Time, entry: Entry) -> Entry {
    Entry::from(time.picoseconds()) << 64 | Entry::from(entry as u64)
}

#[inline(always)]
fn time_of(entry: Entry) -> Time {
    Time::from_picoseconds((entry >> 64) as u64)
}

/// No source has a later event.
const NO_ENTRY: Entry = Entry::MAX;

/// The pending event of each source, the earliest first.
pub struct TournamentTree {
    /// The overall winner.
    first: Entry,
    /// Entries by player. The players 2n and 2n + 1 meet in match n, whose winner is player n; so player 1 is the winner
    /// of all.
    players: Vec<Entry>,
    /// Source i is player `width + i`; a power of two.
    width: usize,
}

impl TournamentTree {
    /// A tree of `sources` sources, none of which has an event.
    pub fn new(sources: usize) -> TournamentTree {
        let mut tree = TournamentTree {
            first: NO_ENTRY,
            players: Vec::new(),
            width: 0,
        };
        tree.reserve(sources);
        tree
    }

    /// Make room for `sources` sources; present ones keep their events.
    pub fn reserve(&mut self, sources: usize) {
        if sources.max(1) <= self.width {
            return;
        }
        let width = sources.next_power_of_two();
        let idle = |source| entry(Time::NEVER, source as u32, source);
        let kept = (0..self.width).map(|source| self.entry(source));
        let entries: Vec<Entry> = kept.chain((self.width..width).map(idle)).collect();
        self.players = vec![NO_ENTRY; 2 * width];
        self.width = width;
        for (source, &entry) in entries.iter().enumerate() {
            self.replace(source, entry);
        }
    }

    /// The earliest event: its time ([`Time::NEVER`] if there is none) and its source.
    #[inline(always)]
    pub fn next(&self) -> (Time, usize) {
        (time_of(self.first), self.first as u32 as usize)
    }

    /// Time of the source's event.
    #[inline(always)]
    pub fn time(&self, source: usize) -> Time {
        time_of(self.entry(source))
    }

    #[inline(always)]
    fn entry(&self, source: usize) -> Entry {
        self.players[self.width + source]
    }

    /// Set the source's event; [`Time::NEVER`] removes it.
    #[inline(always)]
    pub fn set(&mut self, source: usize, time: Time) {
        if self.width == 1 {
            return self.set_winner(at(time, self.first));
        }
        let before = self.entry(source);
        if time != time_of(before) {
            self.replace(source, at(time, before));
        }
    }

    /// Set the source's event unless it has an earlier one.
    #[inline]
    pub fn advance(&mut self, source: usize, time: Time) {
        if time < self.time(source) {
            self.set(source, time);
        }
    }

    /// Give a source this rank and no event.
    pub fn register(&mut self, source: usize, rank: u32) {
        self.replace(source, entry(Time::NEVER, rank, source));
    }

    #[inline(always)]
    fn replace(&mut self, source: usize, entry: Entry) {
        if self.width == 1 {
            self.set_winner(entry);
        } else {
            self.replay_matches(source, entry);
        }
    }

    /// Replay the matches that an entry changes. Most change the overall winner, which has won all its matches.
    #[inline(never)]
    fn replay_matches(&mut self, source: usize, entry: Entry) {
        let (mut player, mut winner) = (self.width + source, entry);
        let (matches, _) = self.players.as_chunks_mut::<2>();
        while player > 1 {
            let pair = &mut matches[player / 2];
            pair[player % 2] = winner;
            winner = winner.min(pair[1 - player % 2]);
            player /= 2;
        }
        self.set_winner(winner);
    }

    #[inline(always)]
    fn set_winner(&mut self, winner: Entry) {
        self.players[1] = winner;
        self.first = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_lower_source() {
        let mut tree = TournamentTree::new(5);
        for source in [4, 2, 3] {
            tree.set(source, Time::from_milliseconds(7));
        }
        assert_eq!(tree.next(), (Time::from_milliseconds(7), 2));
        tree.set(2, Time::NEVER);
        assert_eq!(tree.next(), (Time::from_milliseconds(7), 3));
    }

    #[test]
    fn an_empty_tree_has_no_event() {
        assert_eq!(TournamentTree::new(0).next().0, Time::NEVER);
        assert_eq!(TournamentTree::new(3).next().0, Time::NEVER);
    }

    #[test]
    fn ties_go_to_the_lower_rank() {
        let mut tree = TournamentTree::new(3);
        for (source, rank) in [(0, 9), (1, 7), (2, 8)] {
            tree.register(source, rank);
            tree.set(source, Time::from_milliseconds(1));
        }
        assert_eq!(tree.next().1, 1);
        tree.register(1, 10);
        assert_eq!(tree.next(), (Time::from_milliseconds(1), 2));
        tree.set(1, Time::from_milliseconds(1));
        tree.set(2, Time::NEVER);
        assert_eq!(tree.next().1, 0);
    }

    #[test]
    fn reserve_keeps_the_events() {
        let mut tree = TournamentTree::new(2);
        tree.register(0, 5);
        for source in [0, 1] {
            tree.set(source, Time::from_milliseconds(3));
        }
        tree.reserve(9);
        assert_eq!(tree.next(), (Time::from_milliseconds(3), 1));
        tree.set(8, Time::from_milliseconds(2));
        assert_eq!(tree.next(), (Time::from_milliseconds(2), 8));
    }

    proptest! {
        #[test]
        fn agrees_with_a_linear_search(changes in prop::collection::vec((0_usize..13, 0_u64..50), 1..200)) {
            let mut tree = TournamentTree::new(13);
            let mut times = [Time::NEVER; 13];
            for (source, when) in changes {
                let time = if when == 0 { Time::NEVER } else { Time::from_microseconds(when) };
                times[source] = time;
                tree.set(source, time);
                let earliest = *times.iter().min().unwrap();
                prop_assert_eq!(tree.next().0, earliest);
                if !earliest.is_never() {
                    let first = times.iter().position(|&time| time == earliest).unwrap();
                    prop_assert_eq!(tree.next().1, first);
                }
            }
        }
    }
}
