//! Where findings go: rows of the tables, and the series of the paths.

use std::collections::HashMap;

use ackclock_core::tables::{EventKind, NONE};

use crate::beside::Beside;
use crate::packet::Address;
use crate::series::{Arrival, PathSeries, RttSample};
use crate::steps::{self, Kept};
use crate::tables::{Cause, Fate, Tables};

/// What is wanted of an analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A flow is sampled at most once in this time, in nanoseconds; 0: no samples.
    pub interval_ns: i64,
    /// Losses, repairs and reorderings are wanted as events, not stalls alone.
    pub events: bool,
    /// The fate of each copy of each segment is wanted.
    pub segments: bool,
    /// At most so many arrivals are kept for the analysis of paths, over all of them.
    pub most_arrivals: usize,
    /// At most so many steps are kept to tell congestion controls, over all flows.
    pub most_steps: usize,
    /// Memory for connections that are open, in bytes: idle ones make room.
    pub most_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval_ns: 100_000_000,
            events: true,
            segments: false,
            most_arrivals: 4_000_000,
            most_steps: steps::MOST,
            most_bytes: 220_000_000,
        }
    }
}

/// Paths of which the series are kept.
const MOST_PATHS: u16 = 1024;
/// No arrival was kept.
pub const NOT_KEPT: u32 = u32::MAX;

/// A segment's copy, as its fate is known.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Which flow.
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
    pub seen: bool,
    /// Its fate.
    pub fate: Fate,
    /// Why it was sent.
    pub cause: Cause,
    /// How sure that is.
    pub confidence: f64,
}

/// Collects.
#[derive(Debug, Default)]
pub struct Rows {
    /// Rows since the last were taken.
    pub tables: Tables,
    /// What is wanted.
    pub options: Options,
    /// The series of all paths together.
    pub series: PathSeries,
    /// What tells congestion controls.
    pub steps: Kept,
    /// What flows get at the same time.
    pub beside: Beside,
    /// Paths, by the addresses of the data's sender and receiver.
    numbers: HashMap<(Address, Address), u16>,
}

impl Rows {
    /// For an analysis.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            steps: Kept::new(options.most_steps),
            ..Self::default()
        }
    }

    /// Seconds since the first packet.
    #[inline]
    pub fn seconds(&self, time_ns: i64) -> f64 {
        time_ns as f64 * 1e-9
    }

    /// How many paths there are of which series are kept.
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
        let wanted = number < MOST_PATHS && self.options.most_arrivals > 0;
        wanted.then(|| {
            self.numbers.insert(ends, number);
            number
        })
    }

    /// Adds an event.
    pub fn event(&mut self, time_ns: i64, flow: u32, kind: EventKind, value: f64, how: How) {
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
        events.class.push(how.class);
        events.duration_s.push(how.duration_s);
        events.confidence.push(how.confidence);
    }

    /// Adds a segment's fate, and the event that belongs to it.
    pub fn told(&mut self, told: &Told) {
        let kind = match told.fate {
            Fate::Lost | Fate::LostBefore => Some(EventKind::Loss),
            Fate::Reordered => Some(EventKind::Reordering),
            Fate::Duplicate => Some(EventKind::Duplicate),
            Fate::Spurious => Some(EventKind::SpuriousRetransmission),
            Fate::CaptureLost => Some(EventKind::CaptureLoss),
            Fate::Delivered | Fate::Unresolved => None,
        };
        if let Some(kind) = kind {
            let how = How {
                class: told.cause as u8,
                confidence: told.confidence,
                ..How::default()
            };
            self.event(told.time_ns, told.flow, kind, told.number as f64, how);
        }
        if self.options.segments {
            self.segment(told);
        }
    }

    fn segment(&mut self, told: &Told) {
        let time_s = self.seconds(told.time_ns);
        let segments = &mut self.tables.segments;
        segments.time_s.push(time_s);
        segments.flow.push(told.flow);
        segments.offset_bytes.push(told.offset);
        segments.payload_bytes.push(told.bytes);
        segments.segments.push(told.units);
        segments.seen.push(told.seen);
        segments.fate.push(told.fate as u8);
        segments.cause.push(told.cause as u8);
        segments.confidence.push(told.confidence);
    }

    /// Keeps an arrival for the analysis of its path: gives its place.
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
        self.series.arrivals.len() < self.options.most_arrivals
    }

    /// A kept arrival was lost behind the point.
    pub fn lost(&mut self, arrival: u32) {
        if let Some(arrival) = self.series.arrivals.get_mut(arrival as usize) {
            arrival.lost = true;
        }
    }

    /// Keeps a round-trip time.
    #[inline]
    pub fn rtt(&mut self, sample: RttSample) {
        if self.has_room() {
            self.series.rtts.push(sample);
        }
    }
}

/// What an event has besides.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// A code of its kind's own.
    pub class: u8,
    /// How long it took.
    pub duration_s: f64,
    /// How sure it is.
    pub confidence: f64,
}

impl Default for How {
    fn default() -> Self {
        Self {
            class: 0,
            duration_s: f64::NAN,
            confidence: 1.0,
        }
    }
}
