//! Which copies arrived, from what was sent and which answers came to it.

use super::aligning::{align, Answer, Departure};

/// What of it arrived, in the order of sending, and the last that had an answer; both given in the order of their times. No
/// round trip is shorter than `soon_ns`, and most are about `round_ns`.
pub fn arrivals(
    sent: &[Departure],
    heard: &[Answer],
    soon_ns: i64,
    round_ns: i64,
) -> (Vec<Departure>, Option<Departure>) {
    let found = align(sent, heard, soon_ns, round_ns);
    let mut arrived: Vec<Option<i64>> = vec![None; sent.len()];
    for (answer, index) in heard.iter().zip(&found) {
        if let Some(index) = *index {
            arrived[index] = Some(answer.heard_ns);
        }
    }
    let last = found.iter().rev().find_map(|&index| index);
    let by_start = by_start(sent);
    for (answer, index) in heard.iter().zip(&found) {
        let soon = || sent.partition_point(|one| answer.heard_ns - one.sent_ns >= soon_ns);
        if answer.after > answer.before {
            let can = index.unwrap_or_else(soon);
            acknowledged(answer, can, sent, &by_start, &mut arrived);
        } else if index.is_none() {
            came_late(answer, soon(), sent, &mut arrived);
        }
    }
    let came = sent.iter().zip(arrived);
    let came = came.filter(|(_, arrived)| arrived.is_some());
    (
        came.map(|(one, _)| *one).collect(),
        last.map(|index| sent[index]),
    )
}

/// Copies in the order of their bytes, and of their times.
fn by_start(sent: &[Departure]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sent.len()).filter(|&index| sent[index].again).collect();
    order.sort_by_key(|&index| (sent[index].start, index));
    order
}

/// What is acknowledged has arrived: of what has no answer of its own, the last copy of those that can have, which are the
/// first ones.
fn acknowledged(
    answer: &Answer,
    can: usize,
    sent: &[Departure],
    by_start: &[usize],
    arrived: &mut [Option<i64>],
) {
    let first = by_start.partition_point(|&index| sent[index].start < answer.before);
    let until = by_start.partition_point(|&index| sent[index].start < answer.after);
    let same = |one: &usize, other: &usize| sent[*one].start == sent[*other].start;
    for copies in by_start[first..until].chunk_by(same) {
        let has_come =
            |&index: &usize| arrived[index].is_some_and(|heard_ns| heard_ns <= answer.heard_ns);
        if copies.iter().any(has_come) {
            continue;
        }
        let open = |&&index: &&usize| index < can && arrived[index].is_none();
        if let Some(&index) = copies.iter().rev().find(open) {
            arrived[index] = Some(answer.heard_ns);
        }
    }
}

/// An answer that comes between the others is to one that has none and can have: to what was sent once, and waits, else to
/// the last copy of what was acknowledged before.
fn came_late(answer: &Answer, can: usize, sent: &[Departure], arrived: &mut [Option<i64>]) {
    let waits = |index: &usize| !sent[*index].again && sent[*index].start > answer.before;
    let needless = |index: &usize| sent[*index].again && sent[*index].start < answer.before;
    let all = || (0..can).rev().filter(|&index| arrived[index].is_none());
    let found = all().find(waits).or_else(|| all().find(needless));
    if let Some(index) = found {
        arrived[index] = Some(answer.heard_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_NS: i64 = 1_000_000;

    fn departure(start: u64, sent_ns: i64, again: bool) -> Departure {
        Departure {
            start,
            end: start + 100,
            sent_ns,
            again,
        }
    }

    fn answer(heard_ns: i64, before: u64, after: u64) -> Answer {
        Answer {
            heard_ns,
            before,
            after,
        }
    }

    fn arrived(sent: &[Departure], heard: &[Answer]) -> Vec<i64> {
        let (came, _) = arrivals(sent, heard, ROUND_NS * 9 / 10, ROUND_NS);
        came.iter().map(|one| one.sent_ns).collect()
    }

    #[test]
    fn what_was_sent_arrived_if_it_has_an_answer_and_the_last_of_these_is_given() {
        let sent: Vec<_> = [0, 10_000, 40_000, 60_000]
            .iter()
            .zip(1..)
            .map(|(&sent_ns, number)| departure(100 * number, sent_ns, false))
            .collect();
        let heard: Vec<_> = [0, 40_000]
            .iter()
            .map(|sent_ns| answer(sent_ns + ROUND_NS, 0, 0))
            .collect();
        assert_eq!(arrived(&sent, &heard), [0, 40_000]);
        let (_, last) = arrivals(&sent, &heard, ROUND_NS * 9 / 10, ROUND_NS);
        assert_eq!(last.map(|one| one.sent_ns), Some(40_000));
        assert_eq!(arrivals(&sent, &[], ROUND_NS, ROUND_NS), (vec![], None));
    }

    #[test]
    fn of_what_is_acknowledged_without_an_answer_the_last_copy_that_can_have_come_did() {
        let sent = [
            departure(0, 0, true),
            departure(0, 500_000, true),
            departure(100, 700_000, true),
            departure(0, 1_500_000, true),
        ];
        let heard = answer(700_000 + ROUND_NS, 0, 200);
        let mut arrived = [None, None, Some(heard.heard_ns), None];
        acknowledged(&heard, 3, &sent, &by_start(&sent), &mut arrived);
        let came = Some(heard.heard_ns);
        assert_eq!(arrived, [None, came, came, None]);
    }

    #[test]
    fn an_answer_between_the_others_is_to_what_waits_or_else_to_a_needless_copy() {
        let waits = [
            departure(300, 0, false),
            departure(0, 10_000, true),
            departure(400, 20_000, true),
        ];
        let needless = &waits[1..];
        let heard = answer(2 * ROUND_NS, 100, 100);
        let mut arrived = [None; 3];
        came_late(&heard, 3, &waits, &mut arrived);
        assert_eq!(arrived, [Some(heard.heard_ns), None, None]);
        let mut arrived = [None; 2];
        came_late(&heard, 2, needless, &mut arrived);
        assert_eq!(arrived, [Some(heard.heard_ns), None]);
    }
}
