//! `cake`: a shaper, tins by the DS field, and in each a queue for every flow under COBALT, in turns that are fair to
//! hosts and to flows.
//!
//! T. Høiland-Jørgensen, D. Täht, J. Morton: Piece of CAKE: A Comprehensive Queue Management Solution for Home
//! Gateways, IEEE LANMAN 2018; parameters, tins and thresholds as `tc-cake(8)`, and what `tc -s qdisc` of Linux 6.1
//! shows of them. The parts: `cake/tins.rs`, `cake/flows.rs` (turns, RFC 8290 section 4), `cake/cobalt.rs`,
//! `cake/ack_filter.rs`, `cake/framing.rs`.
//!
//! ```text
//!            DS field    hash          turns of flows      turns of tins   shaper
//!   packet ──▶ tin ──▶ queue ─ COBALT ─────▶ tin ──────────────▶ ────────────▶ link
//! ```
//!
//! The shaper is a clock in deficit mode: a packet leaves when the clock has come, and sets it forward by its
//! transmission time at the bandwidth, so there are no bursts. Without a bandwidth the link is the limit, and the tins
//! take turns by weight instead of by threshold.
//!
//! Deviations: memory is counted in wire bytes; Linux counts its buffers, about 2.3 KB for a packet of 1.5 KB. Hosts are
//! told apart without collisions; Linux hashes them like flows. Deficits have fractions of a byte where Linux draws
//! whether to round up. Left out: `autorate-ingress`, `ingress`, `nat`, `wash`, `fwmark`, and `split-gso` (each segment
//! is a packet here).

use ackclock_core::{Rate, Time};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::hash::FlowHash;
use crate::queue::{
    require, Backlog, Discipline, Drops, FlowHeader, FlowHeaders, Queue, QueueContext,
};

mod ack_filter;
mod cobalt;
mod flows;
mod framing;
mod tins;

use ack_filter::AckFilter;
use flows::Isolation;
use framing::{Framing, LinkLayer};
use tins::{Diffserv, Tin, FULL_PACKET_BYTES};

/// Packets of [`FULL_PACKET_BYTES`] for which there is memory at most by default, as in Linux.
const MEMORY_PACKETS: u64 = 10_240;
/// Memory that a shaper has at least by default, as in Linux.
const SHAPED_MEMORY_BYTES: u64 = 4 << 20;
/// Default memory of a shaper in bandwidth × rtt, as in Linux.
const MEMORY_BDP: f64 = 4.0;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Rate of the shaper; `null`: the link's rate is the limit.
    bandwidth_bps: Option<f64>,
    /// Tins by the DS field.
    diffserv: Diffserv,
    /// Definition of a flow, and the hosts between which turns are fair.
    isolation: Isolation,
    /// Dropping of ACKs that newer ones make redundant.
    ack_filter: AckFilter,
    /// The RTT for which COBALT is tuned.
    rtt_s: f64,
    /// Cells or codewords of the link layer.
    link_layer: LinkLayer,
    /// Bytes of the frame for which the shaper counts; `null`: those of the link.
    overhead: Option<i32>,
    /// Bytes for which a packet counts at least.
    mpu: u32,
    /// Wire bytes that fit; `null`: by bandwidth and RTT.
    memlimit_bytes: Option<u64>,
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let is_rate = |rate: f64| rate.is_finite() && rate >= 1000.0;
        require(
            self.bandwidth_bps.is_none_or(is_rate),
            "bandwidth_bps must be at least 1000",
        )?;
        let rtt = Time::from_seconds(self.rtt_s);
        let is_time = self.rtt_s.is_finite() && rtt >= Time::from_microseconds(1);
        require(is_time, "rtt_s must be at least 1 µs")?;
        let overhead = self.overhead.unwrap_or(0);
        require(
            (-64..=256).contains(&overhead),
            "overhead must be from -64 to 256",
        )?;
        require(self.mpu <= 256, "mpu must be at most 256")?;
        require(
            self.memlimit_bytes != Some(0),
            "memlimit_bytes must be at least 1",
        )
    }

    /// Wire bytes that fit.
    fn memory_bytes(&self) -> u64 {
        let most = MEMORY_PACKETS * FULL_PACKET_BYTES;
        let of_shaper = |bps: f64| (MEMORY_BDP * bps / 8.0 * self.rtt_s) as u64;
        let default = self
            .bandwidth_bps
            .map_or(most, |bps| of_shaper(bps).clamp(SHAPED_MEMORY_BYTES, most));
        self.memlimit_bytes.unwrap_or(default)
    }
}

/// The tins behind a shaper.
#[derive(Debug)]
struct Cake {
    diffserv: Diffserv,
    isolation: Isolation,
    ack_filter: AckFilter,
    framing: Framing,
    memory_bytes: u64,
    shaper: Option<Shaper>,
    /// From low to high priority.
    tins: Vec<Tin>,
    /// Without a shaper: the tin whose turn it is.
    turn: usize,
    headers: FlowHeaders,
    hash: FlowHash,
    random: Pcg64Mcg,
    backlog: Backlog,
}

/// A clock in deficit mode.
#[derive(Clone, Copy, Debug)]
struct Shaper {
    rate: Rate,
    /// Time from which on the next packet may leave.
    next: Time,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Queue::other(Cake::new(&parameters, context)))
}

impl Cake {
    fn new(parameters: &Parameters, context: &QueueContext) -> Cake {
        let rate = parameters.bandwidth_bps.map(Rate::from_bits_per_second);
        let mut random = context.random();
        Cake {
            diffserv: parameters.diffserv,
            isolation: parameters.isolation,
            ack_filter: parameters.ack_filter,
            framing: Framing {
                link_layer: parameters.link_layer,
                overhead: parameters.overhead,
                mpu: parameters.mpu,
                frame_bytes: context.frame_bytes,
            },
            memory_bytes: parameters.memory_bytes(),
            shaper: rate.map(|rate| Shaper {
                rate,
                next: Time::ZERO,
            }),
            tins: parameters
                .diffserv
                .tins(rate, Time::from_seconds(parameters.rtt_s)),
            turn: 0,
            headers: context.headers.clone(),
            hash: FlowHash::draw(&mut random),
            random,
            backlog: Backlog::default(),
        }
    }

    /// A clock does not save up time in which it has nothing to send.
    fn wake(&mut self, tin: usize, now: Time) {
        if let Some(shaper) = self.shaper.as_mut().filter(|_| self.backlog.packets == 0) {
            shaper.next = shaper.next.max(now);
        }
        self.tins[tin].wake(now);
    }

    /// Drop the redundant ACK that a new packet replaces in its queue, if there is one.
    fn filter_ack(
        &mut self,
        tin: usize,
        queue: usize,
        packet: &Packet,
        header: &FlowHeader,
        drops: &mut Drops,
    ) {
        let bare_bytes = u32::from(header.bare_ack_bytes) + self.framing.frame_bytes;
        let flows = &mut self.tins[tin].flows;
        let waiting = flows.packets(queue);
        let departed = flows.departed_ack(queue);
        let redundant = self
            .ack_filter
            .redundant(waiting, departed, packet, bare_bytes);
        if let Some(old) = redundant.and_then(|index| flows.remove(queue, index)) {
            self.drop(old, drops);
        }
    }

    /// Report a packet that has been taken out of its queue as dropped.
    fn drop(&mut self, packet: Packet, drops: &mut Drops) {
        self.release(&packet);
        drops.push(packet);
    }

    fn release(&mut self, packet: &Packet) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.wire_bytes);
    }

    /// Drop from the head of the queue with the most bytes, the first of equal ones, and notify its BLUE.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, drops: &mut Drops) {
        let mut fattest: Option<(u64, usize, usize)> = None;
        for (tin, of) in self.tins.iter().enumerate() {
            if let Some((bytes, queue)) = of.flows.fattest() {
                if fattest.is_none_or(|(most, ..)| bytes > most) {
                    fattest = Some((bytes, tin, queue));
                }
            }
        }
        let Some((_, tin, queue)) = fattest else {
            return;
        };
        let Tin { flows, law, .. } = &mut self.tins[tin];
        flows.control(queue).on_overflow(law, now);
        if let Some(packet) = flows.pop(queue) {
            self.drop(packet, drops);
        }
    }

    /// The tin to send from, while packets wait.
    fn next_tin(&mut self, now: Time) -> Option<usize> {
        if self.shaper.is_some() {
            tins::by_threshold(&self.tins, now)
        } else {
            tins::by_weight(&mut self.tins, &mut self.turn)
        }
    }

    /// Take a packet of a tin's next queue, after those that COBALT drops; `None` if that queue is empty, which ends
    /// its turn. The last packet of a queue may be marked, but is never dropped.
    fn take(&mut self, tin: usize, now: Time, drops: &mut Drops) -> Option<(usize, Packet)> {
        let queue = self.tins[tin].flows.turn()?;
        loop {
            let Tin { flows, law, .. } = &mut self.tins[tin];
            let Some(mut packet) = flows.pop(queue) else {
                flows.control(queue).on_empty(law, now);
                flows.leave(queue);
                return None;
            };
            let control = flows.control(queue);
            let is_hit = control.is_hit(law, &mut packet, now, drops, &mut self.random);
            if !is_hit || flows.packets(queue).is_empty() {
                self.release(&packet);
                return Some((queue, packet));
            }
            self.drop(packet, drops);
        }
    }

    /// Charge a packet that leaves to its queue, its tin and the shaper.
    fn charge(&mut self, tin: usize, queue: usize, packet: &Packet, now: Time) {
        let bytes = self.framing.bytes(packet.wire_bytes);
        self.tins[tin].charge(queue, bytes, now);
        if let Some(shaper) = &mut self.shaper {
            shaper.next += shaper.rate.transmission_time(bytes);
        }
    }
}

impl Discipline for Cake {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        let header = self.headers.of_packet(&packet);
        let mut hosts = header.hosts;
        if !packet.kind.is_forward() {
            hosts.reverse();
        }
        let tin = self.diffserv.tin_of(header.dscp);
        self.wake(tin, now);
        let Tin { flows, law, .. } = &mut self.tins[tin];
        let key = self.isolation.key(packet.flow, hosts);
        let queue = flows.queue_of(key, self.hash);
        if flows.is_idle(queue) {
            flows.control(queue).on_empty(law, now);
        }
        if self.ack_filter.is_on() {
            self.filter_ack(tin, queue, &packet, &header, drops);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.wire_bytes);
        let hosts = self.isolation.fair_hosts(hosts);
        self.tins[tin].flows.push(queue, packet, hosts);
        while self.backlog.bytes > self.memory_bytes {
            self.drop_from_fattest(now, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        if self.shaper.is_some_and(|shaper| shaper.next > now) {
            return None;
        }
        while self.backlog.packets > 0 {
            let tin = self.next_tin(now)?;
            if let Some((queue, packet)) = self.take(tin, now, drops) {
                self.charge(tin, queue, &packet, now);
                return Some(packet);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn ready(&self, _now: Time) -> Time {
        self.shaper.map_or(Time::NEVER, |shaper| shaper.next)
    }
}

#[cfg(test)]
mod tests;
