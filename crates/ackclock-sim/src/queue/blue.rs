//! `blue`: a drop probability moved by overflow and idleness, not by the length of the queue.
//!
//! W. Feng, K. Shin, D. Kandlur, D. Saha: The BLUE active queue management algorithms, IEEE/ACM Transactions
//! on Networking 10(4), 2002. An arriving packet is marked or dropped with probability p. When the queue
//! overflows, p grows by `d1`; when the link is idle, p falls by `d2`; either at most once in `freeze_time`,
//! so that a change can take effect before the next.
//!
//! Deviations:
//! - Only an overflow is a loss event; the variant that also takes a queue beyond a length L is left out.
//! - The paper calls idleness an event. Here it lasts: while the link is idle, p falls every `freeze_time`.
//!   The link is idle when the packet that left last has been sent and none has come since.
//! - `freeze_time` is not randomised.
//!
//! The packet in transmission is not in the queue and does not count.

use ackclock_core::random::unit_interval;
use ackclock_core::{Rate, Time};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit.
    limit_packets: u32,
    /// Increment of p at an overflow.
    d1: f64,
    /// Decrement of p when the link is idle.
    d2: f64,
    /// Smallest time between two changes of p.
    #[serde(rename = "freeze_time_s")]
    freeze_time: Time,
    /// True if packets of ECN-capable flows are marked instead of dropped.
    ecn: bool,
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let is_time = self.freeze_time > Time::ZERO;
        require(self.limit_packets > 0, "limit_packets must be at least 1")?;
        require(is_share(self.d1), "d1 must be from 0 to 1")?;
        require(is_share(self.d2), "d2 must be from 0 to 1")?;
        require(is_time, "freeze_time_s must be greater than 0")
    }
}

/// A FIFO whose arrivals are dropped by BLUE.
#[derive(Debug)]
struct Blue {
    parameters: Parameters,
    rate: Rate,
    packets: Fifo,
    probability: f64,
    /// Time of the last change of p.
    last_update: Option<Time>,
    /// End of transmission of the last packet that left.
    sent: Time,
    random: Pcg64Mcg,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Queue::other(Blue::new(parameters, context)))
}

impl Blue {
    fn new(parameters: Parameters, context: &QueueContext) -> Blue {
        Blue {
            parameters,
            rate: Rate::from_bits_per_second(context.rate_bps),
            packets: Fifo::default(),
            probability: 0.0,
            last_update: None,
            sent: Time::ZERO,
            random: context.random(),
        }
    }

    /// Earliest time of the next change of p.
    fn thaws(&self) -> Time {
        self.last_update
            .map_or(Time::ZERO, |last| last + self.parameters.freeze_time)
    }

    /// Increase p upon packet loss.
    fn on_overflow(&mut self, now: Time) {
        if now >= self.thaws() {
            self.probability = (self.probability + self.parameters.d1).min(1.0);
            self.last_update = Some(now);
        }
    }

    /// Decrease p for the idle time before this arrival, once per freeze time.
    fn on_idle(&mut self, now: Time) {
        let first = self.sent.max(self.thaws());
        if !self.packets.is_empty() || first >= now {
            return;
        }
        let freeze = self.parameters.freeze_time;
        let further = (now.since(first).picoseconds() - 1) / freeze.picoseconds();
        let falls = (further + 1) as f64;
        self.probability = (self.probability - falls * self.parameters.d2).max(0.0);
        self.last_update = Some(first + Time::from_picoseconds(further * freeze.picoseconds()));
    }

    fn is_hit(&mut self) -> bool {
        unit_interval(self.random.next_u64()) < self.probability
    }
}

impl Discipline for Blue {
    fn enqueue(&mut self, mut packet: Packet, now: Time, drops: &mut Drops) {
        self.on_idle(now);
        if self.packets.len() >= self.parameters.limit_packets as usize {
            self.on_overflow(now);
            drops.push(packet);
        } else if self.is_hit() && !(self.parameters.ecn && drops.mark(&mut packet)) {
            drops.push(packet);
        } else {
            self.packets.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops) -> Option<Packet> {
        let packet = self.packets.pop()?;
        self.sent = now + self.rate.transmission_time(u64::from(packet.wire_bytes));
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::packet::Flags;
    use crate::queue::testing::{packet, CONTEXT};
    use serde_json::json;

    const SIZE: u32 = 1250;
    /// A packet of [`SIZE`] lasts 1 ms.
    const TEN_MEGABIT: QueueContext = QueueContext {
        rate_bps: 1e7,
        ..CONTEXT
    };

    fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    fn parameters() -> Parameters {
        Parameters {
            limit_packets: 2,
            d1: 0.02,
            d2: 0.002,
            freeze_time: ms(100),
            ecn: false,
        }
    }

    fn blue() -> Blue {
        Blue::new(parameters(), &TEN_MEGABIT)
    }

    fn offer(blue: &mut Blue, packets: u64, now: Time) -> usize {
        let mut drops = Drops::default();
        for sequence in 0..packets {
            blue.enqueue(packet(sequence, SIZE), now, &mut drops);
        }
        drops.drain().count()
    }

    fn send(blue: &mut Blue, now: Time) {
        assert!(blue.dequeue(now, &mut Drops::default()).is_some());
    }

    fn assert_probability(blue: &Blue, expected: f64) {
        let found = blue.probability;
        assert!(
            (found - expected).abs() < 1e-12,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn overflows_add_d1_no_more_often_than_every_freeze_time() {
        let mut blue = blue();
        offer(&mut blue, 10, ms(1000));
        assert_probability(&blue, 0.02);
        offer(&mut blue, 3, ms(1099));
        assert_probability(&blue, 0.02);
        offer(&mut blue, 1, ms(1100));
        assert_probability(&blue, 0.04);
    }

    #[test]
    fn an_idle_link_takes_d2_away_every_freeze_time() {
        let idle_until = |milliseconds| {
            let mut blue = blue();
            offer(&mut blue, 1, Time::ZERO);
            blue.probability = 0.5;
            send(&mut blue, ms(1000));
            offer(&mut blue, 1, ms(milliseconds));
            blue.probability
        };
        let close = |left: f64, right: f64| (left - right).abs() < 1e-12;
        assert!(close(idle_until(1001), 0.5)); // it was sent just now
        assert!(close(idle_until(1002), 0.498));
        assert!(close(idle_until(1101), 0.498));
        assert!(close(idle_until(1102), 0.496));
        assert!(close(idle_until(1302), 0.492));
        assert!(close(idle_until(1_000_000), 0.0));
    }

    #[test]
    fn idle_decrements_respect_the_freeze_time() {
        let mut blue = blue();
        offer(&mut blue, 3, ms(1000));
        send(&mut blue, ms(1000));
        send(&mut blue, ms(1001));
        offer(&mut blue, 1, ms(1100));
        assert_probability(&blue, 0.02);
        send(&mut blue, ms(1100));
        offer(&mut blue, 1, ms(1150));
        assert_probability(&blue, 0.018);
    }

    #[test]
    fn packets_are_dropped_with_the_probability() {
        let mut blue = blue();
        blue.parameters.limit_packets = 100_000;
        blue.probability = 0.25;
        let dropped = offer(&mut blue, 10_000, Time::ZERO);
        assert!((2325..=2675).contains(&dropped), "{dropped}"); // 2500 ± 4 standard deviations
    }

    #[test]
    fn a_packet_of_a_capable_flow_is_marked_and_queued() {
        let mut blue = blue();
        (blue.probability, blue.parameters.ecn) = (1.0, true);
        let mut drops = Drops::default();
        let capable = Packet {
            flags: Flags::of(Ecn::Ect0),
            ..packet(0, SIZE)
        };
        blue.enqueue(capable, Time::ZERO, &mut drops);
        blue.enqueue(packet(1, SIZE), Time::ZERO, &mut drops);
        assert_eq!(drops.drain_marked().count(), 1);
        assert_eq!(drops.drain().map(|packet| packet.sequence).last(), Some(1));
        let left = blue.dequeue(Time::ZERO, &mut drops);
        assert_eq!(left.map(|packet| packet.ecn()), Some(Ecn::Ce));
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        let right = json!({
            "limit_packets": 50, "d1": 0.02, "d2": 0.002, "freeze_time_s": 0.1, "ecn": false,
        });
        assert!(make(&right, &CONTEXT).is_ok());
        for (key, value) in [
            ("limit_packets", json!(0)),
            ("d1", json!(1.5)),
            ("d2", json!(-0.1)),
            ("freeze_time_s", json!(0.0)),
            ("ecn", json!(1)),
            ("target_s", json!(0.01)),
        ] {
            let mut wrong = right.clone();
            wrong[key] = value;
            assert!(make(&wrong, &CONTEXT).is_err(), "{wrong}");
        }
    }
}
