//! The scheduler of RFC 8290 section 4.2, turn by turn.

use super::*;
use crate::queue::testing::{packet, CONTEXT};

/// Queues with a quantum of 1500 bytes.
fn queues() -> FlowQueues {
    FlowQueues::new(8, 1500, &CONTEXT).expect("valid")
}

/// Queues in the order in which they send.
fn sent(queues: &mut FlowQueues, packets: usize) -> Vec<usize> {
    let mut order = Vec::new();
    while order.len() < packets {
        let Some(queue) = queues.turn() else { break };
        match queues.pop(queue) {
            Some(packet) => {
                queues.charge(queue, packet.wire_bytes);
                order.push(queue);
            }
            None => queues.pass(),
        }
    }
    order
}

fn fill(queues: &mut FlowQueues, queue: usize, packets: usize, wire_bytes: u32) {
    for sequence in 0..packets {
        queues.push(queue, packet(sequence as u64, wire_bytes));
    }
}

#[test]
fn queues_of_equal_packets_take_turns() {
    let mut queues = queues();
    for queue in [3, 1, 2] {
        fill(&mut queues, queue, 3, 1500);
    }
    assert_eq!(sent(&mut queues, 9), [3, 1, 2, 3, 1, 2, 3, 1, 2]);
}

/// A quantum of 1500 bytes is overdrawn by the packet that begins while some is left: 2 packets of 1000 bytes
/// in the first turn (deficit −500), then 1000 are left and it is 1 packet (0), then 2 again.
#[test]
fn turns_are_counted_in_bytes() {
    let mut queues = queues();
    fill(&mut queues, 0, 6, 1000);
    fill(&mut queues, 1, 4, 1500);
    assert_eq!(sent(&mut queues, 8), [0, 0, 1, 0, 1, 0, 0, 1]);
}

#[test]
fn a_queue_that_becomes_active_goes_before_the_old_ones() {
    let mut queues = queues();
    fill(&mut queues, 0, 10, 1500);
    fill(&mut queues, 1, 10, 1500);
    assert_eq!(sent(&mut queues, 4), [0, 1, 0, 1]);
    fill(&mut queues, 5, 1, 100);
    assert_eq!(sent(&mut queues, 3), [5, 0, 1]);
}

/// A queue that has a packet whenever that would make it a new one: if it were forgotten as soon as it was empty,
/// it would send every second packet. It goes through the old queues first, so it sends every third.
#[test]
fn a_queue_that_was_emptied_as_a_new_one_waits_among_the_old_ones() {
    let mut queues = queues();
    fill(&mut queues, 0, 30, 1500);
    fill(&mut queues, 1, 30, 1500);
    sent(&mut queues, 4);
    let mut order = Vec::new();
    for _ in 0..30 {
        if !queues.queues[5].listed {
            fill(&mut queues, 5, 1, 100);
        }
        order.extend(sent(&mut queues, 1));
    }
    assert_eq!(order.iter().filter(|&&queue| queue == 5).count(), 10);
}

#[test]
fn an_empty_old_queue_returns_as_a_new_one() {
    let mut queues = queues();
    fill(&mut queues, 0, 2, 1500);
    assert_eq!(sent(&mut queues, 5), [0, 0]);
    assert!(!queues.queues[0].listed);
    assert_eq!(queues.turn(), None);
    fill(&mut queues, 0, 1, 1500);
    assert_eq!(queues.new, [0]);
}

#[test]
fn the_fattest_queue_has_the_largest_backlog() {
    let mut queues = queues();
    assert_eq!(queues.fattest(), None);
    fill(&mut queues, 2, 30, 100);
    fill(&mut queues, 4, 3, 1500);
    fill(&mut queues, 3, 3, 1500);
    assert_eq!(queues.fattest(), Some(3));
    assert_eq!(
        queues.backlog(),
        Backlog {
            packets: 36,
            bytes: 12_000
        }
    );
}
