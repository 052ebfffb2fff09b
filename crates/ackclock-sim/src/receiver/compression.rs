//! Compression of SACKs: the segments behind a hole are acknowledged in batches.
//!
//! ```text
//!    hole   1   2   3   4   5   6   7   8        segments that arrive behind it
//!           │   │   │   └───────┬───────┘
//!          ACK ACK ACK          ACK              at most 1.1 ms after the first of them
//! ```
//!
//! As Linux does since 4.18, to spare ACKs and Wi-Fi: the first three (RFC 5681's duplicates) go immediately, then one
//! goes for all that come within 5 % of the handshake's RTT, at most 1 ms, and a timer's slack of 100 µs, or for
//! [`MAX_HELD`] of them. An ACK that advances restarts the count. Quick ACKs and the ACK of a duplicate do not wait.
//!
//! An ACK has room for the three ranges extended last. So since 5.8 a waiting ACK is sent before a range becomes the
//! third or later ([`MAX_RANGES`]): else holes that open in the meantime would push ranges out that the sender has
//! never received, and it would mark delivered segments lost.
//!
//! Deviations: an ACK that waits while the next is sent immediately is sent with it, not before; Linux takes the
//! smaller of the handshake's RTT and the receiver's own estimate; a timer that is due within the slack may take this
//! one along.

use ackclock_core::Time;

/// ACKs of a hole that are sent immediately (`TCP_FASTRETRANS_THRESH`).
const IMMEDIATE_ACKS: u32 = 3;
/// Largest number of segments that one ACK waits for (`net.ipv4.tcp_comp_sack_nr`).
const MAX_HELD: u32 = 44;
/// Largest number of new first ranges while an ACK waits (`TCP_SACK_BLOCKS_EXPECTED`).
const MAX_RANGES: usize = 2;
/// The longest wait (`net.ipv4.tcp_comp_sack_delay_ns`).
const MAX_WAIT: Time = Time::from_milliseconds(1);
/// Slack of Linux's timer (`net.ipv4.tcp_comp_sack_slack_ns`).
const SLACK: Time = Time::from_microseconds(100);
/// The wait as a share of the RTT.
const RTT_SHARE: f64 = 0.05;

/// State of SACK compression.
#[derive(Clone, Copy, Debug)]
pub struct Compression {
    is_on: bool,
    /// Departure of this end's last handshake packet.
    opening: Time,
    wait: Option<Time>,
    /// Next segment expected at the last SACK.
    next: u64,
    at_once: u32,
    held: u32,
}

impl Compression {
    /// Before the connection is open.
    pub fn new(is_on: bool) -> Compression {
        Compression {
            is_on,
            opening: Time::ZERO,
            wait: None,
            next: 0,
            at_once: 0,
            held: 0,
        }
    }

    /// Record the departure of a SYN or SYN/ACK.
    pub fn on_opening(&mut self, now: Time) {
        self.opening = now;
    }

    /// Record the arrival of the reply.
    pub fn on_opened(&mut self, now: Time) {
        let rtt = now.since(self.opening);
        self.wait
            .get_or_insert_with(|| rtt.scaled(RTT_SHARE).min(MAX_WAIT) + SLACK);
    }

    /// Handle a segment behind a hole, where `next` is expected; returns how long its ACK waits, if it does.
    pub fn hold(&mut self, next: u64) -> Option<Time> {
        if !self.is_on || self.held >= MAX_HELD {
            return None;
        }
        if self.next != next {
            self.next = next;
            self.at_once = 0;
        }
        if self.at_once < IMMEDIATE_ACKS {
            self.at_once += 1;
            return None;
        }
        self.held += 1;
        self.wait
    }

    /// True if an ACK waits.
    pub fn holds(&self) -> bool {
        self.held > 0
    }

    /// True if the waiting ACK must be sent before a segment is stored: of its range, `place` others would be
    /// reported first in the SACK option, which has no room for so many.
    pub fn precedes(&self, place: usize) -> bool {
        self.held > 0 && place >= MAX_RANGES
    }

    /// Record the departure of an ACK; returns whether one waited.
    pub fn release(&mut self) -> bool {
        std::mem::take(&mut self.held) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(rtt_ms: u64) -> Compression {
        let mut compression = Compression::new(true);
        compression.on_opening(Time::from_milliseconds(7));
        compression.on_opened(Time::from_milliseconds(7 + rtt_ms));
        compression
    }

    #[test]
    fn acks_after_the_third_are_compressed_until_an_ack_or_the_limit() {
        let mut compression = opened(100);
        assert_eq!([1; 3].map(|next| compression.hold(next)), [None; 3]);
        let wait = Some(Time::from_microseconds(1100));
        assert!((0..MAX_HELD).all(|_| compression.hold(1) == wait));
        assert_eq!(compression.hold(1), None);
        assert!(compression.release());
        assert!(!compression.release());
        assert_eq!(compression.hold(1), wait);
        assert_eq!(compression.hold(2), None, "another hole");
    }

    #[test]
    fn short_paths_wait_a_twentieth_of_their_handshake() {
        let mut compression = opened(10);
        compression.on_opened(Time::from_milliseconds(500));
        assert!((0..3).all(|_| compression.hold(1).is_none()));
        assert_eq!(compression.hold(1), Some(Time::from_microseconds(600)));
    }

    #[test]
    fn disabled_compression_delays_no_ack() {
        let mut compression = Compression::new(false);
        assert!((0..9).all(|_| compression.hold(1).is_none()));
    }
}
