//! What the application gives TCP to send, counted in segments.

use ackclock_plan::FlowPlan;
use ackclock_units::Time;

/// An application: how many segments there are to send, and since when.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    mss_bytes: u64,
    size_bytes: Option<u64>,
    /// Data segments of the whole transfer; `u64::MAX` if endless.
    segments: u64,
    /// Time between two segments that a rate-limited application writes; none if it is too short for
    /// the clock.
    period: Option<Time>,
    started: Time,
    stop: Time,
}

impl Workload {
    /// The application of a flow.
    pub fn new(plan: &FlowPlan) -> Workload {
        let mss_bytes = u64::from(plan.tcp.mss_bytes);
        Workload {
            mss_bytes,
            size_bytes: plan.size_bytes,
            segments: segments_of(plan.size_bytes, mss_bytes),
            period: plan
                .application_rate
                .map(|rate| rate.transmission_time(mss_bytes))
                .filter(|&period| period > Time::ZERO),
            started: Time::NEVER,
            stop: plan.stop.unwrap_or(Time::NEVER),
        }
    }

    /// The connection is open: the application starts to write.
    pub fn start(&mut self, now: Time) {
        self.started = now;
    }

    /// The flow begins: the application cannot have stopped before.
    pub fn begin(&mut self, now: Time) {
        self.stop = self.stop.max(now);
    }

    /// When the application stops writing; [`Time::NEVER`] if it does not, or already has.
    #[inline]
    pub fn stop(&self) -> Time {
        self.stop
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
        }
    }

    /// Data segments of the whole transfer; `u64::MAX` if endless.
    #[inline]
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Segments written up to `now`, the FIN included once all data are.
    #[inline]
    pub fn available(&self, now: Time) -> u64 {
        let all = self.segments.saturating_add(1);
        if self.period.is_none() {
            return all;
        }
        let written = self.written(now);
        if written < self.segments {
            written
        } else {
            all
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

    /// When segment `sequence` is written.
    pub fn written_at(&self, sequence: u64) -> Time {
        match self.period {
            None => self.started,
            Some(period) => {
                let after = u128::from(period.picoseconds()) * u128::from(sequence);
                self.started + Time::from_picoseconds(u64::try_from(after).unwrap_or(u64::MAX))
            }
        }
    }

    /// Whether segment `sequence` is the FIN.
    #[inline]
    pub fn is_fin(&self, sequence: u64) -> bool {
        sequence == self.segments
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
