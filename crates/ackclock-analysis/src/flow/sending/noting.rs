//! Acknowledgements, and the state of a flow, as rows.

use super::{Ack, Sending};
use crate::flow::window_limits;
use crate::rows::Rows;

impl Sending {
    /// Notes an acknowledgement, if segments are wanted.
    #[inline]
    pub(super) fn note(&self, ack: &Ack, rows: &mut Rows) {
        if !rows.options.segments {
            return;
        }
        let time_s = rows.seconds(ack.seen_ns);
        let block = (ack.blocks > 0).then_some(ack.sack[0]);
        let offset = |position: u64| position.saturating_sub(self.base);
        let noted = &mut rows.tables.acknowledgements;
        noted.time_s.push(time_s);
        noted.flow.push(self.flow);
        noted.offset_bytes.push(offset(ack.position));
        let window_bytes = ack.window_bytes.unwrap_or(u64::MAX);
        noted.receiver_window_bytes.push(window_bytes);
        let (start, end) = block.map_or((u64::MAX, u64::MAX), |(start, end)| {
            (offset(start), offset(end))
        });
        noted.sack_start_bytes.push(start);
        noted.sack_end_bytes.push(end);
    }

    /// Notes the state of the flow, once an interval.
    pub(super) fn sample(&mut self, now_ns: i64, rows: &mut Rows) {
        let interval_ns = rows.options.interval_ns;
        if interval_ns <= 0 {
            self.next_sample_ns = i64::MAX;
            return;
        }
        self.next_sample_ns = now_ns + interval_ns;
        let time_s = rows.seconds(now_ns);
        let mss = f64::from(self.mss.max(1));
        let limit = self.rounds.latest;
        let samples = &mut rows.tables.flow_samples;
        samples.time_s.push(time_s);
        samples.flow.push(self.flow);
        let latched = self.latched_pipe_bytes.max(self.pipe_bytes()) as f64 / mss;
        // In recovery a part of the window goes out, and what is under way is not all known.
        let free = self.rounds.is_paced() || self.repairs.within(self.una);
        samples.cwnd.push(if window_limits(limit) && !free {
            latched
        } else {
            f64::NAN
        });
        let srtt_s = self.smoothed.srtt_ns as f64 * 1e-9;
        samples
            .srtt_s
            .push(if srtt_s > 0.0 { srtt_s } else { f64::NAN });
        samples
            .in_flight
            .push((self.pipe_bytes() as f64 / mss).round() as u32);
        samples.delivered_bytes.push(self.totals.delivered_bytes);
        let window = self.window_bytes.map_or(f64::NAN, |bytes| bytes as f64);
        samples.receiver_window_bytes.push(window);
        samples.limit.push(limit);
    }
}
