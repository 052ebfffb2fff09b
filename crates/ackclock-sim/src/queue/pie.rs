//! `pie`: Proportional Integral controller Enhanced.
//!
//! RFC 8033; behaviour and parameters as `tc-pie(8)` in Linux 6.1. A packet is dropped (or marked) when it
//! arrives, with a probability that an integral controller moves every `tupdate` so that the queueing delay
//! converges to `target`. The control law is in `pie/control.rs`.
//!
//! Deviations, all but the last two as Linux has it:
//! - The delay is that of the last packet that left, not of the queue's head (RFC 8033 section 4.3 leaves
//!   this open); it is zero when that packet left the queue empty.
//! - The burst allowance is used up by the time between departures, not by `tupdate` at each update.
//! - Without congestion p falls by 1/64 at an update, not by 2 %.
//! - A measured departure rate has the weight 1/8 in the average.
//! - p is a float, not a fixed-point number of 56 bits, and times are not rounded to the kernel's units.
//!   The kernel rounds `tupdate` up to whole timer ticks, and its timers fire a tick late: updates are
//!   30 ms apart with HZ=100, 20 ms with HZ=250 and 16 ms with HZ=1000.
//!   A mark by the rule of the overdue drop also starts the sum of p anew.
//! - p ends at 1. The kernel stops it only where its number overflows, far beyond.
//!
//! Updates are in the phase that they have in a guest of the engine `linux`, whose queues are set up two seconds
//! before the flows begin (Linux waits half a second and a tick with the first one). Nothing in Linux or the RFC
//! ties this phase to the traffic.
//!
//! The packet in transmission is not in the queue and does not count.

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::periodic::Updates;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

pub mod control;
#[cfg(test)]
mod tests;

use control::{Control, Settings};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit.
    limit_packets: u32,
    /// True if packets of ECN-capable flows are marked instead of dropped.
    ecn: bool,
    /// The largest drop probability at which packets are marked.
    ecn_threshold: f64,
    #[serde(flatten)]
    settings: Settings,
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let is_probability = (0.0..=1.0).contains(&self.ecn_threshold);
        require(self.limit_packets > 0, "limit_packets must be at least 1")?;
        require(is_probability, "ecn_threshold must be from 0 to 1")?;
        self.settings.check()
    }
}

/// A FIFO whose arrivals are dropped by PIE.
#[derive(Debug)]
struct Pie {
    parameters: Parameters,
    packets: Fifo,
    control: Control,
    updates: Updates,
    random: Pcg64Mcg,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Queue::other(Pie::new(parameters, context.random())))
}

impl Pie {
    fn new(parameters: Parameters, random: Pcg64Mcg) -> Pie {
        Pie {
            control: Control::new(parameters.settings),
            packets: Fifo::default(),
            updates: parameters.settings.updates(),
            parameters,
            random,
        }
    }

    fn catch_up(&mut self, now: Time) {
        let Pie {
            control, packets, ..
        } = self;
        self.updates
            .catch_up(now, |_| control.update(packets.bytes()));
    }

    /// True if packets may be marked: an unresponsive overload causes drops.
    fn may_mark(&self) -> bool {
        self.parameters.ecn && self.control.probability() <= self.parameters.ecn_threshold
    }
}

impl Discipline for Pie {
    fn enqueue(&mut self, mut packet: Packet, now: Time, drops: &mut Drops) {
        self.catch_up(now);
        let is_full = self.packets.len() >= self.parameters.limit_packets as usize;
        let backlog = self.packets.bytes();
        if !is_full && !self.control.hits(&packet, backlog, &mut self.random) {
            self.packets.push(packet);
            return;
        }
        self.control.on_hit();
        if !is_full && self.may_mark() && drops.mark(&mut packet) {
            self.packets.push(packet);
        } else {
            drops.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops) -> Option<Packet> {
        self.catch_up(now);
        let packet = self.packets.pop()?;
        let backlog = self.packets.bytes();
        self.control.on_departure(&packet, now, backlog);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }
}
