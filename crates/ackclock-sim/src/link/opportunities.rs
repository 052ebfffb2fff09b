//! Opportunities to deliver, as mahimahi's traces list them.
//!
//! R. Netravali et al.: Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015, section 3.2 (LinkShell); the
//! format is K. Winstein's, A. Sivaraman's and H. Balakrishnan's of Stochastic Forecasts (Sprout), NSDI 2013. At each
//! opportunity so many bytes leave. What no packet uses is lost. Small packets share one opportunity; of a packet that
//! is larger than what is left, the rest waits for the next, and the packet leaves with its last byte.
//!
//! Our deviation: mahimahi counts the four bytes of its tunnel's header besides each packet of up to 1500 bytes; here
//! an opportunity carries 1500 bytes and the frame of a packet.

use ackclock_core::Time;

/// The opportunities of a link.
#[derive(Debug)]
pub struct Opportunities {
    /// Within a period, in order.
    at: Vec<Time>,
    period: Time,
    /// Wire bytes that each carries.
    bytes: u64,
    /// Number of the next unused opportunity, from the start of the run.
    next: u64,
    /// Time of the opportunity used last, and the bytes left of it.
    open: Time,
    left: u64,
}

impl Opportunities {
    /// Opportunities at these times of each period.
    pub fn new(at_ms: &[u64], period: Time, bytes: u64) -> Opportunities {
        Opportunities {
            at: at_ms
                .iter()
                .map(|&ms| Time::from_milliseconds(ms))
                .collect(),
            period,
            bytes,
            next: 0,
            open: Time::ZERO,
            left: 0,
        }
    }

    /// Wire bits that can leave up to a time.
    pub fn capacity_bits(&self, until: Time) -> f64 {
        let period = self.period.picoseconds();
        let (turns, within) = (until.picoseconds() / period, until.picoseconds() % period);
        let within = Time::from_picoseconds(within);
        let count =
            turns * self.at.len() as u64 + self.at.partition_point(|&at| at <= within) as u64;
        (count * self.bytes) as f64 * 8.0
    }

    /// Time at which a packet may be admitted: the opportunity at `now`, or the next.
    pub fn ready(&mut self, now: Time) -> Time {
        if self.left > 0 && self.open >= now {
            return self.open;
        }
        self.left = 0;
        while self.time(self.next) < now {
            self.next += 1;
        }
        self.time(self.next)
    }

    /// Time of an opportunity, by its number.
    fn time(&self, number: u64) -> Time {
        let (turn, place) = (number / self.at.len() as u64, number % self.at.len() as u64);
        let begun = Time::from_picoseconds(self.period.picoseconds().saturating_mul(turn));
        begun + self.at[place as usize]
    }

    /// Admit a packet at the opportunity that [`Opportunities::ready`] gave; returns its departure, with the
    /// opportunity that carries its last byte.
    pub fn take(&mut self, wire_bytes: u32, now: Time) -> Time {
        let ready = self.ready(now);
        debug_assert!(ready == now);
        let mut missing = u64::from(wire_bytes);
        loop {
            if self.left == 0 {
                (self.open, self.left) = (self.time(self.next), self.bytes);
                self.next += 1;
            }
            let used = missing.min(self.left);
            self.left -= used;
            missing -= used;
            if missing == 0 {
                return self.open;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    /// Opportunities of 1000 bytes at 2, 2, 5 and 10 ms, again after 10 ms.
    fn four() -> Opportunities {
        Opportunities::new(&[2, 2, 5, 10], ms(10), 1000)
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut four = four();
        assert_eq!(four.ready(Time::ZERO), ms(2));
        assert_eq!(four.ready(ms(3)), ms(5));
        assert_eq!(four.ready(ms(11)), ms(12), "the next turn");
    }

    #[test]
    fn small_packets_share_an_opportunity_and_a_large_one_takes_several() {
        let mut four = four();
        assert_eq!(four.take(400, ms(2)), ms(2));
        assert_eq!(four.take(400, ms(2)), ms(2));
        // 200 bytes are left of the first, 1000 of the second; 300 have to wait.
        assert_eq!(four.take(1500, ms(2)), ms(5));
        assert_eq!(four.ready(ms(2)), ms(5), "700 bytes are left of the third");
        assert_eq!(four.take(700, ms(5)), ms(5));
        assert_eq!(four.ready(ms(5)), ms(10));
    }

    #[test]
    fn the_capacity_counts_each_opportunity() {
        assert_eq!(four().capacity_bits(ms(2)), 16_000.0);
        assert_eq!(four().capacity_bits(ms(25)), 8.0 * 11_000.0);
    }
}
