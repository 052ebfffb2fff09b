//! Steps of a direction, taken while its acknowledgements are heard (see [`crate::steps`]).
//!
//! Fast recovery ends when all is acknowledged that was sent before it began. What was sent again beyond that is lost:
//! the next one begins at once.

use super::scoreboard::{Scoreboard, State, Stretch};
use super::sending::Sending;
use crate::rows::Rows;
use crate::steps::{FlowSteps, Phase, Signal, Step, MOST_OF_A_FLOW};
use crate::tables::{Limit, Vantage};

/// Takes steps.
#[derive(Debug, Default)]
pub struct Tap {
    steps: Vec<Step>,
    /// Steps were thrown away, so the opening is not among them.
    later: bool,
    /// Something was lost or marked.
    hit: bool,
    /// There was no room for more.
    full: bool,
    phase: Phase,
    recover: u64,
    /// Without SACK: segments that left the path, by duplicate acknowledgements.
    duplicates: u32,
    heard: Heard,
}

/// Of the acknowledgement that is being heard.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    una: u64,
    arrived_bytes: u64,
    prior_in_flight: u32,
    again: bool,
    oldest_ns: Option<i64>,
    newest_ns: Option<i64>,
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

    /// A repair begins: what was sent so far ends at `next`.
    pub fn signal(&mut self, signal: Signal, next: u64) {
        if signal == Signal::Loss && self.phase != Phase::Open {
            return;
        }
        self.hit = true;
        self.recover = next;
        self.phase = Phase::Recovery;
        if signal == Signal::Timeout {
            self.phase = Phase::Repair;
            self.duplicates = 0;
        }
        if let Some(step) = self.steps.last_mut() {
            step.signal = Some(signal);
            step.phase = self.phase;
        }
    }

    /// Whether a recovery is over, and what begins then.
    fn recovered(&mut self, una: u64, next: u64, board: &Scoreboard) -> Option<Signal> {
        if self.phase == Phase::Open || una < self.recover {
            return None;
        }
        self.phase = Phase::Open;
        self.duplicates = 0;
        let lost = board.any(|one| !one.once() && one.state != State::Sacked);
        lost.then(|| self.begin(Signal::Loss, next))
    }

    fn begin(&mut self, signal: Signal, recover: u64) -> Signal {
        self.hit = true;
        self.phase = Phase::Recovery;
        self.recover = recover;
        signal
    }

    /// A duplicate acknowledgement stands for a segment that arrived (RFC 5681 section 3.2), and one that advances
    /// delivers what none stood for before: one filled the hole.
    fn delivered_without_sack(&mut self, advanced: u32, duplicate: bool, outstanding: u32) -> u32 {
        let before = self.duplicates;
        let most = outstanding.saturating_sub(1);
        if advanced > 0 {
            let open = self.phase == Phase::Open;
            self.duplicates = if open {
                0
            } else {
                before.saturating_sub(advanced - 1).min(most)
            };
            return advanced.saturating_sub(before).max(1);
        }
        self.duplicates = (before + u32::from(duplicate)).min(most.max(before));
        self.duplicates - before
    }

    /// Gives the room back: nothing was lost, and the next steps are no longer those of the opening.
    pub fn forget_if_unhurt(&mut self, rows: &mut Rows) {
        if !self.hit {
            self.forget(rows);
        }
    }

    fn forget(&mut self, rows: &mut Rows) {
        rows.steps.give_room(self.steps.len());
        self.steps = Vec::new();
        self.later = true;
    }

    fn push(&mut self, step: Step, rows: &mut Rows) {
        if self.full {
            return;
        }
        if self.steps.len() == MOST_OF_A_FLOW && !self.hit {
            self.forget(rows);
        }
        if self.steps.len() == MOST_OF_A_FLOW || !rows.steps.take_room() {
            self.full = true;
            return;
        }
        self.steps.push(step);
    }
}

/// Whole segments in so many bytes, and what is left as one.
#[inline]
fn segments(bytes: u64, mss: u32) -> u32 {
    bytes
        .div_ceil(u64::from(mss.max(1)))
        .min(u64::from(u32::MAX)) as u32
}

/// What an acknowledgement says besides its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// It has SACK blocks, or is a duplicate.
    pub selective: bool,
    /// It reports marks.
    pub marked: bool,
}

impl Sending {
    /// Steps are wanted of it.
    pub(super) fn tapped(mut self, rows: &Rows) -> Self {
        self.tap = rows.steps.wanted().then(Box::default);
        self
    }

    /// An acknowledgement is about to be heard.
    #[inline]
    pub(super) fn tap_before(&mut self) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        tap.heard = Heard {
            una: self.una,
            arrived_bytes: self.arrived_bytes(),
            prior_in_flight: self.tapped_pipe(&tap),
            ..Heard::default()
        };
        self.tap = Some(tap);
    }

    /// An acknowledgement was heard.
    pub(super) fn tap_heard(&mut self, now_ns: i64, said: Said, rows: &mut Rows) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        let heard = tap.heard;
        let outstanding = segments(self.next.saturating_sub(self.una), self.mss);
        let advanced = segments(self.una - heard.una, self.mss);
        let delivered = if self.sack_seen {
            segments(
                self.arrived_bytes().saturating_sub(heard.arrived_bytes),
                self.mss,
            )
        } else {
            tap.delivered_without_sack(advanced, said.selective, outstanding)
        };
        let mut signal = tap.recovered(self.una, self.next, &self.board);
        if said.marked && tap.phase == Phase::Open {
            // Only what is sent from now on is answered without the marks of before.
            signal = Some(tap.begin(Signal::Mark, self.next + 1));
        }
        let age_ns = |sent_ns: Option<i64>| {
            let sent_ns = sent_ns.filter(|_| !heard.again)?;
            u32::try_from(now_ns - sent_ns).ok()
        };
        let in_flight = self.tapped_pipe(&tap);
        let limit = self.rounds.latest;
        let step = Step {
            time_ns: now_ns,
            oldest_sent_ns: self.board.front().map_or(now_ns, |first| first.first_ns),
            rtt_ns: age_ns(heard.newest_ns),
            oldest_rtt_ns: age_ns(heard.oldest_ns),
            delivered,
            advanced,
            prior_in_flight: heard.prior_in_flight,
            in_flight,
            window: in_flight,
            outstanding,
            selective: said.selective,
            marked: said.marked,
            limited_elsewhere: [Limit::Application, Limit::Receiver]
                .iter()
                .any(|&one| one as u8 == limit),
            signal,
            phase: tap.phase,
        };
        tap.push(step, rows);
        self.tap = Some(tap);
    }

    /// Something was sent.
    #[inline]
    pub(super) fn tap_sent(&mut self, now_ns: i64) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        let window = self.tapped_pipe(&tap);
        if let Some(step) = tap.steps.last_mut() {
            step.window = step.window.max(window);
            step.oldest_sent_ns = self.board.front().map_or(now_ns, |first| first.first_ns);
        }
        self.tap = Some(tap);
    }

    /// RFC 6675's pipe in segments; without SACK less those that duplicates stand for.
    #[inline]
    fn tapped_pipe(&self, tap: &Tap) -> u32 {
        let pipe = segments(self.board.in_flight_bytes(), self.mss);
        if self.sack_seen {
            pipe
        } else {
            pipe.saturating_sub(tap.duplicates)
        }
    }

    /// It is over.
    pub(super) fn tap_finish(
        &mut self,
        initial_window: Option<u32>,
        handshake_ns: Option<i64>,
        rows: &mut Rows,
    ) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        if !tap.hit || self.vantage == Vantage::Unknown {
            tap.forget(rows);
            return;
        }
        rows.steps.keep(FlowSteps {
            flow: self.flow,
            mss_bytes: self.mss,
            initial_window: initial_window.filter(|_| !tap.later),
            handshake_ns,
            steps: tap.steps,
        });
    }
}
