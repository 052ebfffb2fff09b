//! Workload: data that the application writes, counted in segments.

use ackclock_core::Time;
use ackclock_plan::FlowPlan;

use crate::packet::{Kind, Packet};

mod messages;

use messages::Messages;

/// An application: how many segments there are to send, and since when.
#[derive(Clone, Debug)]
pub struct Workload {
    mss_bytes: u64,
    size_bytes: Option<u64>,
    /// Data segments of the whole transfer; `u64::MAX` if endless.
    pub segments: u64,
    /// The same with the FIN: one more, unless it goes with the last of them.
    pub end: u64,
    /// Time between two segments that a rate-limited application writes, or between its messages; none if it is too
    /// short for the clock.
    period: Option<Time>,
    /// The messages of an application that writes such; it has a size then.
    messages: Option<Box<Messages>>,
    /// True if the FIN goes with what is unsent when the application closes.
    closes_in_data: bool,
    /// Segments that a send buffer of a given size holds; `u64::MAX` if the size is not given.
    buffer_segments: u64,
    /// True if everything is written from the start: neither a rate, messages nor a buffer limit the application.
    is_greedy: bool,
    started: Time,
    /// Time at which the application stops writing; [`Time::NEVER`] if it does not, or already has.
    pub stop: Time,
}

impl Workload {
    /// The application of a flow.
    pub fn new(plan: &FlowPlan) -> Workload {
        let mss_bytes = u64::from(plan.tcp.mss_bytes);
        let messages = plan
            .writes
            .map(|writes| Box::new(Messages::new(writes, mss_bytes, plan.size_bytes)));
        let (size_bytes, segments) = if messages.is_some() {
            (Some(plan.size_bytes.unwrap_or(u64::MAX)), u64::MAX)
        } else {
            (plan.size_bytes, segments_of(plan.size_bytes, mss_bytes))
        };
        let buffer_bytes = plan.tcp.send_buffer_bytes;
        let rate = plan.application_rate;
        let period = plan
            .writes
            .map(|writes| writes.every)
            .or(rate.map(|rate| rate.transmission_time(mss_bytes)))
            .filter(|&period| period > Time::ZERO);
        Workload {
            mss_bytes,
            size_bytes,
            segments,
            end: segments.saturating_add(1),
            period,
            closes_in_data: plan.tcp.tso_batching,
            buffer_segments: buffer_bytes.map_or(u64::MAX, |bytes| (bytes / mss_bytes).max(1)),
            is_greedy: period.is_none() && buffer_bytes.is_none(),
            messages,
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
        let open = self.open_for(now);
        if let Some(messages) = &mut self.messages {
            messages.stop(open);
            return self.close_messages();
        }
        self.end_at(match self.period {
            None => taken,
            Some(_) => self.written(now),
        });
    }

    /// The transfer ends after `segments` data segments, if it does not end earlier.
    pub fn end_at(&mut self, segments: u64) {
        if self.messages.is_some() {
            self.segments = self.segments.min(segments);
            self.end = self.segments.saturating_add(1);
        } else if segments < self.segments {
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
        if let Some(messages) = &self.messages {
            let released = self.or_end(messages.released(acknowledged));
            return released.min(self.room_end(acknowledged));
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
        self.or_end(self.written(now))
    }

    /// The data segments before `segments`, and the FIN once these are all.
    #[inline]
    fn or_end(&self, segments: u64) -> u64 {
        if segments < self.segments {
            segments
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
            Some(_) if self.messages.is_some() => self.message_segments(now),
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

    /// The segments from `sequence` on that differ only in their numbers: kind and payload of each, and how many there
    /// are at least. Those before the last one of the data are full, unless the application writes messages.
    #[inline]
    pub fn run(&self, sequence: u64) -> (Kind, u32, u64) {
        if sequence + 1 < self.segments && self.messages.is_none() {
            let run = self.segments - 1 - sequence;
            return (Kind::Data, self.mss_bytes as u32, run);
        }
        let payload_bytes = self.payload_bytes(sequence);
        (self.kind(sequence), payload_bytes as u32, 1)
    }

    /// Payload of segment `sequence`: the MSS, less in the last one, nothing in the FIN.
    #[inline]
    pub fn payload_bytes(&self, sequence: u64) -> u64 {
        match self.size_bytes {
            None => self.mss_bytes,
            Some(_) if self.messages.is_some() => self.message_bytes(sequence),
            Some(size) => size
                .saturating_sub(sequence.saturating_mul(self.mss_bytes))
                .min(self.mss_bytes),
        }
    }

    /// Payload of the first `segments` segments together.
    #[inline]
    pub fn payload_before(&self, segments: u64) -> u64 {
        if let Some(messages) = &self.messages {
            return messages.payload_before(segments);
        }
        let full = segments.saturating_mul(self.mss_bytes);
        self.size_bytes.map_or(full, |size| full.min(size))
    }

    // ---- messages ----

    /// True if the application writes messages.
    #[inline]
    pub fn has_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Time since the connection was opened; none before.
    fn open_for(&self, now: Time) -> Option<Time> {
        (self.started <= now).then(|| now.since(self.started))
    }

    /// Append the writes that were due before `now`.
    pub fn write_overdue(&mut self, now: Time) {
        let open = self.open_for(now);
        if let Some((messages, open)) = self.messages.as_mut().zip(open) {
            messages.write_overdue(open);
        }
    }

    /// Append one write that is due at `now`; returns whether there was one.
    pub fn write_due(&mut self, now: Time) -> bool {
        let open = self.open_for(now);
        let due = self.messages.as_mut().zip(open);
        due.is_some_and(|(messages, open)| messages.write_due(open))
    }

    /// Time of the next write, or of the stop.
    pub fn next_write(&self) -> Time {
        let messages = self.messages.as_ref();
        let next = messages.and_then(|messages| messages.next_write());
        next.map_or(self.stop, |open| (self.started + open).min(self.stop))
    }

    /// Close if the application has written all its messages.
    pub fn close_messages(&mut self) {
        let Some(messages) = &mut self.messages else {
            return;
        };
        let has_unsent = messages.unsent_bytes() > 0;
        if let Some(segments) = messages.close() {
            self.segments = segments;
            self.end = segments + u64::from(!(has_unsent && self.closes_in_data));
        }
    }

    /// The next segment is sent: its length is what is unsent, up to the MSS.
    #[inline]
    pub fn send(&mut self, acknowledged: u64) {
        if let Some(messages) = &mut self.messages {
            messages.send(acknowledged);
        }
    }

    /// Take the length of a segment that was sent elsewhere.
    pub fn learn(&mut self, segment: u64, bytes: u64) {
        if let Some(messages) = &mut self.messages {
            messages.learn(segment, bytes);
        }
    }

    /// Segments of the messages written up to `now`, were nothing held back.
    #[cold]
    fn message_segments(&self, now: Time) -> u64 {
        let messages = self.messages.as_ref();
        messages.map_or(0, |messages| messages.data(now.since(self.started)))
    }

    #[cold]
    fn message_bytes(&self, sequence: u64) -> u64 {
        let messages = self.messages.as_ref();
        messages.map_or(0, |messages| messages.payload_bytes(sequence))
    }
}

fn segments_of(size_bytes: Option<u64>, mss_bytes: u64) -> u64 {
    size_bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(mss_bytes))
}

#[cfg(test)]
mod tests;
