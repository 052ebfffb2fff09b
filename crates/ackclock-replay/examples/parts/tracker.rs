//! From the segments of one flow at its sender to its series. Sequence numbers count from the first byte of data.

use std::collections::VecDeque;

use ackclock_replay::series::{Phase, Series, Signal, Step};
use ackclock_units::Time;

/// A segment as it passes.
pub enum Seen {
    /// Data: first byte, bytes.
    Data(u64, u32),
    /// An acknowledgement: next byte expected, SACK blocks; without any, a duplicate counts for one segment.
    Ack(u64, Vec<(u64, u64)>, bool),
}

struct Segment {
    start: u64,
    end: u64,
    first: Time,
    sent: Time,
    again: bool,
    sacked: bool,
}

pub struct Tracker {
    pub series: Series,
    board: VecDeque<Segment>,
    una: u64,
    next: u64,
    duplicates: u32,
    phase: Phase,
    recover: u64,
    last_ack: Time,
    last_sent: Time,
    srtt: Time,
    sacks: bool,
}

impl Tracker {
    pub fn new(mss_bytes: u32, handshake: Option<Time>, sacks: bool) -> Self {
        Self {
            series: Series {
                mss_bytes,
                initial_window: Some(10),
                handshake,
                steps: Vec::new(),
            },
            board: VecDeque::new(),
            una: 0,
            next: 0,
            duplicates: 0,
            phase: Phase::Open,
            recover: 0,
            last_ack: Time::ZERO,
            last_sent: Time::ZERO,
            srtt: handshake.unwrap_or(Time::ZERO),
            sacks,
        }
    }

    fn pipe(&self) -> u32 {
        let (mut above, mut gone) = (0, 0);
        for s in self.board.iter().rev() {
            above += u32::from(s.sacked);
            gone += u32::from(s.sacked || (above >= 3 && !s.again));
        }
        (self.board.len() as u32).saturating_sub(gone.max(self.duplicates))
    }

    pub fn see(&mut self, now: Time, seen: Seen) {
        match seen {
            Seen::Data(start, bytes) => self.data(now, start, bytes),
            Seen::Ack(ack, blocks, ece) => self.ack(now, ack, &blocks, ece),
        }
    }

    fn data(&mut self, now: Time, start: u64, bytes: u32) {
        let mut at = start;
        let end = start + u64::from(bytes);
        let mss = u64::from(self.series.mss_bytes);
        while at < end {
            let to = (at + mss).min(end);
            if at >= self.next {
                self.board.push_back(Segment {
                    start: at,
                    end: to,
                    first: now,
                    sent: now,
                    again: false,
                    sacked: false,
                });
                self.next = to;
            } else {
                self.again(now, at);
            }
            at = to;
        }
        self.last_sent = now;
        let window = self.pipe();
        let outstanding = self.board.len() as u32;
        if let Some(step) = self.series.steps.last_mut() {
            step.window = step.window.max(window);
            step.oldest_sent = self.board.front().map_or(now, |s| s.first);
        } else {
            self.series.initial_window = Some(outstanding);
        }
    }

    fn again(&mut self, now: Time, at: u64) {
        let idle = now.since(self.last_ack.max(self.last_sent));
        let long = idle >= self.srtt.max(Time::from_milliseconds(190));
        let head = at <= self.una;
        let tail = self.board.len() > 1 && self.board.back().is_some_and(|s| s.start == at);
        if let Some(s) = self.board.iter_mut().find(|s| s.start <= at && at < s.end) {
            s.again = true;
            s.sent = now;
        }
        let signal = if long && head {
            Some(Signal::Timeout)
        } else if self.phase == Phase::Open && !(tail && idle > Time::from_milliseconds(2)) {
            Some(Signal::Loss)
        } else {
            None
        };
        let Some(signal) = signal else { return };
        self.recover = self.next;
        self.phase = if signal == Signal::Timeout {
            Phase::Repair
        } else {
            Phase::Recovery
        };
        if signal == Signal::Timeout {
            self.duplicates = 0;
        }
        if let Some(step) = self.series.steps.last_mut() {
            step.signal = Some(signal);
            step.phase = self.phase;
        }
    }

    fn ack(&mut self, now: Time, ack: u64, blocks: &[(u64, u64)], ece: bool) {
        if self.next == 0 || ack < self.una {
            return;
        }
        let prior_in_flight = self.pipe();
        let (mut delivered, mut advanced, mut newest, mut oldest) = (0, 0, None, None);
        let mut karn = false;
        // Without blocks: what was sent before a repair that this answers must have been SACKed before.
        let repaired = self
            .board
            .iter()
            .take_while(|s| s.end <= ack)
            .filter(|s| s.again)
            .map(|s| s.sent)
            .min();
        while self.board.front().is_some_and(|s| s.end <= ack) {
            let s = self.board.pop_front().expect("it is there");
            advanced += 1;
            karn |= s.again;
            let before = !self.sacks && !s.again && repaired.is_some_and(|repair| s.sent <= repair);
            if !s.sacked && !before {
                delivered += 1;
                newest = Some(s.sent);
                oldest = oldest.or(newest);
            }
        }
        for s in &mut self.board {
            if !s.sacked
                && blocks
                    .iter()
                    .any(|&(from, to)| from <= s.start && s.end <= to)
            {
                s.sacked = true;
                delivered += 1;
                karn |= s.again;
                newest = Some(s.sent);
                oldest = oldest.or(newest);
            }
        }
        let duplicate = advanced == 0;
        if !self.sacks {
            if duplicate {
                self.duplicates = (self.duplicates + 1).min(self.board.len() as u32);
                delivered += 1;
            } else {
                self.duplicates = if self.phase == Phase::Open {
                    0
                } else {
                    self.duplicates.min(self.board.len() as u32)
                };
            }
        }
        self.una = self.una.max(ack);
        let mut signal = None;
        if self.phase != Phase::Open && self.una >= self.recover {
            self.phase = Phase::Open;
            self.duplicates = 0;
            // What was lost and repaired beyond the point of recovery begins the next one at once.
            if self.board.iter().any(|s| s.again && !s.sacked) {
                signal = Some(Signal::Loss);
                self.phase = Phase::Recovery;
                self.recover = self.next;
            }
        }
        if ece && self.phase == Phase::Open {
            signal = Some(Signal::Mark);
            self.phase = Phase::Recovery;
            // Only what is sent from now on is answered without the old marks.
            self.recover = self.next + 1;
        }
        let rtt = newest.filter(|_| !karn).map(|sent| now.since(sent));
        let oldest_rtt = oldest.filter(|_| !karn).map(|sent| now.since(sent));
        if let Some(rtt) = rtt {
            self.srtt = if self.srtt == Time::ZERO {
                rtt
            } else {
                self.srtt.scaled(0.875) + rtt.scaled(0.125)
            };
        }
        self.last_ack = now;
        let in_flight = self.pipe();
        self.series.steps.push(Step {
            time: now,
            delivered,
            advanced,
            selective: duplicate || !blocks.is_empty(),
            marked: if ece { delivered } else { 0 },
            rtt,
            oldest_rtt,
            prior_in_flight,
            in_flight,
            window: in_flight,
            outstanding: self.board.len() as u32,
            oldest_sent: self.board.front().map_or(now, |s| s.first),
            signal,
            phase: self.phase,
            limited_elsewhere: false,
        });
    }
}
