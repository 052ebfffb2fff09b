//! Alignment of acknowledgements with transmissions, where the receiver acknowledges each segment without SACK.
//!
//! Nothing overtakes on most paths, and the round trip of one segment is about that of the one before it. So what was
//! sent and what was heard are laid beside each other in their orders, such that the round trips of neighbours differ
//! least, and as few as can be are left out on either side: what was sent and is left out was lost, what was heard and
//! is left out came late, and answers one that was sent long before. It is the cheapest path through a table (dynamic
//! programming, as when sequences are aligned).

/// Transmissions that may be left out one after the other.
const MAX_LOST: usize = 32;
/// Acknowledgements that may be left out one after the other.
const MAX_LATE: usize = 4;
/// Acknowledgements that a transmission may have, of those that come in time for it.
const MAX_ACKS: usize = 512;

/// A segment leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// When.
    pub sent_ns: i64,
    /// It is one of several copies.
    pub is_retransmission: bool,
}

/// An acknowledgement was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckEvent {
    /// When.
    pub ack_ns: i64,
    /// The cumulative acknowledgement before it.
    pub before: u64,
    /// The cumulative acknowledgement after it.
    pub after: u64,
}

impl AckEvent {
    /// Return true if it can be the response to a transmission: the segment that fills a hole lets it advance, or the
    /// last of two in order does (RFC 9293 section 3.8.6.3: every second full segment).
    fn is_response_to(&self, sent: &Departure) -> bool {
        if self.after > self.before {
            let two_bytes = 2 * (sent.end - sent.start);
            let second = sent.end == self.after && self.after - self.before <= two_bytes;
            sent.start == self.before || second
        } else {
            sent.start != self.before
        }
    }
}

/// The costs of unmatched events, as differences of round-trip times.
#[derive(Clone, Copy, Debug)]
struct Costs {
    round_ns: i64,
    /// The minimum spacing behind the bottleneck.
    apart_ns: i64,
}

impl Costs {
    /// A copy is lost easily, and of a burst that finds a queue full the end; what was sent once was not, but may be
    /// acknowledged together with the next one.
    fn lost(&self, sent: &Departure, before_ns: i64) -> i64 {
        if !sent.is_retransmission {
            self.round_ns / 4
        } else if sent.sent_ns - before_ns < self.apart_ns {
            self.round_ns / 1000
        } else {
            self.round_ns / 250
        }
    }

    /// Return the cost of an unmatched acknowledgement: low between two that arrive at the bottleneck's spacing, as it
    /// took another path.
    fn late(&self, ack: &AckEvent, before_ns: i64) -> i64 {
        if ack.ack_ns - before_ns < self.apart_ns {
            self.round_ns / 50
        } else {
            self.round_ns
        }
    }
}

/// The bottleneck's pace: of the times between answers, a little less than one of the shortest.
fn apart_ns(acks: &[AckEvent]) -> i64 {
    let mut apart: Vec<i64> = acks
        .windows(2)
        .map(|two| two[1].ack_ns - two[0].ack_ns)
        .collect();
    apart.sort_unstable();
    apart.get(apart.len() / 8).map_or(0, |&short| short * 3 / 4)
}

/// A pair, the cheapest way to it, and the pair before it.
#[derive(Clone, Copy, Debug)]
struct Cell {
    ack: usize,
    rtt_ns: i64,
    cost_ns: i64,
    before: Option<(usize, usize)>,
}

/// The pairs of one transmission, but for those that cost much more than the cheapest.
#[derive(Debug)]
struct Row {
    cells: Vec<Cell>,
    min_cost_ns: i64,
}

impl Row {
    fn of(mut cells: Vec<Cell>, round_ns: i64) -> Self {
        let min_cost_ns = cells.iter().map(|cell| cell.cost_ns).min().unwrap_or(0);
        cells.retain(|cell| cell.cost_ns - min_cost_ns <= 2 * round_ns);
        Self { cells, min_cost_ns }
    }
}

/// Return for each acknowledgement the transmission that it answers, if there is one; no round trip is shorter than
/// `min_ack_delay_ns`, and most are about `round_ns`. Both are in the order of their times.
pub fn align(
    sent: &[Departure],
    acks: &[AckEvent],
    min_ack_delay_ns: i64,
    round_ns: i64,
) -> Vec<Option<usize>> {
    let apart_ns = apart_ns(acks);
    let costs = Costs { round_ns, apart_ns };
    let lost = |one: &Departure, before_ns: i64| costs.lost(one, before_ns);
    let late = |one: &AckEvent, before_ns: i64| costs.late(one, before_ns);
    let lost = prefix_costs(sent, |one| one.sent_ns, lost);
    let late = prefix_costs(acks, |one| one.ack_ns, late);
    let mut table: Vec<Row> = Vec::with_capacity(sent.len());
    for (index, one) in sent.iter().enumerate() {
        let soon = acks.partition_point(|ack| ack.ack_ns - one.sent_ns < min_ack_delay_ns);
        let first = soon.max(first_ack_for(one, acks));
        let candidates = acks.iter().enumerate().skip(first).take(MAX_ACKS);
        let cells = candidates
            .take_while(|(_, ack)| ack.ack_ns - one.sent_ns <= 4 * round_ns)
            .filter(|(_, ack)| ack.is_response_to(one))
            .map(|(number, ack)| {
                let rtt_ns = ack.ack_ns - one.sent_ns;
                let (cost_ns, before) = cheapest(&table, (index, number, rtt_ns), &lost, &late);
                Cell {
                    ack: number,
                    rtt_ns,
                    cost_ns,
                    before,
                }
            });
        let row = Row::of(cells.collect(), round_ns);
        table.push(row);
    }
    backtrack(&table, &lost, &late)
}

/// The pairs of the cheapest way, from its end.
fn backtrack(table: &[Row], lost: &[i64], late: &[i64]) -> Vec<Option<usize>> {
    let (departures, ack_count) = (lost.len() - 1, late.len() - 1);
    let behind_ns = |index: usize, ack: usize| {
        lost[departures] - lost[index + 1] + late[ack_count] - late[ack + 1]
    };
    let mut best = (i64::MAX, None);
    for (index, row) in table.iter().enumerate() {
        for (place, cell) in row.cells.iter().enumerate() {
            let cost_ns = cell.cost_ns + behind_ns(index, cell.ack);
            if cost_ns < best.0 {
                best = (cost_ns, Some((index, place)));
            }
        }
    }
    let mut matched = vec![None; ack_count];
    let mut at = best.1;
    while let Some((index, place)) = at {
        let cell = &table[index].cells[place];
        matched[cell.ack] = Some(index);
        at = cell.before;
    }
    matched
}

/// Return the first acknowledgement that can be a response: the one that advances over the segment, if there is one.
fn first_ack_for(sent: &Departure, acks: &[AckEvent]) -> usize {
    let stops = acks.partition_point(|ack| ack.before < sent.start);
    let goes_on = acks.partition_point(|ack| ack.before <= sent.start);
    if stops < goes_on {
        goes_on - 1
    } else {
        0
    }
}

/// The cheapest pair before one, and what it costs up to there.
fn cheapest(
    table: &[Row],
    (index, ack, rtt_ns): (usize, usize, i64),
    lost: &[i64],
    late: &[i64],
) -> (i64, Option<(usize, usize)>) {
    let mut best = (lost[index] + late[ack], None);
    for earlier in (index.saturating_sub(MAX_LOST)..index).rev() {
        let lost_ns = lost[index] - lost[earlier + 1];
        let row = &table[earlier];
        if row.min_cost_ns + lost_ns >= best.0 {
            continue;
        }
        let until = row.cells.partition_point(|cell| cell.ack < ack);
        for (place, cell) in row.cells[..until].iter().enumerate().rev() {
            if ack - cell.ack > MAX_LATE {
                break;
            }
            let excess_ns = late[ack] - late[cell.ack + 1];
            let cost_ns = cell.cost_ns + lost_ns + excess_ns + (rtt_ns - cell.rtt_ns).abs();
            if cost_ns < best.0 {
                best = (cost_ns, Some((earlier, place)));
            }
        }
    }
    best
}

/// Return prefix sums of the costs of leaving events out; each cost depends on the time of the previous event.
fn prefix_costs<T>(
    all: &[T],
    time_ns: impl Fn(&T) -> i64,
    cost_ns: impl Fn(&T, i64) -> i64,
) -> Vec<i64> {
    let mut sums = Vec::with_capacity(all.len() + 1);
    let (mut sum, mut before_ns) = (0, i64::MIN / 2);
    for one in all {
        sums.push(sum);
        sum += cost_ns(one, before_ns);
        before_ns = time_ns(one);
    }
    sums.push(sum);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_NS: i64 = 1_000_000;

    /// Return transmissions of consecutive segments with the given spacings.
    fn sent(apart_ns: &[i64]) -> Vec<Departure> {
        let mut sent_ns = 0;
        (0..)
            .zip(apart_ns)
            .map(|(number, apart_ns)| {
                sent_ns += apart_ns;
                Departure {
                    start: 100 * number,
                    end: 100 * number + 100,
                    sent_ns,
                    is_retransmission: true,
                }
            })
            .collect()
    }

    /// Answers to those of these numbers, each after a round trip, none of which advances.
    fn responses(sent: &[Departure], numbers: &[usize]) -> Vec<AckEvent> {
        let of = |number: &usize| AckEvent {
            ack_ns: sent[*number].sent_ns + ROUND_NS,
            before: u64::MAX,
            after: u64::MAX,
        };
        numbers.iter().map(of).collect()
    }

    #[test]
    fn spacing_identifies_unacknowledged_transmissions() {
        let sent = sent(&[0, 10_000, 30_000, 20_000, 10_000, 50_000, 10_000]);
        let acks = responses(&sent, &[0, 2, 3, 6]);
        let matched = align(&sent, &acks, ROUND_NS * 9 / 10, ROUND_NS);
        assert_eq!(matched, [Some(0), Some(2), Some(3), Some(6)]);
    }

    #[test]
    fn a_stray_acknowledgement_is_unmatched() {
        let sent = sent(&[50_000; 12]);
        let mut acks = responses(&sent, &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11]);
        let stray = AckEvent {
            ack_ns: acks[4].ack_ns + 20_000,
            ..acks[4]
        };
        acks.insert(5, stray);
        let matched = align(&sent, &acks, ROUND_NS * 9 / 10, ROUND_NS);
        assert_eq!(matched[4..7], [Some(4), None, Some(5)]);
        assert_eq!(matched[9], Some(9));
    }

    #[test]
    fn a_transmission_that_fills_a_hole_advances_the_acknowledgement() {
        let sent = sent(&[50_000; 3]);
        let mut acks = responses(&sent, &[0, 1, 2]);
        acks[1] = AckEvent {
            before: 100,
            after: 300,
            ..acks[1]
        };
        acks.remove(0);
        let matched = align(&sent, &acks, ROUND_NS * 8 / 10, ROUND_NS);
        assert_eq!(matched[0], Some(1));
    }

    #[test]
    fn acknowledgements_before_the_minimum_delay_are_unmatched() {
        assert_eq!(align(&[], &[], 1, 1), []);
        let sent = sent(&[0]);
        let early = responses(&sent, &[0]);
        assert_eq!(align(&sent, &early, 2 * ROUND_NS, ROUND_NS), [None]);
    }
}
