//! Inference of the transmissions that arrived, from the acknowledgements.

use super::ack_alignment::{align, AckEvent, Departure};

/// Return the transmissions that arrived, in sending order, and the last that was acknowledged. Both inputs are in the
/// order of their times. No round trip is shorter than `min_ack_delay_ns`, and most are about `round_ns`.
pub fn arrivals(
    sent: &[Departure],
    acks: &[AckEvent],
    min_ack_delay_ns: i64,
    round_ns: i64,
) -> (Vec<Departure>, Option<Departure>) {
    let matched = align(sent, acks, min_ack_delay_ns, round_ns);
    let mut arrived: Vec<Option<i64>> = vec![None; sent.len()];
    for (ack, index) in acks.iter().zip(&matched) {
        if let Some(index) = *index {
            arrived[index] = Some(ack.ack_ns);
        }
    }
    let last = matched.iter().rev().find_map(|&index| index);
    let by_start = by_start(sent);
    for (ack, index) in acks.iter().zip(&matched) {
        let soon = || sent.partition_point(|one| ack.ack_ns - one.sent_ns >= min_ack_delay_ns);
        if ack.after > ack.before {
            let can = index.unwrap_or_else(soon);
            acknowledged(ack, can, sent, &by_start, &mut arrived);
        } else if index.is_none() {
            match_late_ack(ack, soon(), sent, &mut arrived);
        }
    }
    let arrived_copies = sent.iter().zip(arrived);
    let arrived_copies = arrived_copies.filter(|(_, arrived)| arrived.is_some());
    (
        arrived_copies.map(|(one, _)| *one).collect(),
        last.map(|index| sent[index]),
    )
}

/// Copies in the order of their bytes, and of their times.
fn by_start(sent: &[Departure]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sent.len())
        .filter(|&index| sent[index].is_retransmission)
        .collect();
    order.sort_by_key(|&index| (sent[index].start, index));
    order
}

/// Mark acknowledged ranges as arrived: of those without their own acknowledgement, the last transmission that can have
/// arrived.
fn acknowledged(
    ack: &AckEvent,
    can: usize,
    sent: &[Departure],
    by_start: &[usize],
    arrived: &mut [Option<i64>],
) {
    let first = by_start.partition_point(|&index| sent[index].start < ack.before);
    let until = by_start.partition_point(|&index| sent[index].start < ack.after);
    let same = |one: &usize, other: &usize| sent[*one].start == sent[*other].start;
    for copies in by_start[first..until].chunk_by(same) {
        let has_come = |&index: &usize| arrived[index].is_some_and(|ack_ns| ack_ns <= ack.ack_ns);
        if copies.iter().any(has_come) {
            continue;
        }
        let open = |&&index: &&usize| index < can && arrived[index].is_none();
        if let Some(&index) = copies.iter().rev().find(open) {
            arrived[index] = Some(ack.ack_ns);
        }
    }
}

/// An answer that comes between the others is to one that has none and can have: to what was sent once, and waits, else
/// to the last copy of what was acknowledged before.
fn match_late_ack(ack: &AckEvent, can: usize, sent: &[Departure], arrived: &mut [Option<i64>]) {
    let is_waiting =
        |index: &usize| !sent[*index].is_retransmission && sent[*index].start > ack.before;
    let is_spurious =
        |index: &usize| sent[*index].is_retransmission && sent[*index].start < ack.before;
    let all = || (0..can).rev().filter(|&index| arrived[index].is_none());
    let matched = all().find(is_waiting).or_else(|| all().find(is_spurious));
    if let Some(index) = matched {
        arrived[index] = Some(ack.ack_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_NS: i64 = 1_000_000;

    fn departure(start: u64, sent_ns: i64, is_retransmission: bool) -> Departure {
        Departure {
            start,
            end: start + 100,
            sent_ns,
            is_retransmission,
        }
    }

    fn ack(ack_ns: i64, before: u64, after: u64) -> AckEvent {
        AckEvent {
            ack_ns,
            before,
            after,
        }
    }

    fn arrived(sent: &[Departure], acks: &[AckEvent]) -> Vec<i64> {
        let (arrived_copies, _) = arrivals(sent, acks, ROUND_NS * 9 / 10, ROUND_NS);
        arrived_copies.iter().map(|one| one.sent_ns).collect()
    }

    #[test]
    fn acknowledged_transmissions_arrived_and_the_last_is_returned() {
        let sent: Vec<_> = [0, 10_000, 40_000, 60_000]
            .iter()
            .zip(1..)
            .map(|(&sent_ns, number)| departure(100 * number, sent_ns, false))
            .collect();
        let acks: Vec<_> = [0, 40_000]
            .iter()
            .map(|sent_ns| ack(sent_ns + ROUND_NS, 0, 0))
            .collect();
        assert_eq!(arrived(&sent, &acks), [0, 40_000]);
        let (_, last) = arrivals(&sent, &acks, ROUND_NS * 9 / 10, ROUND_NS);
        assert_eq!(last.map(|one| one.sent_ns), Some(40_000));
        assert_eq!(arrivals(&sent, &[], ROUND_NS, ROUND_NS), (vec![], None));
    }

    #[test]
    fn without_its_own_acknowledgement_the_last_possible_copy_arrived() {
        let sent = [
            departure(0, 0, true),
            departure(0, 500_000, true),
            departure(100, 700_000, true),
            departure(0, 1_500_000, true),
        ];
        let acks = ack(700_000 + ROUND_NS, 0, 200);
        let mut arrived = [None, None, Some(acks.ack_ns), None];
        acknowledged(&acks, 3, &sent, &by_start(&sent), &mut arrived);
        let arrived_copies = Some(acks.ack_ns);
        assert_eq!(arrived, [None, arrived_copies, arrived_copies, None]);
    }

    #[test]
    fn a_stray_acknowledgement_matches_a_waiting_or_a_spurious_copy() {
        let is_waiting = [
            departure(300, 0, false),
            departure(0, 10_000, true),
            departure(400, 20_000, true),
        ];
        let is_spurious = &is_waiting[1..];
        let acks = ack(2 * ROUND_NS, 100, 100);
        let mut arrived = [None; 3];
        match_late_ack(&acks, 3, &is_waiting, &mut arrived);
        assert_eq!(arrived, [Some(acks.ack_ns), None, None]);
        let mut arrived = [None; 2];
        match_late_ack(&acks, 2, is_spurious, &mut arrived);
        assert_eq!(arrived, [Some(acks.ack_ns), None]);
    }
}
