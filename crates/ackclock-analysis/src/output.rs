//! The output of an analysis: rows of the tables, and the series of the paths.

use std::collections::HashMap;

use ackclock_core::tables::{EventKind, NONE};

use crate::ack_trace::{self, AckTraces};
use crate::series::{Arrival, PathSeries, RttSample};
use crate::shared_bottleneck::SharedBottleneck;
use crate::tables::{Fate, RetransmitCause, Tables};
use ackclock_pcap::packet::Address;

/// Options of an analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A flow is sampled at most once in this time, in nanoseconds; 0: no samples.
    pub interval_ns: i64,
    /// Losses, retransmissions and reorderings are wanted as events, not stalls alone.
    pub events: bool,
    /// The fate of each copy of each segment is wanted.
    pub segments: bool,
    /// At most so many arrivals are kept for the analysis of paths, over all of them.
    pub max_arrivals: usize,
    /// At most so many samples are kept for the identification of CCAs, over all flows.
    pub max_samples: usize,
    /// Memory for connections that are open, in bytes: idle ones make room.
    pub max_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval_ns: 100_000_000,
            events: true,
            segments: false,
            max_arrivals: 4_000_000,
            max_samples: ack_trace::MAX_SAMPLES,
            max_bytes: 220_000_000,
        }
    }
}

/// Paths of which the series are kept.
const MAX_PATHS: u16 = 1024;
/// No arrival was kept.
pub const NOT_KEPT: u32 = u32::MAX;

/// A segment's copy, as its fate is known.
#[derive(Clone, Copy, Debug)]
pub struct SegmentOutcome {
    /// The flow.
    pub flow: u32,
    /// When it was seen.
    pub time_ns: i64,
    /// Its first byte, from the first of the flow on.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Segments in it.
    pub units: u32,
    /// The number of the first of them.
    pub number: u64,
    /// The capture has it.
    pub captured: bool,
    /// Its place in the path's series; without a copy in the capture, that of the packet before it.
    pub arrival: u32,
    /// Its fate.
    pub fate: Fate,
    /// Why it was sent.
    pub cause: RetransmitCause,
    /// The confidence.
    pub confidence: f64,
}

/// Collects.
#[derive(Debug, Default)]
pub struct Output {
    /// The rows since the last drain.
    pub tables: Tables,
    /// The options.
    pub options: Options,
    /// The series of all paths together.
    pub series: PathSeries,
    /// The traces from which CCAs are identified.
    pub ack_traces: AckTraces,
    /// Rates of concurrent flows.
    pub shared: SharedBottleneck,
    /// Paths, by the addresses of the data's sender and receiver.
    numbers: HashMap<(Address, Address), u16>,
}

impl Output {
    /// For an analysis.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ack_traces: AckTraces::new(options.max_samples),
            ..Self::default()
        }
    }

    /// Seconds since the first packet.
    #[inline]
    pub fn seconds(&self, time_ns: i64) -> f64 {
        time_ns as f64 * 1e-9
    }

    /// Return the number of paths with series.
    pub fn paths(&self) -> usize {
        self.numbers.len()
    }

    /// The number of a path; None if nothing of it is kept.
    pub fn path(&mut self, source: Address, destination: Address) -> Option<u16> {
        let ends = (source, destination);
        if let Some(&number) = self.numbers.get(&ends) {
            return Some(number);
        }
        let number = self.numbers.len() as u16;
        let is_enabled = number < MAX_PATHS && self.options.max_arrivals > 0;
        is_enabled.then(|| {
            self.numbers.insert(ends, number);
            number
        })
    }

    /// Add an event.
    pub fn event(
        &mut self,
        time_ns: i64,
        flow: u32,
        kind: EventKind,
        value: f64,
        detail: EventDetail,
    ) {
        if !self.options.events && kind != EventKind::Stall {
            return;
        }
        let begin_s = self.seconds(time_ns);
        let events = &mut self.tables.events;
        events.time_s.push(begin_s);
        events.flow.push(flow);
        events.link.push(NONE);
        events.kind.push(kind as u8);
        events.value.push(value);
        events.class.push(detail.class);
        events.duration_s.push(detail.duration_s);
        events.confidence.push(detail.confidence);
    }

    /// Add a segment's fate, and the event that belongs to it.
    pub fn outcome(&mut self, outcome: &SegmentOutcome) {
        let kind = match outcome.fate {
            Fate::Lost | Fate::LostBefore => Some(EventKind::Loss),
            Fate::Reordered => Some(EventKind::Reordering),
            Fate::Duplicate => Some(EventKind::Duplicate),
            Fate::Spurious => Some(EventKind::SpuriousRetransmission),
            Fate::NotCaptured => Some(EventKind::CaptureLoss),
            Fate::Delivered | Fate::Unresolved => None,
        };
        if let Some(kind) = kind {
            let detail = EventDetail {
                class: outcome.cause as u8,
                confidence: outcome.confidence,
                ..EventDetail::default()
            };
            self.event(
                outcome.time_ns,
                outcome.flow,
                kind,
                outcome.number as f64,
                detail,
            );
        }
        if self.options.segments {
            self.segment(outcome);
        }
    }

    fn segment(&mut self, outcome: &SegmentOutcome) {
        let time_s = self.seconds(outcome.time_ns);
        let segments = &mut self.tables.segments;
        segments.time_s.push(time_s);
        segments.flow.push(outcome.flow);
        segments.offset_bytes.push(outcome.offset);
        segments.payload_bytes.push(outcome.bytes);
        segments.segments.push(outcome.units);
        segments.seen.push(outcome.captured);
        segments.fate.push(outcome.fate as u8);
        segments.cause.push(outcome.cause as u8);
        segments.confidence.push(outcome.confidence);
    }

    /// Keep an arrival for the analysis of its path; return its place.
    #[inline]
    pub fn arrival(&mut self, arrival: Arrival) -> u32 {
        if !self.has_room() {
            return NOT_KEPT;
        }
        let arrivals = &mut self.series.arrivals;
        arrivals.push(arrival);
        arrivals.len() as u32 - 1
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.series.arrivals.len() < self.options.max_arrivals
    }

    /// A kept arrival was lost behind the vantage point.
    pub fn lost(&mut self, arrival: u32) {
        if let Some(arrival) = self.series.arrivals.get_mut(arrival as usize) {
            arrival.lost = true;
        }
    }

    /// Keep a round-trip time.
    #[inline]
    pub fn rtt(&mut self, sample: RttSample) {
        if self.has_room() {
            self.series.rtts.push(sample);
        }
    }
}

/// Details of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventDetail {
    /// A code of its kind's own.
    pub class: u8,
    /// Its duration.
    pub duration_s: f64,
    /// Its confidence.
    pub confidence: f64,
}

impl Default for EventDetail {
    fn default() -> Self {
        Self {
            class: 0,
            duration_s: f64::NAN,
            confidence: 1.0,
        }
    }
}
