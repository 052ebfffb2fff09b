//! Rate prediction (thesis section 4.1.1): groups of packets and the spacing of their ACKs.

use ackclock_core::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use super::Parameters;
use crate::Ack;

/// The position in the stream of ACKs.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Between groups: so many segments are still to pass.
    Between(u32),
    /// In a group.
    Within(Group),
}

/// A group whose first ACK has come.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// T1: when it came.
    first: Time,
    /// Segments that are still to be acknowledged.
    left: u32,
    /// D: payload bytes.
    bytes: u64,
}

/// The measurement of n groups.
#[derive(Clone, Debug)]
pub struct Prediction {
    random: Pcg64Mcg,
    min: u32,
    max: u32,
    count_first: bool,
    /// Groups to measure, and the rates of those measured, in bytes per second.
    groups: u32,
    measured: u32,
    sum: f64,
    place: Place,
    /// The flight ends when more than what is below it is acknowledged.
    flight_end: u64,
}

impl Prediction {
    /// Create a prediction without measurements; the groups' sizes and distances are drawn from `seed`.
    pub fn new(parameters: &Parameters, seed: u64) -> Prediction {
        Prediction {
            random: Pcg64Mcg::new(u128::from(seed) << 1 | 1),
            min: parameters.group_min,
            max: parameters.group_max,
            count_first: parameters.count_first,
            groups: parameters.groups,
            measured: 0,
            sum: 0.0,
            place: Place::Between(0),
            flight_end: 0,
        }
    }

    /// Track an ACK that advances. With the last of the last group: the predicted rate (4.2).
    pub fn observe(&mut self, ack: &Ack) -> Option<f64> {
        let new_flight = ack.unacknowledged > self.flight_end;
        if new_flight {
            self.flight_end = ack.next;
        }
        match self.place {
            Place::Within(group) if !new_flight => self.go_on(group, ack),
            Place::Between(passing) if passing > 0 => {
                self.place = Place::Between(passing.saturating_sub(ack.newly_acked));
            }
            _ => self.begin(ack),
        }
        (self.measured == self.groups).then(|| self.sum / f64::from(self.groups))
    }

    /// A number of packets from x to y.
    fn draw(&mut self) -> u32 {
        let span = u64::from(self.max - self.min) + 1;
        self.min + (self.random.next_u64() % span) as u32
    }

    /// The ACK is a group's first.
    fn begin(&mut self, ack: &Ack) {
        let size = self.draw();
        self.place = Place::Within(Group {
            first: ack.now,
            left: size.saturating_sub(ack.newly_acked).max(1),
            bytes: if self.count_first {
                ack.newly_acked_bytes
            } else {
                0
            },
        });
    }

    fn go_on(&mut self, mut group: Group, ack: &Ack) {
        group.bytes += ack.newly_acked_bytes;
        if ack.newly_acked < group.left {
            group.left -= ack.newly_acked;
            self.place = Place::Within(group);
            return;
        }
        if let Some(rate) = rate_of(group.bytes, group.first, ack.now) {
            self.sum += rate;
            self.measured += 1;
        }
        self.place = Place::Between(self.draw());
    }
}

/// (4.1): D / (T2 − T1), if time has passed: a host's clock counts microseconds.
fn rate_of(bytes: u64, first: Time, last: Time) -> Option<f64> {
    let span_us = last.microseconds() - first.microseconds();
    (span_us > 0).then(|| bytes as f64 * 1e6 / span_us as f64)
}
