//! The receiver's part in a leap: the segments that it skips count as received, and their ACKs as sent.

use super::{Receiver, State};
use ackclock_plan::DelayedAck;

impl Receiver {
    /// Return true if the next segment will arrive in order, to an application that reads at once.
    pub fn is_quiet(&self) -> bool {
        self.state == State::Established
            && self.ranges.is_empty()
            && self.reader.is_none()
            && self.misbehaviour.is_none()
    }

    /// Count `segments` full segments that leaps skip; returns the ACKs that acknowledge them: one for every second
    /// segment if ACKs are delayed.
    pub fn skip(&mut self, segments: u32) -> u32 {
        let per_ack = match self.policy {
            DelayedAck::Off => 1,
            DelayedAck::On | DelayedAck::Quick => 2,
        };
        let acks_before = self.skipped_segments / per_ack;
        self.skipped_segments += u64::from(segments);
        let acks = self.skipped_segments / per_ack - acks_before;
        self.received_packets += u64::from(segments);
        self.sent_packets += acks;
        acks as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::receiver;
    use super::*;

    #[test]
    fn every_second_segment_is_acknowledged_however_they_are_skipped() {
        let mut one = receiver(DelayedAck::On);
        assert_eq!([one.skip(3), one.skip(3), one.skip(1)], [1, 2, 0]);
        assert_eq!((one.received_packets, one.sent_packets), (7, 3));
        assert_eq!(one.delivered_bytes(), 7000);
        assert_eq!(receiver(DelayedAck::Off).skip(3), 3);
    }
}
