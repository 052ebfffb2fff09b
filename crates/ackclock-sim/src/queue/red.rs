//! `red`: random early detection. Packets are dropped (or marked) at random when they arrive, the more often
//! the longer the queue is on average.
//!
//! S. Floyd, V. Jacobson: Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM ToN 1(4), 1993;
//! parameters and defaults as `tc-red(8)` in Linux 6.1. The average and the verdict are in `red/early.rs`.
//!
//! Deviations: the average and its power for an idle time are exact; Linux counts in powers of two and looks
//! the power up in a table. The link is idle from the end of the last transmission on. The link's own rate
//! is the one for idle times; `tc` assumes 10 Mb/s by default. `gentle` and `wait` (ns-2), `weight`,
//! `bytes` and `weighted` are not in `tc`.

use ackclock_core::{Rate, Time};
use serde::de::Error as _;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};
use early::{weight_for_burst, Early, Settings, Verdict, ADAPTATION_INTERVAL, LARGEST_WEIGHT};

pub mod early;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // they are switches of the algorithm spec
pub struct Parameters {
    /// Wire bytes that fit.
    limit_bytes: u64,
    /// Average up to which no packet is dropped; a third of `max_bytes` if not given.
    min_bytes: Option<u64>,
    /// Average from which each packet is dropped; thrice `min_bytes` or a quarter of the limit if not given.
    max_bytes: Option<u64>,
    /// Length of an average packet.
    avpkt_bytes: u32,
    /// Packets of a burst that is to pass, which sets the weight.
    burst_packets: Option<u32>,
    /// The weight itself.
    weight: Option<f64>,
    /// Probability at the upper threshold.
    probability: f64,
    /// Rate at which an idle time is turned into packets; the link's if not given.
    bandwidth_bps: Option<f64>,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    adaptive: bool,
    gentle: bool,
    wait: bool,
    bytes: bool,
    weighted: bool,
    spare_empty: bool,
}

/// Treatment of packets that early detection picks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marking {
    /// Mark packets of ECN-capable transports.
    pub ecn: bool,
    /// Drop packets above the upper threshold all the same.
    pub harddrop: bool,
    /// Queue packets that cannot be marked.
    pub nodrop: bool,
}

/// Measure of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Length of an average packet.
    pub avpkt_bytes: u32,
    /// True if the average counts bytes; else each packet counts as an average one.
    pub bytes: bool,
    /// True if a packet's probability is proportional to its length.
    pub weighted: bool,
    /// True if nothing is dropped early that finds the queue empty, or where packets are counted a single one.
    pub spare_empty: bool,
}

/// Bytes or packets that fit.
#[derive(Clone, Copy, Debug)]
pub enum QueueLimit {
    /// Wire bytes.
    Bytes(u64),
    /// Packets.
    Packets(u32),
}

/// A FIFO behind early detection.
#[derive(Debug)]
pub struct RedQueue {
    limit: QueueLimit,
    measure: Measure,
    marking: Marking,
    rate: Rate,
    early: Early,
    packets: Fifo,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let given = Parameters::deserialize(parameters)?;
    Ok(Queue::other(given.queue(context)?))
}

impl Discipline for RedQueue {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        if let Some(packet) = self.detect(packet, now, drops) {
            self.admit(packet, drops);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops) -> Option<Packet> {
        let packet = self.packets.pop()?;
        if self.packets.is_empty() {
            let duration = self.rate.transmission_time(u64::from(packet.wire_bytes));
            self.early.emptied(now + duration);
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }
}

impl RedQueue {
    /// An empty queue.
    pub fn new(
        limit: QueueLimit,
        measure: Measure,
        marking: Marking,
        settings: Settings,
        context: &QueueContext,
    ) -> Result<RedQueue, serde_json::Error> {
        require(
            !matches!(limit, QueueLimit::Bytes(0) | QueueLimit::Packets(0)),
            "the limit must be at least 1",
        )?;
        Ok(RedQueue {
            limit,
            measure,
            marking,
            rate: Rate::from_bits_per_second(context.rate_bps),
            early: Early::new(settings, context.random())?,
            packets: Fifo::default(),
        })
    }

    /// Apply early detection to a packet; returns `None` if it was dropped.
    pub fn detect(&mut self, mut packet: Packet, now: Time, drops: &mut Drops) -> Option<Packet> {
        let share = if self.measure.weighted {
            f64::from(packet.wire_bytes) / f64::from(self.measure.avpkt_bytes)
        } else {
            1.0
        };
        let Marking {
            ecn,
            harddrop,
            nodrop,
        } = self.marking;
        let may_mark = match self
            .early
            .arrival(self.measured(), share, self.is_spared(), now)
        {
            Verdict::Pass => return Some(packet),
            Verdict::Early => ecn,
            Verdict::Forced => ecn && !harddrop,
        };
        if may_mark && (drops.mark(&mut packet) || nodrop) {
            return Some(packet);
        }
        drops.push(packet);
        None
    }

    /// Update the average for a packet that is exempt from early detection.
    pub fn observe(&mut self, now: Time) {
        self.early.observe(self.measured(), now);
    }

    /// Queue a packet if it fits, else drop it.
    pub fn admit(&mut self, packet: Packet, drops: &mut Drops) {
        if self.fits(&packet) {
            self.packets.push(packet);
            self.early.entered();
        } else {
            drops.push(packet);
        }
    }

    /// True if a packet fits.
    pub fn fits(&self, packet: &Packet) -> bool {
        match self.limit {
            QueueLimit::Bytes(limit) => {
                self.packets.bytes() + u64::from(packet.wire_bytes) <= limit
            }
            QueueLimit::Packets(limit) => self.packets.len() < limit as usize,
        }
    }

    /// The packets, for disciplines that make room by other means.
    pub fn packets(&mut self) -> &mut Fifo {
        &mut self.packets
    }

    /// True if an arriving packet is exempt because of the queue that it finds.
    fn is_spared(&self) -> bool {
        self.measure.spare_empty && self.packets.len() <= usize::from(!self.measure.bytes)
    }

    /// Present length of the queue, the input of the average, in bytes.
    fn measured(&self) -> f64 {
        if self.measure.bytes {
            self.packets.bytes() as f64
        } else {
            self.packets.len() as f64 * f64::from(self.measure.avpkt_bytes)
        }
    }
}

impl Parameters {
    /// The queue that they describe.
    pub fn queue(&self, context: &QueueContext) -> Result<RedQueue, serde_json::Error> {
        require(self.avpkt_bytes > 0, "avpkt_bytes must be at least 1")?;
        let bandwidth_bps = self.bandwidth_bps.unwrap_or(context.rate_bps);
        require(
            bandwidth_bps > 0.0 && bandwidth_bps.is_finite(),
            "bandwidth must be above 0",
        )?;
        let (min, max) = self.thresholds();
        let settings = Settings {
            min,
            max,
            weight: self.weight_or_burst(min, max)?,
            max_probability: self.probability,
            gentle: self.gentle,
            wait: self.wait,
            adaptation: self.adaptive.then_some(ADAPTATION_INTERVAL),
            packet_time: Time::from_seconds(8.0 * f64::from(self.avpkt_bytes) / bandwidth_bps),
        };
        let measure = Measure {
            avpkt_bytes: self.avpkt_bytes,
            bytes: self.bytes,
            weighted: self.weighted,
            spare_empty: self.spare_empty,
        };
        let marking = Marking {
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: self.nodrop,
        };
        let limit = if self.bytes {
            QueueLimit::Bytes(self.limit_bytes)
        } else {
            QueueLimit::Packets((self.limit_bytes / u64::from(self.avpkt_bytes)) as u32)
        };
        RedQueue::new(limit, measure, marking, settings, context)
    }

    /// Lower and upper threshold, with the defaults of `tc`.
    fn thresholds(&self) -> (f64, f64) {
        let max = match (self.max_bytes, self.min_bytes) {
            (Some(max), _) => max as f64,
            (None, Some(min)) => 3.0 * min as f64,
            (None, None) => self.limit_bytes as f64 / 4.0,
        };
        (self.min_bytes.map_or(max / 3.0, |min| min as f64), max)
    }

    /// Weight as given, or that of the burst; `tc` takes a burst of (2 min + max) / (3 avpkt) packets.
    fn weight_or_burst(&self, min: f64, max: f64) -> Result<f64, serde_json::Error> {
        if let Some(weight) = self.weight {
            return Ok(weight);
        }
        let avpkt = f64::from(self.avpkt_bytes);
        let usual = ((2.0 * min + max) / (3.0 * avpkt)).floor();
        let burst = self.burst_packets.map_or(usual.max(1.0), f64::from);
        // Without an explicit burst a weight always exists: the average may move arbitrarily slowly,
        // or, below a threshold of a packet, which any burst exceeds, as fast as possible.
        let lowest = if self.burst_packets.is_some() {
            min
        } else if min <= avpkt {
            return Ok(LARGEST_WEIGHT);
        } else {
            min.min(burst * avpkt)
        };
        weight_for_burst(lowest / avpkt, burst).ok_or_else(|| {
            serde_json::Error::custom(format!(
                "burst must be at least min/avpkt = {:.0} packets, found {burst}",
                (min / avpkt).ceil()
            ))
        })
    }
}

#[cfg(test)]
mod tests;
