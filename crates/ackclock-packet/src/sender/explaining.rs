//! Why a segment is sent, and what kept it from leaving earlier: for those who want to know. Nothing depends on it.

use ackclock_congestion::RecoveryPolicy;
use ackclock_record::{Cause, Limit, NONE};

use super::{Phase, Sender};
use crate::packet::Kind;

/// What ended the last look at what may be sent: segments that leave at the next one have waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There was none yet: the connection was not open.
    Opening,
    /// The window was full, or has no room for a batch.
    Window,
    /// The receiver's window was full.
    Receiver,
    /// The application had written no more.
    Application,
    /// Pacing holds back what is next.
    Pacing,
}

/// What lets a segment go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The window, or the end of an old one: a first repair goes whatever the window.
    Window,
    /// The retransmission timer.
    Timeout,
    /// The probe timer.
    Probe,
}

/// Why a packet is sent now, and the sender's state then.
#[derive(Clone, Copy, Debug)]
pub struct Reasons {
    /// Why it is sent.
    pub cause: Cause,
    /// What kept it from leaving earlier.
    pub limit: Limit,
    /// Congestion window in segments; NaN if there is none.
    pub cwnd: f64,
    /// Segments in flight, this one included; [`NONE`] if they are not counted.
    pub in_flight: u32,
}

impl Reasons {
    /// Those of a packet without data, which was or was not sent before.
    pub fn of_control(kind: Kind, again: bool) -> Reasons {
        let opens = kind.opens() || kind == Kind::Request;
        Reasons {
            cause: match (opens, again) {
                (true, false) => Cause::Opening,
                (true, true) => Cause::OpeningAgain,
                (false, _) => Cause::Other,
            },
            limit: Limit::Nothing,
            cwnd: f64::NAN,
            in_flight: NONE,
        }
    }
}

impl Sender {
    /// Why a packet is being sent.
    pub(super) fn reasons(&self, kind: Kind, trigger: Trigger, retransmitted: bool) -> Reasons {
        if !kind.is_segment() {
            return Reasons::of_control(kind, retransmitted);
        }
        Reasons {
            cause: self.cause(trigger, retransmitted),
            limit: self.limit(retransmitted),
            cwnd: self.cwnd(),
            in_flight: self.board.in_flight(),
        }
    }

    fn cause(&self, trigger: Trigger, retransmitted: bool) -> Cause {
        let after_timeout = self.phase == Phase::Loss && self.episode.timed_out.is_some();
        match trigger {
            Trigger::Timeout => Cause::Timeout,
            Trigger::Probe => Cause::TailProbe,
            Trigger::Window if retransmitted && after_timeout => Cause::AfterTimeout,
            Trigger::Window if retransmitted => Cause::FastRetransmit,
            Trigger::Window if self.phase == Phase::Disorder => Cause::LimitedTransmit,
            Trigger::Window => Cause::NewData,
        }
    }

    /// What is sent again was written before, and is in the receiver's window: it has waited for news of its loss.
    fn limit(&self, retransmitted: bool) -> Limit {
        match self.stop {
            Stop::Opening => Limit::Nothing,
            Stop::Application | Stop::Receiver if retransmitted => Limit::Recovery,
            Stop::Application => Limit::Application,
            Stop::Receiver => Limit::Receiver,
            Stop::Pacing => Limit::Pacing,
            Stop::Window if matches!(self.phase, Phase::Recovery | Phase::Reduced) => {
                Limit::Recovery
            }
            Stop::Window if self.is_in_slow_start() => Limit::SlowStart,
            Stop::Window => Limit::Cwnd,
        }
    }

    /// A model of the path leaves its Startup for good, and from then on ssthresh only tells others where that was: a
    /// window below it does not grow faster.
    fn is_in_slow_start(&self) -> bool {
        let ssthresh = self.controller.ssthresh();
        let is_model = self.controller.recovery_policy() == RecoveryPolicy::Controller;
        self.controller.cwnd() < ssthresh && (ssthresh.is_infinite() || !is_model)
    }
}
