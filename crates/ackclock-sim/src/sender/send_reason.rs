//! Reason of a segment's transmission, and limit that kept it from leaving earlier, for records. No behaviour depends
//! on it.

use ackclock_congestion::RecoveryPolicy;
use ackclock_core::tables::{SendCause, SendLimit, NONE};

use super::{CaState, Sender};
use crate::packet::Kind;

/// Limit that ended the last attempt to send: segments that leave at the next one have waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedBy {
    /// No attempt yet: the connection was not open.
    Opening,
    /// The window was full, or has no room for a batch.
    Window,
    /// The receiver's window was full.
    Receiver,
    /// The application had written no more.
    Application,
    /// The application had written no more for want of room in the send buffer.
    SendBuffer,
    /// Pacing holds back what is next.
    Pacing,
}

/// Trigger of a segment's transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The window; a first retransmission goes regardless of it.
    Window,
    /// The retransmission timer.
    Timeout,
    /// The probe timer.
    TlpProbe,
}

/// Reason of a packet's transmission, and the sender's state at that time.
#[derive(Clone, Copy, Debug)]
pub struct SendReason {
    /// Cause of the transmission.
    pub cause: SendCause,
    /// Limit that kept it from leaving earlier.
    pub limit: SendLimit,
    /// Congestion window in segments; NaN if there is none.
    pub cwnd: f64,
    /// Segments in flight, this one included; [`NONE`] if they are not counted.
    pub in_flight: u32,
}

impl SendReason {
    /// Reason of a packet without data; `again`: it is retransmitted.
    pub fn of_control(kind: Kind, again: bool) -> SendReason {
        let opens = kind.opens() || kind == Kind::Request;
        SendReason {
            cause: match (opens, again) {
                (true, false) => SendCause::Opening,
                (true, true) => SendCause::OpeningRetransmission,
                (false, _) => SendCause::Other,
            },
            limit: SendLimit::None,
            cwnd: f64::NAN,
            in_flight: NONE,
        }
    }
}

impl Sender {
    /// Reason of a packet that is being sent.
    pub(super) fn reason(&self, kind: Kind, trigger: Trigger, retransmitted: bool) -> SendReason {
        if !kind.is_segment() {
            return SendReason::of_control(kind, retransmitted);
        }
        SendReason {
            cause: self.cause(trigger, retransmitted),
            limit: self.limit(retransmitted),
            cwnd: self.cwnd(),
            in_flight: self.board.in_flight(),
        }
    }

    fn cause(&self, trigger: Trigger, retransmitted: bool) -> SendCause {
        let after_timeout = self.ca_state == CaState::Loss && self.episode.timed_out.is_some();
        match trigger {
            Trigger::Timeout => SendCause::Timeout,
            Trigger::TlpProbe => SendCause::TailProbe,
            Trigger::Window if retransmitted && after_timeout => SendCause::AfterTimeout,
            Trigger::Window if retransmitted => SendCause::FastRetransmit,
            Trigger::Window if self.ca_state == CaState::Disorder => SendCause::LimitedTransmit,
            Trigger::Window => SendCause::NewData,
        }
    }

    /// Limit of a packet that is being sent. A retransmission is within the receiver's window and has waited for loss
    /// detection.
    fn limit(&self, retransmitted: bool) -> SendLimit {
        match self.stop {
            BlockedBy::Opening => SendLimit::None,
            BlockedBy::Application | BlockedBy::SendBuffer | BlockedBy::Receiver
                if retransmitted =>
            {
                SendLimit::Recovery
            }
            BlockedBy::Application => SendLimit::Application,
            BlockedBy::SendBuffer => SendLimit::SendBuffer,
            BlockedBy::Receiver => SendLimit::Receiver,
            BlockedBy::Pacing => SendLimit::Pacing,
            BlockedBy::Window if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) => {
                SendLimit::Recovery
            }
            BlockedBy::Window if self.is_in_slow_start() => SendLimit::SlowStart,
            BlockedBy::Window => SendLimit::Cwnd,
        }
    }

    /// True in slow start. A model-based algorithm leaves Startup for good, and from then on ssthresh is only a report
    /// of that: a window below it does not grow faster.
    fn is_in_slow_start(&self) -> bool {
        let ssthresh = self.controller.ssthresh();
        let is_model = self.controller.recovery_policy() == RecoveryPolicy::Controller;
        self.controller.cwnd() < ssthresh && (ssthresh.is_infinite() || !is_model)
    }
}
