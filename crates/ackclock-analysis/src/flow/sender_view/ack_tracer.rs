//! Samples of a direction, taken while its acknowledgements are processed (see [`crate::ack_trace`]).
//!
//! Fast recovery ends when all is acknowledged that was sent before it began. What was retransmitted beyond that is
//! lost: the next one begins at once.

use std::collections::VecDeque;

use super::{Data, SenderView};
use crate::ack_trace::{AckSample, AckTrace, CaState, Signal, MAX_FLOW_SAMPLES};
use crate::flow::scoreboard::{Scoreboard, SentRange, State};
use crate::output::Output;
use crate::tables::{Limit, Vantage};

/// Answers that are remembered: more than segments are in flight for most.
const MAX_DELAY_SAMPLES: usize = 1024;

/// Segments of the largest initial window (RFC 6928 section 2).
const INITIAL_WINDOW: u64 = 10;

/// A clock of timestamps that ticks each millisecond tells only so well what was sent before an acknowledgement was
/// heard.
const TICK_NS: i64 = 2_000_000;

/// TSval and TSecr.
type Timestamps = (Option<u32>, Option<u32>);

/// Takes samples.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each says another thing of the flow
pub struct AckTracer {
    samples: Vec<AckSample>,
    /// Sent before the first acknowledgement was heard.
    opening_bytes: u64,
    /// Samples were thrown away, so the opening is not among them.
    is_truncated: bool,
    /// Something was lost or marked.
    had_signal: bool,
    /// The memory limit is reached.
    is_full: bool,
    ca_state: CaState,
    recover: u64,
    /// When the recovery began.
    begin_ns: i64,
    /// It is not a recovery, but the reaction to a mark.
    marked: bool,
    /// Without SACK: what left the path, by duplicate acknowledgements.
    duplicate_bytes: u64,
    prior: PriorState,
    /// The last sample with which data were seen to leave.
    last_sent_sample: usize,
    /// When data passed the vantage point, and how long after the acknowledgement that it echoes.
    delay_samples: VecDeque<(i64, i64)>,
    /// The last of those: its timestamps, and when it was sent.
    last_echo: Option<(Timestamps, i64)>,
}

/// The state before the acknowledgement that is being processed.
#[derive(Clone, Copy, Debug, Default)]
struct PriorState {
    snd_una: u64,
    arrived_bytes: u64,
    pipe_bytes: u64,
    has_retransmitted: bool,
    oldest_ns: Option<i64>,
    newest_ns: Option<i64>,
}

/// Flags of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckFlags {
    /// It has SACK blocks, or is a duplicate.
    pub selective: bool,
    /// The packets that it reports as marked.
    pub marks: u8,
}

impl AckTracer {
    /// An acknowledgement delivers a range, or advances over one that was sacked before.
    #[inline]
    pub fn on_delivered(&mut self, range: &SentRange) {
        let prior = &mut self.prior;
        prior.has_retransmitted |=
            !range.has_one_transmission() || range.not_captured || range.late;
        if range.state != State::Sacked {
            prior.oldest_ns = prior.oldest_ns.or(Some(range.last_ns));
            prior.newest_ns = Some(range.last_ns);
        }
    }

    /// Bytes from so far behind the beginning on were lost before the vantage point. Where the opening ended there, as
    /// far as it was seen, they are the rest of it, up to the window that RFC 6928 allows.
    pub fn on_missing(&mut self, offset: u64, bytes: u64, mss: u32) {
        if offset == self.opening_bytes && offset > 0 {
            let limit = INITIAL_WINDOW * u64::from(mss);
            self.opening_bytes = (offset + bytes).min(limit.max(offset));
        }
        self.attribute_missing(bytes);
    }

    /// Bytes that were lost before the vantage point left with the acknowledgements since the last data that were seen:
    /// where the window seems to come down. What is left of them belongs to the last.
    fn attribute_missing(&mut self, mut bytes: u64) {
        let first = self.last_sent_sample.max(1);
        let last = self.samples.len().saturating_sub(1);
        let (mut before, mut attributed) = match self.samples.get(first - 1) {
            Some(sample) => (sample.window_bytes, 0_u32),
            None => return,
        };
        for (place, sample) in self.samples.iter_mut().enumerate().skip(first) {
            for count in [
                &mut sample.prior_in_flight_bytes,
                &mut sample.in_flight_bytes,
                &mut sample.window_bytes,
                &mut sample.outstanding_bytes,
            ] {
                *count = count.saturating_add(attributed);
            }
            if sample.ca_state == CaState::Open && place < last {
                let fell = before.saturating_sub(sample.window_bytes);
                let more = saturated(bytes.min(u64::from(fell)));
                sample.window_bytes += more;
                attributed = attributed.saturating_add(more);
                bytes -= u64::from(more);
            }
            before = sample.window_bytes;
        }
    }

    /// A recovery begins (or the reaction to a mark); what was sent so far ends at `next`.
    pub fn signal(&mut self, signal: Signal, next: u64, now_ns: i64) {
        if self.is_full || (signal == Signal::Loss && self.ca_state != CaState::Open) {
            return;
        }
        self.begin(signal, next, now_ns);
        if let Some(sample) = self.samples.last_mut() {
            sample.signal = Some(signal);
            sample.ca_state = self.ca_state;
        }
    }

    fn begin(&mut self, signal: Signal, recover: u64, now_ns: i64) {
        self.had_signal = true;
        self.recover = recover;
        self.begin_ns = now_ns;
        self.marked = signal == Signal::Mark;
        self.ca_state = CaState::Recovery;
        if signal == Signal::Timeout {
            self.ca_state = CaState::Loss;
            self.duplicate_bytes = 0;
        }
    }

    /// Update the congestion state after an acknowledgement; return the signal that begins.
    fn update_state(&mut self, sender_view: &SenderView, marked: bool) -> Option<Signal> {
        let is_over = self.is_recovery_over(sender_view);
        if is_over {
            self.ca_state = CaState::Open;
            self.duplicate_bytes = 0;
        }
        let signal = if is_over && has_lost_retransmission(&sender_view.board) {
            Signal::Loss
        } else if marked && self.ca_state == CaState::Open {
            Signal::Mark
        } else {
            return None;
        };
        // Only what is sent from now on is answered without the marks of before.
        self.begin(
            signal,
            sender_view.snd_nxt + u64::from(signal == Signal::Mark),
            sender_view.last_processed_ack_ns,
        );
        Some(signal)
    }

    /// All is acknowledged that was sent before the recovery began. Away from the sender, what is still lost and
    /// was sent hardly later was sent before it.
    fn is_recovery_over(&mut self, sender_view: &SenderView) -> bool {
        if self.ca_state == CaState::Open || sender_view.snd_una < self.recover {
            return false;
        }
        if sender_view.sender_delay_ns > 0 {
            let since_ns = self.begin_ns + TICK_NS;
            let before = |one: &SentRange| one.first_ns <= since_ns && is_lost_retransmission(one);
            let last = sender_view.board.last(before);
            self.recover = last.map_or(self.recover, SentRange::end);
        }
        sender_view.snd_una >= self.recover
    }

    /// A duplicate acknowledgement stands for a segment that arrived (RFC 5681 section 3.2), and one that advances
    /// delivers what none stood for before: one segment filled the hole.
    fn delivered_without_sack(
        &mut self,
        advanced: u64,
        duplicate: bool,
        sender_view: &SenderView,
    ) -> u64 {
        let (before, mss) = (self.duplicate_bytes, u64::from(sender_view.mss));
        let limit = (sender_view.snd_nxt - sender_view.snd_una).saturating_sub(mss);
        if advanced > 0 {
            let left = before.saturating_sub(advanced.saturating_sub(mss));
            let open = self.ca_state == CaState::Open;
            self.duplicate_bytes = if open { 0 } else { left.min(limit) };
            return advanced.saturating_sub(before).max(mss.min(advanced));
        }
        let one = if duplicate { mss } else { 0 };
        self.duplicate_bytes = (before + one).min(limit.max(before));
        self.duplicate_bytes - before
    }

    /// RFC 6675's pipe; without SACK less what duplicates stand for.
    #[inline]
    fn pipe_bytes(&self, sender_view: &SenderView) -> u64 {
        let pipe_bytes = sender_view.board.in_flight_bytes();
        if sender_view.has_sack {
            pipe_bytes
        } else {
            pipe_bytes.saturating_sub(self.duplicate_bytes)
        }
    }

    #[inline]
    fn sent(&mut self, sender_view: &SenderView) {
        let window_bytes = saturated(self.pipe_bytes(sender_view));
        let first = sender_view.board.front();
        let oldest_sent_ns = first.map(|first| self.sent_ns(first.first_ns, sender_view));
        let last = self.samples.len().saturating_sub(1);
        if let Some(sample) = self.samples.last_mut() {
            if window_bytes > sample.window_bytes {
                self.last_sent_sample = last;
            }
            sample.window_bytes = sample.window_bytes.max(window_bytes);
            sample.oldest_sent_ns = oldest_sent_ns.unwrap_or(sample.oldest_sent_ns);
        }
        if self.marked && self.ca_state == CaState::Recovery && sender_view.sender_delay_ns > 0 {
            self.extend_reaction(sender_view);
        }
    }

    /// Away from the sender, what was sent hardly later than a mark was heard was sent before it, and may be marked
    /// too.
    fn extend_reaction(&mut self, sender_view: &SenderView) {
        let newest = sender_view.board.last(|_| true);
        if newest.is_some_and(|one| one.first_ns <= self.begin_ns + TICK_NS) {
            self.recover = self.recover.max(sender_view.snd_nxt + 1);
        }
    }

    /// Data passed the vantage point so long after the acknowledgement that it echoes.
    pub fn on_echo(&mut self, data: &Data, delay_ns: i64) {
        if self.delay_samples.len() == MAX_DELAY_SAMPLES {
            self.delay_samples.pop_front();
        }
        self.delay_samples.push_back((data.now_ns, delay_ns));
        self.last_echo = Some(((data.tsval, data.tsecr), data.now_ns - delay_ns));
    }

    /// The acknowledgement that ended the handshake was sent: data with its timestamps were, together with it.
    pub fn on_handshake(&mut self, (tsval, tsecr): (u32, u32), sent_ns: i64) {
        self.last_echo = Some(((Some(tsval), Some(tsecr)), sent_ns));
    }

    /// Data that echoes nothing new. What has the timestamps of the packet before was sent together with it, and so was
    /// all that was sent before anything was acknowledged: it only waited longer on its way.
    pub fn on_same_echo(&mut self, data: &Data, sender_delay_ns: i64) {
        let timestamps = (data.tsval, data.tsecr);
        match self.last_echo {
            Some((before, sent_ns)) if before == timestamps && data.tsval.is_some() => {
                self.on_echo(data, data.now_ns - sent_ns);
            }
            None if self.opening_bytes == 0 => self.on_echo(data, sender_delay_ns),
            _ => {}
        }
    }

    /// When data was sent, in a time in which the sender hears an acknowledgement as it passes the vantage point. The
    /// queue that the data went through before the vantage point is as long as the time since the acknowledgement which
    /// it answers says.
    fn sent_ns(&self, passed_ns: i64, sender_view: &SenderView) -> i64 {
        let after = self
            .delay_samples
            .partition_point(|&(at_ns, _)| at_ns <= passed_ns);
        let delay_ns = match after
            .checked_sub(1)
            .and_then(|last| self.delay_samples.get(last))
        {
            Some(&(_, delay_ns)) if sender_view.sender_delay_ns > 0 => delay_ns,
            _ => sender_view.sender_delay_ns,
        };
        passed_ns - delay_ns
    }

    fn push(&mut self, sample: AckSample, output: &mut Output) {
        if self.samples.len() == MAX_FLOW_SAMPLES && !self.had_signal {
            self.discard(output);
        }
        self.is_full |= self.samples.len() == MAX_FLOW_SAMPLES || !output.ack_traces.take_room();
        if !self.is_full {
            self.samples.push(sample);
        }
    }

    /// Free the samples if nothing was lost; what follows an idle time is no opening.
    pub fn on_idle(&mut self, output: &mut Output) {
        if !self.had_signal {
            self.discard(output);
        }
    }

    /// The vantage point proves to be away from the sender: RTTs so far are of half the path.
    pub fn forget_rtts(&mut self) {
        for sample in &mut self.samples {
            (sample.rtt_ns, sample.oldest_rtt_ns) = (None, None);
        }
    }

    fn discard(&mut self, output: &mut Output) {
        output.ack_traces.give_room(self.samples.len());
        self.samples = Vec::new();
        self.last_sent_sample = 0;
        self.is_truncated = true;
    }
}

/// Something was retransmitted and has not arrived.
fn has_lost_retransmission(board: &Scoreboard) -> bool {
    board.any(is_lost_retransmission)
}

fn is_lost_retransmission(one: &SentRange) -> bool {
    !one.has_one_transmission() && one.state != State::Sacked
}

/// Saturate to `u32`, which is more than any window.
#[inline]
fn saturated(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}

impl SenderView {
    /// Samples are wanted of it.
    #[must_use]
    pub fn with_tracer(mut self, output: &Output) -> Self {
        self.tracer = output.ack_traces.is_enabled().then(Box::default);
        self
    }

    /// Take the tracer out, unless it is full; the caller puts it back.
    #[inline]
    fn take_tracer(&mut self) -> Option<Box<AckTracer>> {
        self.tracer.take_if(|tracer| !tracer.is_full)
    }

    /// An acknowledgement is about to be processed.
    #[inline]
    pub(super) fn before_ack(&mut self) {
        let Some(mut tracer) = self.take_tracer() else {
            return;
        };
        tracer.sent(self);
        if tracer.opening_bytes == 0 {
            tracer.opening_bytes = self.snd_nxt - self.base;
        }
        tracer.prior = PriorState {
            snd_una: self.snd_una,
            arrived_bytes: self.arrived_bytes(),
            pipe_bytes: tracer.pipe_bytes(self),
            ..PriorState::default()
        };
        self.tracer = Some(tracer);
    }

    /// An acknowledgement was processed.
    #[inline]
    pub(super) fn trace_ack(&mut self, now_ns: i64, flags: AckFlags, output: &mut Output) {
        let Some(mut tracer) = self.take_tracer() else {
            return;
        };
        let sample = self.ack_sample(&mut tracer, now_ns, flags);
        tracer.push(sample, output);
        self.tracer = Some(tracer);
    }

    #[inline]
    fn ack_sample(&self, tracer: &mut AckTracer, now_ns: i64, flags: AckFlags) -> AckSample {
        let prior = tracer.prior;
        let advanced = self.snd_una - prior.snd_una;
        let delivered = if self.has_sack {
            self.arrived_bytes().saturating_sub(prior.arrived_bytes)
        } else {
            tracer.delivered_without_sack(advanced, flags.selective, self)
        };
        let signal = tracer.update_state(self, flags.marks > 0);
        let age_ns = |passed_ns: Option<i64>| {
            let passed_ns = passed_ns.filter(|_| !prior.has_retransmitted)?;
            u32::try_from(now_ns - tracer.sent_ns(passed_ns, self)).ok()
        };
        let pipe_bytes = saturated(tracer.pipe_bytes(self));
        let limit = self.limits.latest;
        AckSample {
            time_ns: now_ns,
            oldest_sent_ns: now_ns, // until it is known what is sent
            rtt_ns: age_ns(prior.newest_ns),
            oldest_rtt_ns: age_ns(prior.oldest_ns),
            delivered_bytes: saturated(delivered),
            advanced_bytes: saturated(advanced),
            prior_in_flight_bytes: saturated(prior.pipe_bytes),
            in_flight_bytes: pipe_bytes,
            window_bytes: pipe_bytes,
            outstanding_bytes: saturated(self.snd_nxt.saturating_sub(self.snd_una)),
            selective: flags.selective,
            marks: flags.marks,
            not_cwnd_limited: limit == Limit::Receiver as u8
                || limit == Limit::Application as u8 && !self.limits.waited,
            signal,
            ca_state: tracer.ca_state,
        }
    }

    /// Attribute the transmissions since the last sample to it: the pipe has only grown.
    #[inline]
    pub(super) fn trace_sent(&mut self) {
        if let Some(mut tracer) = self.take_tracer() {
            tracer.sent(self);
            self.tracer = Some(tracer);
        }
    }

    /// It is over: its samples are kept if they tell anything. `from_opening`: the capture has the connection's
    /// beginning; `is_l4s`: its packets carry ECT(1).
    pub fn finish_trace(
        &mut self,
        from_opening: bool,
        handshake_ns: Option<i64>,
        is_l4s: bool,
        output: &mut Output,
    ) {
        let Some(mut tracer) = self.tracer.take() else {
            return;
        };
        if !tracer.had_signal || self.vantage == Vantage::Unknown {
            tracer.discard(output);
            return;
        }
        let opening = tracer.opening_bytes.div_ceil(u64::from(self.mss.max(1))) as u32;
        output.ack_traces.keep(AckTrace {
            flow: self.flow,
            mss_bytes: self.mss,
            initial_window: (from_opening && !tracer.is_truncated).then_some(opening),
            handshake_ns,
            is_l4s,
            samples: tracer.samples,
        });
    }
}
