//! The receiver of a video: frames that are displayed, and reports to the sender.
//!
//! Reports as RFC 8888 has them: from the first packet not reported to the newest that has arrived, whether each
//! has arrived, when, and with which ECN mark; one at each interval in which packets came, and earlier when a report is
//! full. Their size is that of the RFC's format for one source. With feedback by the frame, a report also leaves at the last
//! packet of a frame and at each 16th packet, as draft-ietf-ccwg-rfc8298bis-screamv2 recommends ("Receiver Requirements
//! on Feedback Intensity"). Deviations: a packet that comes after the report of a later one stays reported as lost, and
//! arrival times are exact, where the format rounds them to 1/1024 s.

use std::collections::BTreeMap;

use ackclock_core::tables::{Frames, Tables};
use ackclock_core::Time;
use ackclock_plan::{FeedbackTrigger, MediaPlan};

use super::circuit_breaker::REPORT_INTERVAL;
use crate::distinct::DistinctNumbers;
use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::packet::{Ecn, Flags, Packet};
use crate::rtp::{Arrival, Report, RtpHeader};

/// IPv4 and UDP headers of a report.
const HEADER_BYTES: u32 = 28;
/// A report without its packets: RTCP header and sender, source, numbers, and time (RFC 8888 section 3.1).
const REPORT_BYTES: u32 = 20;

/// Packets of a report, at most: those whose entries fill a UDP datagram of 65,507 bytes.
const MAX_REPORTED: u64 = (65_507 - REPORT_BYTES as u64) / 4 * 2;

/// Packets after which a report leaves, with feedback by the frame.
const MAX_UNREPORTED: usize = 16;

/// Incomplete frames that are kept, at most: two seconds of video at 30 frames a second.
const MAX_PARTIAL_FRAMES: usize = 60;

/// A frame of which packets have arrived.
#[derive(Debug)]
struct PartialFrame {
    has_arrived: Vec<bool>,
    missing: u32,
    bytes: u32,
}

/// The receiver.
#[derive(Debug)]
pub struct MediaReceiver {
    interval: Time,
    trigger: FeedbackTrigger,
    /// Arrivals since the last report, by number of the packet.
    arrivals: BTreeMap<u64, Arrival>,
    /// First packet not reported.
    first: u64,
    reports: u64,
    last_report: Option<Time>,
    /// When a report is due though nothing has arrived since the last; never without a circuit breaker.
    next_empty_report: Time,
    has_breaker: bool,
    next_report: Time,
    partial_frames: BTreeMap<u64, PartialFrame>,
    /// The frame after the last one displayed.
    next_frame: u64,
    displayed: Frames,
    received: DistinctNumbers,
    delivered_bytes: u64,
}

impl MediaReceiver {
    /// The receiver of a plan.
    pub fn new(plan: &MediaPlan) -> MediaReceiver {
        MediaReceiver {
            interval: plan.feedback_interval,
            trigger: plan.feedback,
            arrivals: BTreeMap::new(),
            first: 0,
            reports: 0,
            last_report: None,
            next_empty_report: Time::NEVER,
            has_breaker: plan.circuit_breaker,
            next_report: Time::NEVER,
            partial_frames: BTreeMap::new(),
            next_frame: 0,
            displayed: Frames::default(),
            received: DistinctNumbers::default(),
            delivered_bytes: 0,
        }
    }

    /// Take the piece of a frame; the frame is displayed when it is complete, unless a later one was before.
    fn on_piece(&mut self, header: &RtpHeader, now: Time) {
        if header.frame < self.next_frame {
            return;
        }
        let frame = self
            .partial_frames
            .entry(header.frame)
            .or_insert_with(|| PartialFrame {
                has_arrived: vec![false; header.packets as usize],
                missing: header.packets,
                bytes: 0,
            });
        let place = &mut frame.has_arrived[header.index as usize];
        if !std::mem::replace(place, true) {
            frame.missing -= 1;
            frame.bytes += header.payload_bytes;
        }
        if frame.missing == 0 {
            let bytes = frame.bytes;
            self.display(header, bytes, now);
        } else if self.partial_frames.len() > MAX_PARTIAL_FRAMES {
            self.partial_frames.pop_first();
        }
    }

    /// Return true if a packet makes the receiver report before the interval is over.
    fn is_prompt(&self, header: &RtpHeader) -> bool {
        self.trigger == FeedbackTrigger::Frame
            && (header.index + 1 == header.packets || self.arrivals.len() >= MAX_UNREPORTED)
    }

    fn display(&mut self, header: &RtpHeader, bytes: u32, now: Time) {
        self.next_frame = header.frame + 1;
        self.partial_frames = self.partial_frames.split_off(&self.next_frame);
        let rows = &mut self.displayed;
        rows.time_s.push(now.seconds());
        rows.frame.push(header.frame);
        rows.bytes.push(bytes);
        rows.delay_s.push(now.since(header.captured).seconds());
    }

    fn report(&mut self, now: Time) -> Outgoing {
        let end = self.arrivals.last_key_value().map(|(&last, _)| last + 1);
        let end = end.unwrap_or(self.first);
        let first = self.first.max(end.saturating_sub(MAX_REPORTED));
        let arrivals: Vec<_> = (first..end)
            .map(|number| self.arrivals.get(&number).copied())
            .collect();
        self.arrivals.clear();
        self.first = end;
        self.last_report = Some(now);
        self.next_report = Time::NEVER;
        if self.has_breaker {
            self.next_empty_report = now + REPORT_INTERVAL;
        }
        let sequence = self.reports;
        self.reports += 1;
        Outgoing {
            sequence,
            timestamp: now,
            wire_bytes: HEADER_BYTES + report_bytes(arrivals.len()),
            flags: Flags::NONE,
            payload: Some(Payload::Report(Box::new(Report {
                first,
                arrivals,
                sent: now,
            }))),
        }
    }
}

impl Endpoint for MediaReceiver {
    fn wake(&self) -> Time {
        self.next_report.min(self.next_empty_report)
    }

    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        (self.wake() <= now).then(|| self.report(now))
    }

    fn on_packet(&mut self, packet: &Packet, payload: Option<Payload>, now: Time) {
        let Some(Payload::Rtp(header)) = payload else {
            return;
        };
        let number = packet.number();
        if !self.received.insert(number) {
            return;
        }
        self.delivered_bytes += u64::from(header.payload_bytes);
        self.on_piece(&header, now);
        if number < self.first {
            return;
        }
        let arrival = Arrival {
            time: now,
            marked: packet.ecn() == Ecn::Ce,
        };
        self.arrivals.insert(number, arrival);
        if self.next_report.is_never() {
            let due = self.last_report.unwrap_or(now) + self.interval;
            self.next_report = due.max(now);
        }
        if number - self.first + 1 >= MAX_REPORTED || self.is_prompt(&header) {
            self.next_report = now;
        }
    }

    fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    fn write_rows(&mut self, flow: u32, until: Time, tables: &mut Tables) {
        let rows = std::mem::take(&mut self.displayed);
        let count = rows
            .time_s
            .iter()
            .take_while(|&&time| time <= until.seconds());
        let count = count.count();
        let frames = &mut tables.frames;
        frames.time_s.extend(&rows.time_s[..count]);
        frames.flow.extend(std::iter::repeat_n(flow, count));
        frames.frame.extend(&rows.frame[..count]);
        frames.bytes.extend(&rows.bytes[..count]);
        frames.delay_s.extend(&rows.delay_s[..count]);
    }
}

/// Bytes of a report of so many packets, two for each, in words of four.
fn report_bytes(packets: usize) -> u32 {
    REPORT_BYTES + (2 * packets as u32).div_ceil(4) * 4
}
