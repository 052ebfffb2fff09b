//! Tins: classes of packets by their DS field, each with its queues and its threshold.
//!
//! tc-cake(8), "Priority queue parameters". Tins are numbered from low to high priority. With a shaper, a tin below its
//! threshold goes before all tins of lower priority; among tins above theirs, the one goes first that comes below its
//! threshold first. Each tin's clock compares its rate with its threshold, as the shaper's does with the bandwidth. So in
//! a saturated link a tin gets its threshold, and best effort, whose threshold is the bandwidth, what is left. Without a
//! shaper there is no threshold, and tins take turns (DRR) of bytes in proportion to it.
//!
//! Target, interval and quantum of a tin are those that `tc -s qdisc` of Linux 6.1 shows: the target is 1/20 of the RTT
//! and at least one and a half full packets' transmission times at the threshold, the interval is the RTT, longer by
//! what the target exceeds 1/20 of it, and at least two targets; the quantum is the bytes of 1/4096 s, from 300 to 1514.

use ackclock_core::{Rate, Time};
use serde::Deserialize;

use super::cobalt::Law;
use super::flows::FlowTable;

/// A full packet with its frame: the device's MTU and header in Linux, on Ethernet.
pub const FULL_PACKET_BYTES: u64 = 1514;
/// Least quantum.
const MIN_QUANTUM_BYTES: f64 = 300.0;
/// A quantum is what comes in this part of a second.
const QUANTA_PER_S: f64 = 4096.0;
/// The RTT in targets.
const RTT_TARGETS: f64 = 20.0;
/// A target in full packets, at least.
const TARGET_PACKETS: f64 = 1.5;
/// Bytes of a turn of a tin whose threshold is the bandwidth.
const TURN_BYTES: f64 = 1024.0;

/// Thresholds as parts of the bandwidth: best effort, bulk and voice; the same with video between; and eight that
/// decrease by an eighth each.
const THREE: &[f64] = &[1.0, 1.0 / 16.0, 1.0 / 4.0];
const FOUR: &[f64] = &[1.0, 1.0 / 16.0, 1.0 / 2.0, 1.0 / 4.0];
const EIGHT: &[f64] = &[
    1.0,
    0.875,
    0.765_625,
    0.669_921_875,
    0.586_181_640_625,
    0.512_908_935_546_875,
    0.448_795_318_603_515_6,
    0.392_695_903_778_076_2,
];

/// Tins by the DS field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Diffserv {
    /// One tin.
    Besteffort,
    /// Best effort, bulk, voice.
    Diffserv3,
    /// Best effort, bulk, video, voice.
    Diffserv4,
    /// Eight classes.
    Diffserv8,
    /// Eight, by the field's upper three bits (RFC 791).
    Precedence,
}

impl Diffserv {
    fn thresholds(self) -> &'static [f64] {
        match self {
            Diffserv::Besteffort => &THREE[..1],
            Diffserv::Diffserv3 => THREE,
            Diffserv::Diffserv4 => FOUR,
            Diffserv::Diffserv8 | Diffserv::Precedence => EIGHT,
        }
    }

    /// Empty tins behind a shaper of this rate, if there is one.
    pub fn tins(self, bandwidth: Option<Rate>, rtt: Time) -> Vec<Tin> {
        let tin = |&share| Tin::new(share, bandwidth, rtt);
        self.thresholds().iter().map(tin).collect()
    }

    /// The tin of packets with this codepoint.
    pub fn tin_of(self, dscp: u8) -> usize {
        match self {
            Diffserv::Besteffort => 0,
            Diffserv::Precedence => usize::from(dscp >> 3 & 7),
            Diffserv::Diffserv3 => three(dscp),
            Diffserv::Diffserv4 => four(dscp),
            Diffserv::Diffserv8 => eight(dscp),
        }
    }
}

/// CS1 and LE are bulk; CS7, CS6, EF, VA and TOS4 voice.
fn three(dscp: u8) -> usize {
    match dscp {
        8 | 1 => 1,
        4 | 44 | 46 | 48 | 56 => 2,
        _ => 0,
    }
}

/// CS1 and LE are bulk; AF4x, AF3x, CS3, AF2x, CS2 and TOS4 video (Linux 6.1 counts the manual's TOS1, codepoint 2, as
/// best effort); CS7, CS6, EF, VA, CS5 and CS4 voice.
fn four(dscp: u8) -> usize {
    match dscp {
        8 | 1 => 1,
        34 | 36 | 38 | 26 | 28 | 30 | 24 | 18 | 20 | 22 | 16 | 4 => 2,
        56 | 48 | 46 | 44 | 40 | 32 => 3,
        _ => 0,
    }
}

/// LE; CS1, AF1x and codepoint 2; best effort; AF3x, CS3 and AF4x; AF2x and TOS4; CS2; EF, VA, CS4 and CS5; CS6 and CS7.
/// The manual does not list them: `tc -s qdisc` of Linux 6.1 counts packets of each codepoint so.
fn eight(dscp: u8) -> usize {
    match dscp {
        1 => 0,
        2 | 8 | 10 | 12 | 14 => 1,
        24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
        4 | 18 | 20 | 22 => 4,
        16 => 5,
        32 | 40 | 44 | 46 => 6,
        48 | 56 => 7,
        _ => 2,
    }
}

/// A class of packets.
#[derive(Debug)]
pub struct Tin {
    pub flows: FlowTable,
    pub law: Law,
    /// Rate above which it loses its priority; `None` without a shaper.
    threshold: Option<Rate>,
    /// Time from which on it is below its threshold.
    next: Time,
    /// Bytes of a turn, and what is left of it.
    turn_bytes: i64,
    deficit: i64,
}

impl Tin {
    fn new(share: f64, bandwidth: Option<Rate>, rtt: Time) -> Tin {
        let bps = |rate: Rate| rate.bits_per_second() * share;
        let threshold = bandwidth.map(|rate| Rate::from_bits_per_second(bps(rate)));
        let full_packet =
            threshold.map_or(Time::ZERO, |rate| rate.transmission_time(FULL_PACKET_BYTES));
        let least = rtt.scaled(1.0 / RTT_TARGETS);
        let target = least.max(full_packet.scaled(TARGET_PACKETS));
        let quantum = bandwidth.map_or(FULL_PACKET_BYTES as f64, |rate| {
            bps(rate) / 8.0 / QUANTA_PER_S
        });
        Tin {
            flows: FlowTable::new(quantum.clamp(MIN_QUANTUM_BYTES, FULL_PACKET_BYTES as f64) as u32),
            law: Law {
                target,
                interval: (rtt + target - least).max(target.scaled(2.0)),
                full_packet,
            },
            threshold,
            next: Time::ZERO,
            turn_bytes: (TURN_BYTES * share) as i64,
            deficit: 0,
        }
    }

    /// A packet comes: an empty tin has not saved up time.
    pub fn wake(&mut self, now: Time) {
        if !self.flows.has_packets() {
            self.next = self.next.max(now);
        }
    }

    /// Charge a packet that one of its queues sends.
    pub fn charge(&mut self, queue: usize, bytes: u64, now: Time) {
        self.flows.charge(queue, bytes);
        self.deficit -= bytes as i64;
        if let Some(threshold) = self.threshold {
            let duration = threshold.transmission_time(bytes);
            self.next = if self.next < now {
                self.next + duration
            } else {
                self.next.max(now + duration)
            };
        }
    }
}

/// With a shaper: the tin of the highest priority that is below its threshold, else the one that is so first.
pub fn by_threshold(tins: &[Tin], now: Time) -> Option<usize> {
    let active = || {
        (0..tins.len())
            .rev()
            .filter(|&tin| tins[tin].flows.is_active())
    };
    let below = active().find(|&tin| tins[tin].next <= now);
    below.or_else(|| active().min_by_key(|&tin| tins[tin].next))
}

/// Without a shaper: the tin whose turn it is.
pub fn by_weight(tins: &mut [Tin], turn: &mut usize) -> Option<usize> {
    if !tins.iter().any(|tin| tin.flows.is_active()) {
        return None;
    }
    loop {
        let tin = &mut tins[*turn];
        if tin.flows.is_active() && tin.deficit >= 0 {
            return Some(*turn);
        }
        if tin.deficit <= 0 {
            tin.deficit += tin.turn_bytes;
        }
        *turn = (*turn + 1) % tins.len();
    }
}
