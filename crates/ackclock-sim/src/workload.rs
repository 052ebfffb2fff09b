//! Workload: data that the application writes, counted in segments.

use ackclock_core::Time;
use ackclock_plan::FlowPlan;

use crate::packet::{Kind, Packet};

/// An application: how many segments there are to send, and since when.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    mss_bytes: u64,
    size_bytes: Option<u64>,
    /// Data segments of the whole transfer; `u64::MAX` if endless.
    pub segments: u64,
    /// The same with the FIN: one more, unless it goes with the last of them.
    pub end: u64,
    /// Time between two segments that a rate-limited application writes; none if it is too short for
    /// the clock.
    period: Option<Time>,
    /// Segments that a send buffer of a given size holds; `u64::MAX` if the size is not given.
    buffer_segments: u64,
    /// True if everything is written from the start: neither a rate nor a buffer limits the application.
    is_greedy: bool,
    started: Time,
    /// Time at which the application stops writing; [`Time::NEVER`] if it does not, or already has.
    pub stop: Time,
}

impl Workload {
    /// The application of a flow.
    pub fn new(plan: &FlowPlan) -> Workload {
        let mss_bytes = u64::from(plan.tcp.mss_bytes);
        let segments = segments_of(plan.size_bytes, mss_bytes);
        let buffer_bytes = plan.tcp.send_buffer_bytes;
        let period = plan
            .application_rate
            .map(|rate| rate.transmission_time(mss_bytes))
            .filter(|&period| period > Time::ZERO);
        Workload {
            mss_bytes,
            size_bytes: plan.size_bytes,
            segments,
            end: segments.saturating_add(1),
            period,
            buffer_segments: buffer_bytes.map_or(u64::MAX, |bytes| (bytes / mss_bytes).max(1)),
            is_greedy: period.is_none() && buffer_bytes.is_none(),
            started: Time::NEVER,
            stop: plan.stop.unwrap_or(Time::NEVER),
        }
    }

    /// Payload of a full segment.
    pub fn mss_bytes(&self) -> u64 {
        self.mss_bytes
    }

    /// The connection is open: the application starts to write.
    pub fn start(&mut self, now: Time) {
        self.started = now;
    }

    /// The flow begins: the application cannot have stopped before.
    pub fn begin(&mut self, now: Time) {
        self.stop = self.stop.max(now);
    }

    /// The application has stopped by `now`, when TCP had taken `taken` segments: the transfer ends with what was
    /// written, which without a rate is what TCP has taken.
    pub fn stop_writing(&mut self, taken: u64, now: Time) {
        self.stop = Time::NEVER;
        self.end_at(match self.period {
            None => taken,
            Some(_) => self.written(now),
        });
    }

    /// The transfer ends after `segments` data segments, if it does not end earlier.
    pub fn end_at(&mut self, segments: u64) {
        if segments < self.segments {
            self.size_bytes = Some(segments.saturating_mul(self.mss_bytes));
            self.segments = segments_of(self.size_bytes, self.mss_bytes);
            self.end = self.segments + 1;
        }
    }

    /// The application closes while the last data segment is not sent yet: the FIN goes with that.
    pub fn close_in_data(&mut self) {
        self.end = self.segments;
    }

    /// Record the end of the data from a segment with the FIN: earlier than planned if the application stopped.
    pub fn on_end(&mut self, packet: &Packet) {
        let with_data = packet.kind == Kind::DataFin;
        self.end_at(packet.sequence + u64::from(with_data));
        if with_data {
            self.close_in_data();
        }
    }

    /// Data segments written up to `now`.
    #[inline]
    pub fn data(&self, now: Time) -> u64 {
        match self.period {
            None => self.segments,
            Some(_) => self.written(now).min(self.segments),
        }
    }

    /// Segments written up to `now` when those before `acknowledged` have left the buffer.
    #[inline]
    pub fn available(&self, acknowledged: u64, now: Time) -> u64 {
        if self.is_greedy {
            return self.end;
        }
        self.available_without_buffer(now)
            .min(self.room_end(acknowledged))
    }

    /// First segment for which the buffer has no room when those before `acknowledged` have left it.
    pub fn room_end(&self, acknowledged: u64) -> u64 {
        acknowledged.saturating_add(self.buffer_segments)
    }

    /// Segments that the application would have written up to `now`, the FIN included once all data are.
    pub fn available_without_buffer(&self, now: Time) -> u64 {
        let written = self.written(now);
        if written < self.segments {
            written
        } else {
            self.end
        }
    }

    /// Segments written up to `now`, were the transfer endless.
    #[inline]
    fn written(&self, now: Time) -> u64 {
        match self.period {
            None => u64::MAX,
            Some(_) if self.started > now => 0,
            Some(period) => 1 + now.since(self.started).picoseconds() / period.picoseconds(),
        }
    }

    /// Time at which segment `sequence` is written.
    pub fn written_at(&self, sequence: u64) -> Time {
        match self.period {
            None => self.started,
            Some(period) => {
                let after = u128::from(period.picoseconds()) * u128::from(sequence);
                self.started + Time::from_picoseconds(u64::try_from(after).unwrap_or(u64::MAX))
            }
        }
    }

    /// Kind of segment `sequence`: data, the FIN, or both.
    #[inline]
    pub fn kind(&self, sequence: u64) -> Kind {
        if sequence + 1 != self.end {
            Kind::Data
        } else if self.end == self.segments {
            Kind::DataFin
        } else {
            Kind::Fin
        }
    }

    /// Payload of segment `sequence`: the MSS, less in the last one, nothing in the FIN.
    #[inline]
    pub fn payload_bytes(&self, sequence: u64) -> u64 {
        match self.size_bytes {
            None => self.mss_bytes,
            Some(size) => size
                .saturating_sub(sequence.saturating_mul(self.mss_bytes))
                .min(self.mss_bytes),
        }
    }

    /// Payload of the first `segments` segments together.
    #[inline]
    pub fn payload_before(&self, segments: u64) -> u64 {
        let full = segments.saturating_mul(self.mss_bytes);
        self.size_bytes.map_or(full, |size| full.min(size))
    }
}

fn segments_of(size_bytes: Option<u64>, mss_bytes: u64) -> u64 {
    size_bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(mss_bytes))
}

#[cfg(test)]
mod tests;
