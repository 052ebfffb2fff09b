//! The flight and losses when the newest delivered segment was sent.
//!
//! Draft-ietf-ccwg-bbr section 4.1 keeps `P.tx_in_flight` and `P.lost` with each packet. Here one snapshot is
//! kept for each ACK: a segment that was sent after `delivered` segments had been delivered finds the snapshot
//! of that time. Deviation: among the segments sent between two ACKs, all count as the last.

use std::collections::VecDeque;

use super::super::Ack;

/// The connection between two ACKs.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    delivered: u64,
    lost: u64,
    /// Segments in flight before the next ACK.
    in_flight: u32,
}

/// The snapshots of a round trip, and the count of losses.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    snapshots: VecDeque<Snapshot>,
    lost: u64,
}

/// The flight of the segment that an ACK delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// Segments in flight when it was sent, itself included.
    pub in_flight: u32,
    /// Segments found lost since then.
    pub lost: u64,
}

impl Flight {
    /// Return true if more than `threshold` of it was lost.
    pub fn is_too_high(&self, threshold: f64) -> bool {
        self.lost as f64 > threshold * f64::from(self.in_flight)
    }

    /// At which volume losses exceeded `threshold`, if the last `newly` segments are lost and those before
    /// them were within it (section 5.5.10.2).
    pub fn volume_at_loss(&self, newly: u32, threshold: f64) -> f64 {
        let before = f64::from(self.in_flight.saturating_sub(newly));
        let lost_prev = self.lost.saturating_sub(u64::from(newly)) as f64;
        let prefix = (threshold * before - lost_prev) / (1.0 - threshold);
        before + prefix.max(0.0)
    }
}

impl Flights {
    /// Count losses.
    pub fn count_lost(&mut self, segments: u32) {
        self.lost += u64::from(segments);
    }

    /// Look up the flight of the newest segment that an ACK delivered.
    #[inline]
    pub fn lookup(&mut self, ack: &Ack) -> Flight {
        if let Some(newest) = self.snapshots.back_mut() {
            newest.in_flight = ack.prior_in_flight;
        }
        while matches!(self.snapshots.get(1), Some(next) if next.delivered <= ack.prior_delivered) {
            self.snapshots.pop_front();
        }
        let first = self.snapshots.front();
        first.map_or(Flight::default(), |snapshot| Flight {
            in_flight: snapshot.in_flight,
            lost: self.lost - snapshot.lost,
        })
    }

    /// Store the connection as an ACK left it.
    #[inline]
    pub fn remember(&mut self, ack: &Ack) {
        let snapshot = Snapshot {
            delivered: ack.delivered,
            lost: self.lost,
            in_flight: ack.in_flight,
        };
        match self.snapshots.back_mut() {
            Some(newest) if newest.delivered == ack.delivered => *newest = snapshot,
            _ => self.snapshots.push_back(snapshot),
        }
    }

    /// The connection is open: its first flight leaves.
    pub fn open(&mut self) {
        self.snapshots.push_back(Snapshot::default());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::window::testing::ack;
    use super::*;
    use ackclock_core::Time;

    fn at(prior_delivered: u64, delivered: u64, prior_in_flight: u32, in_flight: u32) -> Ack {
        Ack {
            prior_in_flight,
            in_flight,
            delivered,
            prior_delivered,
            ..ack(Time::ZERO, 1)
        }
    }

    /// Ten segments leave; the first ACK lets two follow, the second ACK reports a loss.
    #[test]
    fn a_segment_finds_the_flight_it_left_in() {
        let mut flights = Flights::default();
        flights.open();
        let first = at(0, 1, 10, 9);
        assert_eq!(flights.lookup(&first).in_flight, 10);
        flights.remember(&first);
        let second = at(0, 2, 11, 9);
        flights.lookup(&second);
        flights.count_lost(1);
        flights.remember(&second);
        let third = at(1, 3, 9, 8);
        let flight = flights.lookup(&third);
        assert_eq!((flight.in_flight, flight.lost), (11, 1));
        flights.remember(&third);
        let fourth = at(2, 4, 8, 7);
        let flight = flights.lookup(&fourth);
        assert_eq!(
            (flight.in_flight, flight.lost),
            (9, 0),
            "sent after the loss was found"
        );
    }

    /// The draft's solution: (1 + x) / (98 + x) = 0.02 for x = 0.96 / 0.98.
    #[test]
    fn the_volume_at_which_losses_cross_the_threshold() {
        let flight = Flight {
            in_flight: 100,
            lost: 3,
        };
        assert!(flight.is_too_high(0.02));
        let volume = flight.volume_at_loss(2, 0.02);
        assert!((volume - (98.0 + 0.96 / 0.98)).abs() < 1e-9);
        let within = Flight {
            in_flight: 100,
            lost: 2,
        };
        assert!(!within.is_too_high(0.02));
    }
}
