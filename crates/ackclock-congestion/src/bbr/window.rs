//! The window of version 1, in recovery too.
//!
//! Draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.3: the window grows by what is delivered up to
//! the target. In the first round of a recovery packets are conserved, one out for one in; then at most
//! two out for one in; afterwards the window from before comes back.

use super::super::Ack;
use super::path::pipe::{SavedWindow, MIN_WINDOW};
use super::path::rounds::Rounds;

/// The target of the window.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// Segments.
    pub segments: u32,
    /// True if the pipe is full, so that a window above the goal comes down to it.
    pub full: bool,
    /// Until so many segments are delivered the goal is not used.
    pub first: u32,
}

/// The sender's recovery state at the last delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    Losses,
    Timeout,
}

/// The window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    cwnd: u32,
    saved: SavedWindow,
    recovery: Recovery,
    conserving: bool,
}

impl Window {
    /// The initial window.
    pub fn new(initial_window: f64) -> Window {
        Window {
            cwnd: (initial_window as u32).max(1),
            saved: SavedWindow::default(),
            recovery: Recovery::None,
            conserving: false,
        }
    }

    /// Segments.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Store the window; `probing_rtt` is set if it is small to measure the delay.
    pub fn save(&mut self, probing_rtt: bool) {
        let was_cut = probing_rtt || self.recovery != Recovery::None;
        self.saved.save(self.cwnd, was_cut);
    }

    /// Restore the saved window.
    pub fn restore(&mut self) {
        self.cwnd = self.saved.restore(self.cwnd);
    }

    /// Start again from one segment after a timeout.
    pub fn restart(&mut self, probing_rtt: bool) {
        self.save(probing_rtt);
        self.recovery = Recovery::Timeout;
        self.cwnd = 1;
    }

    /// Reduce to at most `segments`.
    pub fn bound(&mut self, segments: u32) {
        self.cwnd = self.cwnd.min(segments);
    }

    /// Take an ACK that delivered something. The window grows to `goal`; a recovery starts a round.
    #[inline]
    pub fn update(&mut self, ack: &Ack, goal: &Goal, rounds: &mut Rounds) {
        self.conserving &= !rounds.started;
        if ack.newly_lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(ack.newly_lost).max(1);
        }
        self.track_recovery(ack, rounds);
        if self.conserving {
            self.cwnd = self.cwnd.max(ack.in_flight + ack.newly_acked);
            return;
        }
        let grown = self.cwnd.saturating_add(ack.newly_acked);
        if goal.full {
            self.cwnd = grown.min(goal.segments);
        } else if self.cwnd < goal.segments || ack.delivered < u64::from(goal.first) {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(MIN_WINDOW);
    }

    #[inline]
    fn track_recovery(&mut self, ack: &Ack, rounds: &mut Rounds) {
        let before = self.recovery;
        self.recovery = match (ack.recovering, ack.in_loss) {
            (_, true) => Recovery::Timeout,
            (true, false) => Recovery::Losses,
            (false, false) => Recovery::None,
        };
        if self.recovery == Recovery::Losses && before != Recovery::Losses {
            self.conserving = true;
            rounds.restart(ack.delivered);
            self.cwnd = ack.in_flight + ack.newly_acked;
        } else if self.recovery == Recovery::None && before != Recovery::None {
            self.conserving = false;
            self.restore();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::window::testing::{ack, recovering};
    use super::*;
    use ackclock_core::Time;

    fn goal(segments: u32) -> Goal {
        Goal {
            segments,
            full: true,
            first: 10,
        }
    }

    /// The window after an ACK in the middle of a round.
    fn after(window: &mut Window, ack: &Ack, goal: &Goal) -> u32 {
        window.update(ack, goal, &mut Rounds::default());
        window.cwnd()
    }

    #[test]
    fn the_window_grows_by_delivered_segments_up_to_the_goal() {
        let mut window = Window::new(100.0);
        let two = ack(Time::ZERO, 2);
        assert_eq!(after(&mut window, &two, &goal(180)), 102);
        assert_eq!(after(&mut window, &two, &goal(103)), 103);
        assert_eq!(after(&mut window, &two, &goal(50)), 50, "at once");
        assert_eq!(after(&mut window, &two, &goal(2)), MIN_WINDOW);
    }

    #[test]
    fn before_the_pipe_is_full_a_goal_does_not_cut() {
        let mut window = Window::new(100.0);
        let filling = Goal {
            full: false,
            ..goal(50)
        };
        let late = Ack {
            delivered: 500,
            ..ack(Time::ZERO, 2)
        };
        assert_eq!(after(&mut window, &late, &filling), 100);
    }

    #[test]
    fn a_recovery_conserves_packets_for_a_round_then_grows_and_restores() {
        let mut window = Window::new(100.0);
        window.save(false);
        let mut rounds = Rounds::default();
        let mut at = |prior_delivered: u64, lost: u32| {
            let ack = Ack {
                in_flight: 60,
                newly_lost: lost,
                delivered: 1000 + u64::from(prior_delivered > 0),
                prior_delivered,
                ..recovering(Time::ZERO, 1)
            };
            rounds.observe(&ack);
            window.update(&ack, &goal(180), &mut rounds);
            window.cwnd()
        };
        assert_eq!(at(0, 3), 61, "in flight, and one for the one delivered");
        assert_eq!(at(999, 0), 61, "sent before the recovery began");
        assert_eq!(at(1000, 0), 62, "a round later");
        let restored = after(&mut window, &ack(Time::ZERO, 1), &goal(180));
        assert_eq!(restored, 101, "back at 100, and one more");
    }

    #[test]
    fn after_a_timeout_the_window_restarts_from_one_and_is_restored() {
        let mut window = Window::new(100.0);
        window.restart(false);
        assert_eq!(window.cwnd(), 1);
        let recovery = Ack {
            in_loss: true,
            ..ack(Time::ZERO, 1)
        };
        assert_eq!(after(&mut window, &recovery, &goal(180)), MIN_WINDOW);
        let restored = after(&mut window, &ack(Time::ZERO, 1), &goal(180));
        assert_eq!(restored, 101);
    }
}
