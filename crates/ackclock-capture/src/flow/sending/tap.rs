//! Steps of a direction, taken while its acknowledgements are heard (see [`crate::steps`]).
//!
//! Fast recovery ends when all is acknowledged that was sent before it began. What was sent again beyond that is lost:
//! the next one begins at once.

use std::collections::VecDeque;

use super::{Data, Sending};
use crate::flow::scoreboard::{Scoreboard, State, Stretch};
use crate::rows::Rows;
use crate::steps::{FlowSteps, Phase, Signal, Step, MOST_OF_A_FLOW};
use crate::tables::{Limit, Vantage};

/// Answers that are remembered: more than segments are under way for most.
const MOST_HALVES: usize = 1024;

/// Segments of the largest initial window (RFC 6928 section 2).
const INITIAL_WINDOW: u64 = 10;

/// A clock of timestamps that ticks each millisecond tells only so well what was sent before an acknowledgement was heard.
const TICK_NS: i64 = 2_000_000;

/// TSval and TSecr.
type Timestamps = (Option<u32>, Option<u32>);

/// Takes steps.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each says another thing of the flow
pub struct Tap {
    steps: Vec<Step>,
    /// Sent before the first acknowledgement was heard.
    opening_bytes: u64,
    /// Steps were thrown away, so the opening is not among them.
    later: bool,
    /// Something was lost or marked.
    hit: bool,
    /// There was no room for more.
    full: bool,
    phase: Phase,
    recover: u64,
    /// When the repair began.
    begun_ns: i64,
    /// It is none, but the reaction to a mark.
    marked: bool,
    /// Without SACK: what left the path, by duplicate acknowledgements.
    duplicate_bytes: u64,
    heard: Heard,
    /// The last step with which data were seen to leave.
    answered: usize,
    /// When data passed the point, and how long after the acknowledgement that it echoes.
    halves: VecDeque<(i64, i64)>,
    /// The last of those: its timestamps, and when it was sent.
    answer: Option<(Timestamps, i64)>,
}

/// Of the acknowledgement that is being heard.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    una: u64,
    arrived_bytes: u64,
    pipe_bytes: u64,
    again: bool,
    oldest_ns: Option<i64>,
    newest_ns: Option<i64>,
}

/// What an acknowledgement says besides its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// It has SACK blocks, or is a duplicate.
    pub selective: bool,
    /// It reports marks.
    pub marked: bool,
}

impl Tap {
    /// An acknowledgement delivers a stretch, or advances over one that was sacked before.
    #[inline]
    pub fn covers(&mut self, stretch: &Stretch) {
        let heard = &mut self.heard;
        heard.again |= !stretch.once() || stretch.unseen || stretch.late;
        if stretch.state != State::Sacked {
            heard.oldest_ns = heard.oldest_ns.or(Some(stretch.last_ns));
            heard.newest_ns = Some(stretch.last_ns);
        }
    }

    /// Bytes from so far behind the beginning on were lost before the point. Where the opening ended there, as far as it was
    /// seen, they are the rest of it, up to the window that RFC 6928 allows.
    pub fn missing(&mut self, offset: u64, bytes: u64, mss: u32) {
        if offset == self.opening_bytes && offset > 0 {
            let most = INITIAL_WINDOW * u64::from(mss);
            self.opening_bytes = (offset + bytes).min(most.max(offset));
        }
        self.left_unseen(bytes);
    }

    /// Bytes that were lost before the point left with the acknowledgements since the last data that were seen: where the
    /// window seems to come down. What is left of them belongs to the last.
    fn left_unseen(&mut self, mut bytes: u64) {
        let first = self.answered.max(1);
        let last = self.steps.len().saturating_sub(1);
        let (mut before, mut unseen) = match self.steps.get(first - 1) {
            Some(step) => (step.window_bytes, 0_u32),
            None => return,
        };
        for (place, step) in self.steps.iter_mut().enumerate().skip(first) {
            for count in [
                &mut step.prior_in_flight_bytes,
                &mut step.in_flight_bytes,
                &mut step.window_bytes,
                &mut step.outstanding_bytes,
            ] {
                *count = count.saturating_add(unseen);
            }
            if step.phase == Phase::Open && place < last {
                let fell = before.saturating_sub(step.window_bytes);
                let more = clamped(bytes.min(u64::from(fell)));
                step.window_bytes += more;
                unseen = unseen.saturating_add(more);
                bytes -= u64::from(more);
            }
            before = step.window_bytes;
        }
    }

    /// A repair begins; what was sent so far ends at `next`.
    pub fn signal(&mut self, signal: Signal, next: u64, now_ns: i64) {
        if self.full || (signal == Signal::Loss && self.phase != Phase::Open) {
            return;
        }
        self.begin(signal, next, now_ns);
        if let Some(step) = self.steps.last_mut() {
            step.signal = Some(signal);
            step.phase = self.phase;
        }
    }

    fn begin(&mut self, signal: Signal, recover: u64, now_ns: i64) {
        self.hit = true;
        self.recover = recover;
        self.begun_ns = now_ns;
        self.marked = signal == Signal::Mark;
        self.phase = Phase::Recovery;
        if signal == Signal::Timeout {
            self.phase = Phase::Loss;
            self.duplicate_bytes = 0;
        }
    }

    /// What an acknowledgement that was heard ends or begins.
    fn turn(&mut self, sending: &Sending, marked: bool) -> Option<Signal> {
        let over = self.is_over(sending);
        if over {
            self.phase = Phase::Open;
            self.duplicate_bytes = 0;
        }
        let signal = if over && still_lost(&sending.board) {
            Signal::Loss
        } else if marked && self.phase == Phase::Open {
            Signal::Mark
        } else {
            return None;
        };
        // Only what is sent from now on is answered without the marks of before.
        self.begin(
            signal,
            sending.next + u64::from(signal == Signal::Mark),
            sending.last_heard_ns,
        );
        Some(signal)
    }

    /// All is acknowledged that was sent before the repair began. Away from the sender, what is still lost and was sent
    /// hardly later was sent before it.
    fn is_over(&mut self, sending: &Sending) -> bool {
        if self.phase == Phase::Open || sending.una < self.recover {
            return false;
        }
        if sending.lead_ns > 0 {
            let since_ns = self.begun_ns + TICK_NS;
            let before = |one: &Stretch| one.first_ns <= since_ns && is_lost(one);
            let last = sending.board.last(before);
            self.recover = last.map_or(self.recover, Stretch::end);
        }
        sending.una >= self.recover
    }

    /// A duplicate acknowledgement stands for a segment that arrived (RFC 5681 section 3.2), and one that advances
    /// delivers what none stood for before: one segment filled the hole.
    fn delivered_without_sack(&mut self, advanced: u64, duplicate: bool, sending: &Sending) -> u64 {
        let (before, mss) = (self.duplicate_bytes, u64::from(sending.mss));
        let most = (sending.next - sending.una).saturating_sub(mss);
        if advanced > 0 {
            let left = before.saturating_sub(advanced.saturating_sub(mss));
            let open = self.phase == Phase::Open;
            self.duplicate_bytes = if open { 0 } else { left.min(most) };
            return advanced.saturating_sub(before).max(mss.min(advanced));
        }
        let one = if duplicate { mss } else { 0 };
        self.duplicate_bytes = (before + one).min(most.max(before));
        self.duplicate_bytes - before
    }

    /// RFC 6675's pipe; without SACK less what duplicates stand for.
    #[inline]
    fn pipe_bytes(&self, sending: &Sending) -> u64 {
        let pipe_bytes = sending.board.in_flight_bytes();
        if sending.sack_seen {
            pipe_bytes
        } else {
            pipe_bytes.saturating_sub(self.duplicate_bytes)
        }
    }

    #[inline]
    fn sent(&mut self, sending: &Sending) {
        let window_bytes = clamped(self.pipe_bytes(sending));
        let first = sending.board.front();
        let oldest_sent_ns = first.map(|first| self.sent_ns(first.first_ns, sending));
        let last = self.steps.len().saturating_sub(1);
        if let Some(step) = self.steps.last_mut() {
            if window_bytes > step.window_bytes {
                self.answered = last;
            }
            step.window_bytes = step.window_bytes.max(window_bytes);
            step.oldest_sent_ns = oldest_sent_ns.unwrap_or(step.oldest_sent_ns);
        }
        if self.marked && self.phase == Phase::Recovery && sending.lead_ns > 0 {
            self.reacted(sending);
        }
    }

    /// Away from the sender, what was sent hardly later than a mark was heard was sent before it, and may be marked too.
    fn reacted(&mut self, sending: &Sending) {
        let newest = sending.board.last(|_| true);
        if newest.is_some_and(|one| one.first_ns <= self.begun_ns + TICK_NS) {
            self.recover = self.recover.max(sending.next + 1);
        }
    }

    /// Data passed the point so long after the acknowledgement that it echoes.
    pub fn answered(&mut self, data: &Data, half_ns: i64) {
        if self.halves.len() == MOST_HALVES {
            self.halves.pop_front();
        }
        self.halves.push_back((data.now_ns, half_ns));
        self.answer = Some(((data.tsval, data.tsecr), data.now_ns - half_ns));
    }

    /// The acknowledgement that ended the handshake was sent: data with its timestamps were, together with it.
    pub fn opens(&mut self, (tsval, tsecr): (u32, u32), sent_ns: i64) {
        self.answer = Some(((Some(tsval), Some(tsecr)), sent_ns));
    }

    /// Data that echoes nothing new. What has the timestamps of the packet before was sent together with it, and so was all
    /// that was sent before anything was acknowledged: it only waited longer on its way.
    pub fn together(&mut self, data: &Data, lead_ns: i64) {
        let timestamps = (data.tsval, data.tsecr);
        match self.answer {
            Some((before, sent_ns)) if before == timestamps && data.tsval.is_some() => {
                self.answered(data, data.now_ns - sent_ns);
            }
            None if self.opening_bytes == 0 => self.answered(data, lead_ns),
            _ => {}
        }
    }

    /// When data was sent, in a time in which the sender hears an acknowledgement as it passes the point. The queue that
    /// the data went through before the point is as long as the time since the acknowledgement which it answers says.
    fn sent_ns(&self, passed_ns: i64, sending: &Sending) -> i64 {
        let after = self
            .halves
            .partition_point(|&(at_ns, _)| at_ns <= passed_ns);
        let half_ns = match after.checked_sub(1).and_then(|last| self.halves.get(last)) {
            Some(&(_, half_ns)) if sending.lead_ns > 0 => half_ns,
            _ => sending.lead_ns,
        };
        passed_ns - half_ns
    }

    fn push(&mut self, step: Step, rows: &mut Rows) {
        if self.steps.len() == MOST_OF_A_FLOW && !self.hit {
            self.forget(rows);
        }
        self.full |= self.steps.len() == MOST_OF_A_FLOW || !rows.steps.take_room();
        if !self.full {
            self.steps.push(step);
        }
    }

    /// Gives the room back: nothing was lost, and what comes after a rest is no opening.
    pub fn rest(&mut self, rows: &mut Rows) {
        if !self.hit {
            self.forget(rows);
        }
    }

    fn forget(&mut self, rows: &mut Rows) {
        rows.steps.give_room(self.steps.len());
        self.steps = Vec::new();
        self.answered = 0;
        self.later = true;
    }
}

/// Something was sent again and has not arrived.
fn still_lost(board: &Scoreboard) -> bool {
    board.any(is_lost)
}

fn is_lost(one: &Stretch) -> bool {
    !one.once() && one.state != State::Sacked
}

/// As much as fits: more than any window.
#[inline]
fn clamped(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}

impl Sending {
    /// Steps are wanted of it.
    pub fn tapped(mut self, rows: &Rows) -> Self {
        self.tap = rows.steps.wanted().then(Box::default);
        self
    }

    /// The tap, to be put back, if it takes any more.
    #[inline]
    fn open_tap(&mut self) -> Option<Box<Tap>> {
        self.tap.take_if(|tap| !tap.full)
    }

    /// An acknowledgement is about to be heard.
    #[inline]
    pub(super) fn tap_before(&mut self) {
        let Some(mut tap) = self.open_tap() else {
            return;
        };
        tap.sent(self);
        if tap.opening_bytes == 0 {
            tap.opening_bytes = self.next - self.base;
        }
        tap.heard = Heard {
            una: self.una,
            arrived_bytes: self.arrived_bytes(),
            pipe_bytes: tap.pipe_bytes(self),
            ..Heard::default()
        };
        self.tap = Some(tap);
    }

    /// An acknowledgement was heard.
    #[inline]
    pub(super) fn tap_heard(&mut self, now_ns: i64, said: Said, rows: &mut Rows) {
        let Some(mut tap) = self.open_tap() else {
            return;
        };
        let step = self.step(&mut tap, now_ns, said);
        tap.push(step, rows);
        self.tap = Some(tap);
    }

    #[inline]
    fn step(&self, tap: &mut Tap, now_ns: i64, said: Said) -> Step {
        let heard = tap.heard;
        let advanced = self.una - heard.una;
        let delivered = if self.sack_seen {
            self.arrived_bytes().saturating_sub(heard.arrived_bytes)
        } else {
            tap.delivered_without_sack(advanced, said.selective, self)
        };
        let signal = tap.turn(self, said.marked);
        let age_ns = |passed_ns: Option<i64>| {
            let passed_ns =
                passed_ns.filter(|_| !heard.again && self.vantage != Vantage::Unknown)?;
            u32::try_from(now_ns - tap.sent_ns(passed_ns, self)).ok()
        };
        let pipe_bytes = clamped(tap.pipe_bytes(self));
        let limit = self.rounds.latest;
        Step {
            time_ns: now_ns,
            oldest_sent_ns: now_ns, // until it is known what is sent
            rtt_ns: age_ns(heard.newest_ns),
            oldest_rtt_ns: age_ns(heard.oldest_ns),
            delivered_bytes: clamped(delivered),
            advanced_bytes: clamped(advanced),
            prior_in_flight_bytes: clamped(heard.pipe_bytes),
            in_flight_bytes: pipe_bytes,
            window_bytes: pipe_bytes,
            outstanding_bytes: clamped(self.next.saturating_sub(self.una)),
            selective: said.selective,
            marked: said.marked,
            limited_elsewhere: limit == Limit::Receiver as u8
                || limit == Limit::Application as u8 && !self.rounds.waited,
            signal,
            phase: tap.phase,
        }
    }

    /// What was sent since the last step is the last step's: the pipe has only grown.
    #[inline]
    pub(super) fn tap_sent(&mut self) {
        if let Some(mut tap) = self.open_tap() {
            tap.sent(self);
            self.tap = Some(tap);
        }
    }

    /// It is over: its steps are kept if they tell anything. `from_opening`: the capture has the connection's beginning.
    pub fn tap_finish(&mut self, from_opening: bool, handshake_ns: Option<i64>, rows: &mut Rows) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        if !tap.hit || self.vantage == Vantage::Unknown {
            tap.forget(rows);
            return;
        }
        let opening = tap.opening_bytes.div_ceil(u64::from(self.mss.max(1))) as u32;
        rows.steps.keep(FlowSteps {
            flow: self.flow,
            mss_bytes: self.mss,
            initial_window: (from_opening && !tap.later).then_some(opening),
            handshake_ns,
            steps: tap.steps,
        });
    }
}
