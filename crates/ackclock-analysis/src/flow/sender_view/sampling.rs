//! Rows of the tables `acknowledgements` and `flow_samples`. [`SenderView`] calls it for each ACK, and at the interval.
//!
//! What is unknown is NaN in columns of floats and `u64::MAX` in those of integers; Python makes nulls of both.

use super::{Ack, SenderView};
use crate::flow::is_window_limit;
use crate::output::Output;

impl SenderView {
    /// Record an acknowledgement, if segments are wanted.
    #[inline]
    pub(super) fn write_ack(&self, ack: &Ack, output: &mut Output) {
        if !output.options.segments {
            return;
        }
        let time_s = output.seconds(ack.captured_ns);
        // The first SACK block has the latest arrival (RFC 2018 section 4).
        let block = (ack.blocks > 0).then_some(ack.sack[0]);
        let offset = |position: u64| position.saturating_sub(self.base);
        let acks = &mut output.tables.acknowledgements;
        acks.time_s.push(time_s);
        acks.flow.push(self.flow);
        acks.offset_bytes.push(offset(ack.position));
        let window_bytes = ack.window_bytes.unwrap_or(u64::MAX);
        acks.receiver_window_bytes.push(window_bytes);
        let (start, end) = block.map_or((u64::MAX, u64::MAX), |(start, end)| {
            (offset(start), offset(end))
        });
        acks.sack_start_bytes.push(start);
        acks.sack_end_bytes.push(end);
    }

    /// Record the state of the flow, once an interval.
    pub(super) fn sample(&mut self, now_ns: i64, output: &mut Output) {
        let interval_ns = output.options.interval_ns;
        if interval_ns <= 0 {
            self.next_sample_ns = i64::MAX;
            return;
        }
        self.next_sample_ns = now_ns + interval_ns;
        let time_s = output.seconds(now_ns);
        let mss = f64::from(self.mss.max(1));
        let limit = self.limits.latest;
        let samples = &mut output.tables.flow_samples;
        samples.time_s.push(time_s);
        samples.flow.push(self.flow);
        let latched = self.latched_pipe_bytes.max(self.pipe_bytes()) as f64 / mss;
        // The pipe of the last round trip that the window limited. In recovery the pipe is less than the window.
        let is_unknown = self.limits.is_paced() || self.recovery.within(self.snd_una);
        samples.cwnd.push(if is_window_limit(limit) && !is_unknown {
            latched
        } else {
            f64::NAN
        });
        let srtt_s = self.rtt_estimator.srtt_ns as f64 * 1e-9;
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
