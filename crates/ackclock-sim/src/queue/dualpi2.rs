//! `dualpi2`: two queues, one for low latency, coupled by one controller.
//!
//! RFC 9332, appendix A; defaults as `tc-dualpi2(8)`. Packets with ECT(1) or CE go into the L queue (L4S),
//! all others into the C queue (classic). A PI controller moves a base probability p' by the longer of the
//! two delays. Classic packets are dropped or marked with p'², L4S packets marked with k p' or, if that is
//! more, when they have waited for longer than a threshold of about a millisecond.
//!
//! The scheduler prefers the L queue, within bounds: by weighted round robin (`wrr`), which leaves the C
//! queue a share of the link, or as one FIFO in which L4S packets count as older by `tshift` (`tsfifo`).
//!
//! ```text
//!            ┌─ L ── threshold ─ max ──► mark
//! arrival ───┤              k p' ┘
//!            └─ C ───────── p'² ───────► drop or mark
//! ```
//!
//! Overload (appendix A.2): once k p' reaches 1, L4S packets too are dropped with p'², and so are classic
//! packets that could be marked once p'² reaches 1/k². With `drop_on_overload = false` p' stays at 1/k or
//! below instead, and the queue grows to its limit.
//!
//! Deviations:
//! - The probabilities are summed up over the packets (`recur` of appendix A.1): no random numbers. The
//!   kernel draws.
//! - In an overload all L4S packets that are not dropped are marked, as in the kernel. The RFC adds k p' to
//!   the sum that decides about the drops too, which would raise their share above p'².
//! - The kernel neither drops nor marks by p' while less than two full packets wait; here, as in the RFC,
//!   there is no such rule.
//! - `min_qlen_step` is compared with what is left in the L queue when a packet leaves, as the RFC's `Th_len`;
//!   the kernel looks when the packet arrives.
//! - `limit` counts packets, as `tc` does, not bytes.
//! - The weights of `wrr` are Linux's: the C queue has `classic_protection` of the link while both have
//!   packets, and begins in debt by a full packet.
//! - The packet in transmission is not in a queue and does not count.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::{Ecn, Packet};
use crate::queue::fifo::Fifo;
use crate::queue::periodic::{is_period, Updates};
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

#[cfg(test)]
mod tests;

/// Scheduler of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scheduler {
    /// Weighted round robin.
    Wrr,
    /// Time-shifted FIFO.
    Tsfifo,
}

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit, in both queues together.
    limit_packets: u32,
    /// Target delay of the classic queue.
    #[serde(rename = "target_s")]
    target: Time,
    /// Period of the updates.
    #[serde(rename = "tupdate_s")]
    tupdate: Time,
    /// Integral gain, Hz.
    alpha: f64,
    /// Proportional gain, Hz.
    beta: f64,
    /// k: the L4S probability is so many times p'.
    coupling_factor: f64,
    /// Delay above which L4S packets are marked.
    #[serde(rename = "step_thresh_s")]
    step_thresh: Time,
    /// Further delay over which that probability rises to 1.
    #[serde(rename = "ramp_s")]
    ramp: Time,
    /// Length of the L queue up to which no packet is marked for its delay.
    min_qlen_step_packets: u32,
    /// The scheduler.
    scheduler: Scheduler,
    /// `wrr`: percent of the link for the C queue.
    classic_protection: f64,
    /// `tsfifo`: time by which L4S packets count as older.
    #[serde(rename = "tshift_s")]
    tshift: Time,
    /// A full packet's wire bytes.
    mtu_bytes: u32,
    /// True if packets with ECT(0) go into the L queue too.
    any_ect: bool,
    /// True if an overload causes drops; else the queue overflows.
    drop_on_overload: bool,
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let is_gain = |gain: f64| gain.is_finite() && gain >= 0.0;
        let is_factor = self.coupling_factor >= 0.0 && self.coupling_factor.is_finite();
        let is_percentage = (0.0..=100.0).contains(&self.classic_protection);
        require(self.limit_packets > 0, "limit_packets must be at least 1")?;
        require(self.target > Time::ZERO, "target_s must be greater than 0")?;
        require(is_period(self.tupdate), "tupdate_s must be greater than 0")?;
        require(is_gain(self.alpha), "alpha must be 0 or more")?;
        require(is_gain(self.beta), "beta must be 0 or more")?;
        require(is_factor, "coupling_factor must be at least 0")?;
        require(is_percentage, "classic_protection must be from 0 to 100")?;
        require(self.mtu_bytes > 0, "mtu_bytes must be at least 1")
    }

    /// The largest p'.
    fn max_base(&self) -> f64 {
        if self.drop_on_overload {
            1.0
        } else {
            (1.0 / self.coupling_factor).min(1.0)
        }
    }

    /// The C queue's credit when there is nothing to share: its weight less that of the L queue, for a packet.
    fn first_credit(&self) -> f64 {
        f64::from(self.mtu_bytes) * (2.0 * self.classic_protection - 100.0)
    }
}

/// A queue, and the sum of its packets' probabilities (`recur` of appendix A.1).
#[derive(Debug, Default)]
struct SubQueue {
    packets: Fifo,
    count: f64,
}

impl SubQueue {
    /// Add a probability to the sum; returns True for the packets that it hits, evenly spread.
    fn recurs(&mut self, probability: f64) -> bool {
        self.count += probability;
        let hits = self.count > 1.0;
        if hits {
            self.count -= 1.0;
        }
        hits
    }

    /// Sojourn time of the first packet.
    fn delay(&self, now: Time) -> Time {
        self.packets
            .first()
            .map_or(Time::ZERO, |first| now.since(first.enqueued))
    }
}

/// The two queues and what couples them.
#[derive(Debug)]
struct DualPi2 {
    parameters: Parameters,
    l4s: SubQueue,
    classic: SubQueue,
    /// p'.
    base: f64,
    /// The longer delay at the update before.
    delay_old_s: f64,
    updates: Updates,
    /// `wrr`: bytes, in percent, that the C queue is owed; it is its turn while this is positive.
    credit: f64,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Queue::other(DualPi2::new(parameters)))
}

impl DualPi2 {
    fn new(parameters: Parameters) -> DualPi2 {
        DualPi2 {
            l4s: SubQueue::default(),
            classic: SubQueue::default(),
            base: 0.0,
            delay_old_s: 0.0,
            updates: Updates::new(parameters.tupdate, parameters.tupdate),
            credit: parameters.first_credit(),
            parameters,
        }
    }

    /// True if packets with these ECN bits go into the L queue.
    fn is_low_latency(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::Ect0 => self.parameters.any_ect,
            Ecn::NotEct => false,
        }
    }

    /// p_C, the probability for classic packets.
    fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL, the coupled probability for L4S packets; not held to 1.
    fn coupled_probability(&self) -> f64 {
        self.parameters.coupling_factor * self.base
    }

    /// True if marks alone cannot control the L queue (`p_CL ≥ p_Lmax`).
    fn is_overloaded(&self) -> bool {
        self.parameters.drop_on_overload && self.coupled_probability() >= 1.0
    }

    /// p_Cmax: above it ECN cannot control an overload.
    fn max_classic(&self) -> f64 {
        (1.0 / self.parameters.coupling_factor.powi(2)).min(1.0)
    }

    /// p'_L, the L queue's own probability (`laqm` of appendix A.1), for a packet that waited so long with
    /// so many behind it.
    fn native_probability(&self, delay: Time, behind: usize) -> f64 {
        let over = delay.since(self.parameters.step_thresh);
        if over == Time::ZERO || behind < self.parameters.min_qlen_step_packets as usize {
            0.0
        } else if over >= self.parameters.ramp {
            1.0
        } else {
            over.as_f64() / self.parameters.ramp.as_f64()
        }
    }

    /// Apply the updates up to `now` (`dualpi2_update`). Those of an empty queue stop once they change nothing.
    fn catch_up(&mut self, now: Time) {
        let mut updates = self.updates;
        updates.catch_up(now, |at| self.update(at) || self.backlog().packets > 0);
        self.updates = updates;
    }

    /// Update p'. Returns whether anything changed.
    fn update(&mut self, at: Time) -> bool {
        let before = (self.base, self.delay_old_s);
        let delay_s = self.classic.delay(at).max(self.l4s.delay(at)).seconds();
        let integral = self.parameters.alpha * (delay_s - self.parameters.target.seconds());
        let proportional = self.parameters.beta * (delay_s - self.delay_old_s);
        self.base = (self.base + integral + proportional).clamp(0.0, self.parameters.max_base());
        self.delay_old_s = delay_s;
        before != (self.base, self.delay_old_s)
    }

    /// True if the L queue is next; at least one is not empty.
    fn is_l4s_next(&self, now: Time) -> bool {
        if self.l4s.packets.is_empty() || self.classic.packets.is_empty() {
            return !self.l4s.packets.is_empty();
        }
        match self.parameters.scheduler {
            Scheduler::Wrr => self.credit <= 0.0,
            Scheduler::Tsfifo => {
                self.l4s.delay(now) + self.parameters.tshift >= self.classic.delay(now)
            }
        }
    }

    /// Charge a packet that leaves one queue: the other, if not empty, gets credit; if nothing is left, all
    /// credits are reset.
    fn pay(&mut self, wire_bytes: u32, is_l4s: bool) {
        let bytes = f64::from(wire_bytes);
        if self.backlog().packets == 0 {
            self.credit = self.parameters.first_credit();
        } else if is_l4s && !self.classic.packets.is_empty() {
            self.credit += self.parameters.classic_protection * bytes;
        } else if !is_l4s && !self.l4s.packets.is_empty() {
            self.credit -= (100.0 - self.parameters.classic_protection) * bytes;
        }
    }

    /// The L queue's first packet, marked or not, or `None` if it was dropped.
    fn take_l4s(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        let mut packet = self.l4s.packets.pop()?;
        let marks = if self.is_overloaded() {
            let classic = self.classic_probability();
            if self.l4s.recurs(classic) {
                drops.push(packet);
                return None;
            }
            true
        } else {
            let delay = now.since(packet.enqueued);
            let native = self.native_probability(delay, self.l4s.packets.len());
            let coupled = self.coupled_probability().min(1.0);
            self.l4s.recurs(native.max(coupled))
        };
        if marks {
            drops.mark(&mut packet);
        }
        Some(packet)
    }

    /// The C queue's first packet, marked or not, or `None` if it was dropped.
    fn take_classic(&mut self, drops: &mut Drops) -> Option<Packet> {
        let mut packet = self.classic.packets.pop()?;
        let probability = self.classic_probability();
        if self.classic.recurs(probability) {
            let overloaded = self.parameters.drop_on_overload && probability >= self.max_classic();
            if overloaded || !drops.mark(&mut packet) {
                drops.push(packet);
                return None;
            }
        }
        Some(packet)
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        self.catch_up(now);
        if self.backlog().packets >= self.parameters.limit_packets {
            drops.push(packet);
        } else if self.is_low_latency(packet.ecn()) {
            self.l4s.packets.push(packet);
        } else {
            self.classic.packets.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        self.catch_up(now);
        while self.backlog().packets > 0 {
            let is_l4s = self.is_l4s_next(now);
            let taken = if is_l4s {
                self.take_l4s(now, drops)
            } else {
                self.take_classic(drops)
            };
            if let Some(packet) = taken {
                self.pay(packet.wire_bytes, is_l4s);
                return Some(packet);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        let (l4s, classic) = (self.l4s.packets.backlog(), self.classic.packets.backlog());
        Backlog {
            packets: l4s.packets + classic.packets,
            bytes: l4s.bytes + classic.bytes,
        }
    }
}
