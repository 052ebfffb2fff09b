//! Without SACK: which of several copies arrived, as the times of acknowledgements tell.

use crate::kit::{fates, Trace};
use ackclock_analysis::tables::{Fate, RetransmitCause};

const DELIVERED: (Fate, RetransmitCause) = (Fate::Delivered, RetransmitCause::Unknown);
const LOST: (Fate, RetransmitCause) = (Fate::Lost, RetransmitCause::Unknown);

/// When a segment is sent: every 10 ms.
fn sent_ms(number: u32) -> i64 {
    100 + 10 * i64::from(number)
}

/// When that is answered, at the sender.
fn ack_ms(number: u32) -> i64 {
    sent_ms(number) + 100
}

/// Segments of a sender that is 100 ms from its receiver, and what that answers, in the order of their times.
struct Transfer {
    events: Vec<(i64, bool, u32)>,
}

impl Transfer {
    /// Deliver all but these of `segments` segments, and acknowledge those before the first hole.
    fn without(segments: u32, lost: &[u32]) -> Self {
        let mut events: Vec<_> = (0..segments)
            .map(|number| (sent_ms(number), true, number))
            .collect();
        let first = lost[0];
        let came = (0..segments).filter(|number| !lost.contains(number));
        events.extend(came.map(|number| {
            let next = if number < first { number + 1 } else { first };
            (ack_ms(number), false, next)
        }));
        Self { events }
    }

    fn sends(mut self, at_ms: i64, number: u32) -> Self {
        self.events.push((at_ms, true, number));
        self
    }

    fn receive_ack(mut self, at_ms: i64, next: u32) -> Self {
        self.events.push((at_ms, false, next));
        self
    }

    fn trace(mut self) -> Trace {
        self.events.sort_by_key(|&(at_ms, ..)| at_ms);
        let mut trace = Trace::after_handshake(0, 100);
        for (at_ms, data, number) in self.events {
            if data {
                trace.data(at_ms, number);
            } else {
                trace.ack(at_ms, number, &[]);
            }
        }
        trace
    }
}

/// The fifth segment is missing; with the third duplicate it is retransmitted, which arrives.
fn retransmit() -> Transfer {
    let mut transfer = Transfer::without(20, &[5]);
    transfer
        .events
        .retain(|&(at_ms, data, _)| data || at_ms <= 380);
    let transfer = transfer.sends(281, 5).receive_ack(381, 19);
    transfer.receive_ack(390, 20)
}

#[test]
fn a_hole_filled_by_a_retransmission_was_a_loss() {
    let found = retransmit().trace().analysed();
    assert_eq!(
        fates(&found, 5),
        [LOST, (Fate::Delivered, RetransmitCause::Fast)]
    );
    assert_eq!(fates(&found, 6), [DELIVERED]);
}

#[test]
fn a_stray_acknowledgement_is_for_reordered_data() {
    let found = retransmit().receive_ack(384, 19).trace().analysed();
    assert_eq!(
        fates(&found, 5),
        [DELIVERED, (Fate::Spurious, RetransmitCause::Fast)]
    );
}

#[test]
fn duplicates_are_distinguished_from_late_originals() {
    // The timer repeats 4 to 9, of which 4 is lost once more, and 6 and 8 had been lost.
    let mut transfer = Transfer::without(12, &[4, 6, 8]);
    for number in 4..10 {
        transfer = transfer.sends(700 + 10 * i64::from(number), number);
    }
    for number in 5..10 {
        transfer = transfer.receive_ack(800 + 10 * i64::from(number), 4);
    }
    let found = transfer
        .sends(1400, 4)
        .receive_ack(1500, 12)
        .trace()
        .analysed();
    let again = (Fate::Spurious, RetransmitCause::Timeout);
    let at_last = (Fate::Delivered, RetransmitCause::Timeout);
    for number in [5, 7, 9] {
        assert_eq!(fates(&found, number), [DELIVERED, again], "{number}");
    }
    for number in [6, 8] {
        assert_eq!(fates(&found, number), [LOST, at_last], "{number}");
    }
    assert_eq!(
        fates(&found, 4),
        [LOST, (Fate::Lost, RetransmitCause::Timeout), at_last]
    );
}
