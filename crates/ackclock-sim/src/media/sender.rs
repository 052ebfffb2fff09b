//! The sender of a video: encoder, packets, pacer, and the memory of what was sent.

use std::collections::VecDeque;

use ackclock_congestion::realtime::{
    self, Feedback, MediaSource, PacketReport, QueuedFrame, RateController,
};
use ackclock_congestion::Variables;
use ackclock_core::{Rate, Time};
use ackclock_plan::{DatagramPlan, EcnMode, MediaPlan};

use super::circuit_breaker::{CircuitBreaker, Trip};
use super::encoder::Encoder;
use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::packet::{Ecn, Flags, Packet};
use crate::rtp::{Report, RtpHeader};
use crate::PlanError;

/// Packets whose send time is kept for a report, at most; as many as RTP has numbers.
const MAX_HISTORY: usize = 1 << 16;

/// A packet that was sent and not reported.
#[derive(Clone, Copy, Debug)]
struct Sent {
    time: Time,
    bytes: u32,
}

/// The sender.
#[derive(Debug)]
pub struct MediaSender {
    payload_bytes: u32,
    header_bytes: u32,
    flags: Flags,
    stop: Time,
    encoder: Encoder,
    controller: Box<dyn RateController>,
    /// Packets that wait to be paced out.
    queue: VecDeque<RtpHeader>,
    backlog_bytes: u64,
    next_departure: Time,
    /// When the first packet of the queue may leave though the window is full.
    keep_alive: Time,
    min_rate: Rate,
    /// Packets not reported yet, the first of which has this number.
    history: VecDeque<Sent>,
    first: u64,
    in_flight_bytes: u64,
    rtt: Option<Time>,
    /// Packets of a report, kept for their memory.
    reported: Vec<PacketReport>,
    breaker: Option<CircuitBreaker>,
    /// Why and when it ceased.
    ceased: Option<(Trip, Time)>,
}

impl MediaSender {
    /// A sender that starts at `now`; `number` is the flow's among those over UDP.
    ///
    /// # Errors
    /// An unknown congestion control algorithm, or parameters that are not those of its spec.
    pub fn new(
        plan: &DatagramPlan,
        media: &MediaPlan,
        now: Time,
        seed: u64,
        number: u64,
    ) -> Result<MediaSender, PlanError> {
        Ok(MediaSender {
            payload_bytes: plan.payload_bytes,
            header_bytes: plan.header_bytes,
            flags: Flags::of(ecn(media.ecn)),
            stop: plan.stop.unwrap_or(Time::NEVER),
            encoder: Encoder::new(media, now, seed, number),
            controller: controller(media, plan.payload_bytes + plan.header_bytes)?,
            queue: VecDeque::new(),
            backlog_bytes: 0,
            next_departure: now,
            keep_alive: now,
            min_rate: media.min_rate,
            history: VecDeque::new(),
            first: 0,
            in_flight_bytes: 0,
            rtt: None,
            reported: Vec::new(),
            breaker: media
                .circuit_breaker
                .then(|| CircuitBreaker::new(now, media.frames_per_s)),
            ceased: None,
        })
    }

    fn next_frame(&self) -> Time {
        let next = self.encoder.next();
        if next < self.stop {
            next
        } else {
            Time::NEVER
        }
    }

    /// Encode a frame and split it into packets of nearly equal size.
    fn encode(&mut self, now: Time) {
        let payload = f64::from(self.payload_bytes);
        let share = payload / (payload + f64::from(self.header_bytes));
        let target = self.controller.target_rate(self.backlog_bytes);
        let (frame, bytes) = self.encoder.encode(share * target.bits_per_second(), now);
        let packets = bytes.div_ceil(self.payload_bytes);
        let waited = self.queue.front().map(|first| now.since(first.captured));
        self.controller.on_frame(&QueuedFrame {
            bytes: u64::from(bytes) + u64::from(packets) * u64::from(self.header_bytes),
            waited: waited.unwrap_or(Time::ZERO),
        });
        for index in 0..packets {
            let payload_bytes = bytes / packets + u32::from(index < bytes % packets);
            self.backlog_bytes += u64::from(payload_bytes + self.header_bytes);
            self.queue.push_back(RtpHeader {
                frame,
                captured: now,
                index,
                packets,
                payload_bytes,
            });
        }
    }

    /// When the circuit breaker judges.
    fn next_check(&self) -> Time {
        let breaker = self.breaker.as_ref();
        breaker.map_or(Time::NEVER, CircuitBreaker::next_check)
    }

    /// Cease for good if the circuit breaker says so.
    fn check_breaker(&mut self, now: Time) {
        let trip = self.breaker.as_mut().and_then(CircuitBreaker::check);
        if let Some(trip) = trip {
            self.ceased = Some((trip, now));
            self.breaker = None;
            self.stop = now;
            self.queue.clear();
            self.backlog_bytes = 0;
        }
    }

    /// When the next packet of the queue may leave. Where the window is full, packets leave at the lowest rate: without
    /// feedback, nothing would ever make room.
    fn departure(&self) -> Time {
        let Some(packet) = self.queue.front() else {
            return Time::NEVER;
        };
        let bytes = u64::from(packet.payload_bytes + self.header_bytes);
        let has_room = self.controller.window_bytes().is_none_or(|window| {
            self.in_flight_bytes == 0 || self.in_flight_bytes + bytes <= window
        });
        if has_room {
            self.next_departure
        } else {
            self.next_departure.max(self.keep_alive)
        }
    }

    fn send(&mut self, now: Time) -> Option<Outgoing> {
        let rate = self.controller.pacing_rate(self.backlog_bytes);
        let packet = self.queue.pop_front()?;
        let bytes = packet.payload_bytes + self.header_bytes;
        self.backlog_bytes -= u64::from(bytes);
        self.next_departure = now + transmission(bytes, rate);
        self.keep_alive = now + transmission(bytes, self.min_rate);
        let sequence = self.first + self.history.len() as u64;
        self.history.push_back(Sent { time: now, bytes });
        self.in_flight_bytes += u64::from(bytes);
        self.controller.on_sent(self.in_flight_bytes);
        if let Some(breaker) = &mut self.breaker {
            breaker.on_sent(bytes);
        }
        if self.history.len() > MAX_HISTORY {
            self.forget_first();
        }
        Some(Outgoing {
            sequence,
            timestamp: now,
            wire_bytes: bytes,
            flags: self.flags,
            payload: Some(Payload::Rtp(packet)),
        })
    }

    /// Remove the oldest packet from the memory.
    fn forget_first(&mut self) -> Option<(u64, Sent)> {
        let sent = self.history.pop_front()?;
        let sequence = self.first;
        self.first += 1;
        self.in_flight_bytes -= u64::from(sent.bytes);
        Some((sequence, sent))
    }

    fn on_report(&mut self, report: &Report, now: Time) {
        // A report before this one that was lost leaves a gap, of which nothing is known.
        while self.first < report.first && self.forget_first().is_some() {}
        let skipped = self.first.saturating_sub(report.first) as usize;
        self.reported.clear();
        for arrival in report.arrivals.iter().skip(skipped) {
            let Some((sequence, sent)) = self.forget_first() else {
                break;
            };
            if let Some(arrival) = arrival {
                let waited = report.sent.since(arrival.time);
                self.rtt = Some(now.since(sent.time).since(waited));
            }
            self.reported.push(PacketReport {
                sequence,
                sent: sent.time,
                arrival: arrival.map(|arrival| arrival.time),
                bytes: sent.bytes,
                marked: arrival.is_some_and(|arrival| arrival.marked),
            });
        }
        // The window may have opened. While it was full, the pacer's credit was not saved up.
        self.next_departure = self.next_departure.max(now);
        if let Some(breaker) = &mut self.breaker {
            breaker.on_report(&self.reported, self.rtt);
        }
        if report.arrivals.is_empty() {
            return;
        }
        self.controller.on_feedback(&Feedback {
            now,
            rtt: self.rtt.unwrap_or(Time::ZERO),
            packets: &self.reported,
        });
    }
}

impl Endpoint for MediaSender {
    fn wake(&self) -> Time {
        self.next_frame()
            .min(self.departure())
            .min(self.next_check())
    }

    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        if self.next_check() <= now {
            self.check_breaker(now);
        }
        if self.next_frame() <= now {
            // The pacer has been idle: its credit is not saved up.
            if self.queue.is_empty() {
                self.next_departure = self.next_departure.max(now);
            }
            self.encode(now);
        }
        if self.departure() <= now {
            self.send(now)
        } else {
            None
        }
    }

    fn on_packet(&mut self, _packet: &Packet, payload: Option<Payload>, now: Time) {
        if let Some(Payload::Report(report)) = payload {
            self.on_report(&report, now);
        }
    }

    fn rtt(&self) -> Option<Time> {
        self.rtt
    }

    fn ceased(&self) -> Option<(f64, Time)> {
        self.ceased.map(|(trip, at)| (f64::from(trip as u8), at))
    }

    fn control_variables(&self) -> Option<Variables> {
        Some(self.controller.variables())
    }
}

/// The controller of a plan, for IP packets of at most so many bytes.
///
/// # Errors
/// An unknown name, or parameters that are not those of its spec.
pub fn controller(
    media: &MediaPlan,
    packet_bytes: u32,
) -> Result<Box<dyn RateController>, PlanError> {
    let source = MediaSource {
        min: media.min_rate,
        start: media.start_rate,
        max: media.max_rate,
        frames_per_s: media.frames_per_s,
        packet_bytes,
        l4s: media.ecn == EcnMode::L4s,
    };
    let plan = &media.congestion;
    Ok(realtime::make(&plan.kind, &plan.parameters, source)?)
}

/// ECN bits of packets.
fn ecn(mode: EcnMode) -> Ecn {
    match mode {
        EcnMode::Off => Ecn::NotEct,
        EcnMode::L4s => Ecn::Ect1,
        EcnMode::Classic | EcnMode::Dctcp | EcnMode::Accurate => Ecn::Ect0,
    }
}

/// The time that bytes take at a rate.
fn transmission(bytes: u32, rate: Rate) -> Time {
    Time::from_seconds(8.0 * f64::from(bytes) / rate.bits_per_second())
}
