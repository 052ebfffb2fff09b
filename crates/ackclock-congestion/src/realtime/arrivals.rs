//! The packets reported in the last moments: the rate at which they arrived, and the ratios of lost and marked ones.

use std::collections::VecDeque;

use ackclock_core::Time;

use super::{Feedback, PacketReport};

/// Reported packets of a sliding window. Its end is the newest arrival.
#[derive(Clone, Debug)]
pub struct Arrivals {
    window: Time,
    /// Packets with the time by which they count: their arrival, or that of the packet before a lost one.
    packets: VecDeque<(Time, PacketReport)>,
    newest: Time,
    bytes: u64,
    lost: u32,
    marked: u32,
}

impl Arrivals {
    /// A window of this length.
    pub fn new(window: Time) -> Arrivals {
        Arrivals {
            window,
            packets: VecDeque::new(),
            newest: Time::ZERO,
            bytes: 0,
            lost: 0,
            marked: 0,
        }
    }

    /// Add the packets of a report, and forget those that have left the window.
    pub fn add(&mut self, feedback: &Feedback<'_>) {
        for &packet in feedback.packets {
            self.newest = self.newest.max(packet.arrival.unwrap_or(Time::ZERO));
            self.packets.push_back((self.newest, packet));
            self.bytes += packet.arrival.map_or(0, |_| u64::from(packet.bytes));
            self.lost += u32::from(packet.arrival.is_none());
            self.marked += u32::from(packet.marked);
        }
        while let Some(&(time, packet)) = self.packets.front() {
            if time + self.window > self.newest {
                return;
            }
            self.packets.pop_front();
            self.bytes -= packet.arrival.map_or(0, |_| u64::from(packet.bytes));
            self.lost -= u32::from(packet.arrival.is_none());
            self.marked -= u32::from(packet.marked);
        }
    }

    /// Rate at which the packets of the window arrived, in bit/s.
    pub fn rate_bps(&self) -> f64 {
        8.0 * self.bytes as f64 / self.window.seconds()
    }

    /// Ratio of lost packets in the window.
    pub fn loss_ratio(&self) -> f64 {
        ratio(self.lost, self.packets.len())
    }

    /// Ratio of marked packets in the window.
    pub fn marking_ratio(&self) -> f64 {
        ratio(self.marked, self.packets.len())
    }

    /// Delays of the packets that arrived within `span` before the newest.
    pub fn delays_within(&self, span: Time) -> impl Iterator<Item = Time> + '_ {
        let newest = self.newest;
        let recent = self.packets.iter().rev();
        let recent = recent.take_while(move |(time, _)| *time + span > newest);
        recent.filter_map(|(_, packet)| packet.delay())
    }
}

fn ratio(count: u32, of: usize) -> f64 {
    if of == 0 {
        0.0
    } else {
        f64::from(count) / of as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{lost, report};
    use super::*;

    #[test]
    fn the_window_ends_at_the_newest_arrival() {
        let ms = Time::from_milliseconds;
        let mut arrivals = Arrivals::new(ms(500));
        let mut marked = report(2, 700, 720, 1000);
        marked.marked = true;
        let packets = [report(0, 0, 100, 1000), lost(1, 600), marked];
        arrivals.add(&Feedback {
            now: ms(750),
            rtt: ms(40),
            packets: &packets,
        });
        // The packet of 100 ms is 620 ms old, and the lost one counts by the arrival before it.
        assert!((arrivals.rate_bps() - 16_000.0).abs() < 1e-9);
        assert!(
            arrivals.loss_ratio().abs() < 1e-12 && (arrivals.marking_ratio() - 1.0).abs() < 1e-12
        );
        let packets = [lost(3, 730), report(4, 740, 770, 500)];
        arrivals.add(&Feedback {
            now: ms(850),
            rtt: ms(40),
            packets: &packets,
        });
        assert!((arrivals.rate_bps() - 24_000.0).abs() < 1e-9);
        assert!((arrivals.loss_ratio() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(arrivals.delays_within(ms(50)).collect::<Vec<_>>(), [ms(30)]);
        assert_eq!(arrivals.delays_within(ms(51)).count(), 2);
    }
}
