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
