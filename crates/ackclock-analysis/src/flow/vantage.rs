//! Detection of the vantage point from the round-trip times to both ends.
//!
//! The round trip to the sender is that of the handshake or of timestamps. A capture that begins later, of hosts without
//! timestamps, has neither; there data that follow an acknowledgement at once, after a pause, show the sender's own
//! host (`ack_responses`).

use super::rtt::{RttEstimator, RttStats};
use super::sender_view::SenderView;
use crate::tables::Vantage;

/// An end is where the capture was taken if its half of the round trip is a smaller share of the whole.
const AT_THE_END: f64 = 0.04;
/// Or shorter than this: no path but a host's own.
const HOST_NS: i64 = 60_000;
/// Minimum samples of each side's RTT.
const ENOUGH: u64 = 16;
/// A queue before the vantage point is this share of the minimum RTT, and longer than two ticks of a clock.
const QUEUE: f64 = 0.1;
const TICKS_NS: i64 = 2_000_000;

/// Find the vantage of a direction. `side_rtts_ns`: the halves of the handshake, to the client and to the server, 0 if not
/// captured; `ours`: the packet was sent by the host that captured.
#[inline]
pub fn classify(sender_view: &mut SenderView, from: usize, side_rtts_ns: [i64; 2], ours: bool) {
    if sender_view.vantage != Vantage::Unknown {
        let queue_ns = sender_view.queue_delay.window_ns;
        let long = queue_ns > TICKS_NS && queue_ns as f64 > QUEUE * sender_view.rtt.min_ns as f64;
        let long = long && sender_view.queue_delay.is_superseded;
        if long && sender_view.vantage == Vantage::Sender && !sender_view.ours && !ours {
            sender_view.vantage = Vantage::Middle;
            sender_view.sender_delay_ns = queue_ns;
        }
        return;
    }
    let (sender_ns, receiver_ns) = (side_rtts_ns[from], side_rtts_ns[1 - from]);
    if ours {
        sender_view.ours = true;
        sender_view.vantage = Vantage::Sender;
    } else if sender_ns > 0 && receiver_ns > 0 {
        set_vantage(sender_view, sender_ns, receiver_ns);
    } else if sender_view.receiver_side_rtt.count >= ENOUGH {
        let receiver_ns = sender_view.receiver_side_rtt.min_ns.max(1);
        let timestamps = sender_view.sender_side_rtt;
        let responses_ns = sender_view.ack_responses.sender_side_ns();
        if sender_ns > 0 {
            set_vantage(sender_view, sender_ns, receiver_ns);
        } else if timestamps.count >= ENOUGH {
            set_vantage(sender_view, timestamps.min_ns.max(1), receiver_ns);
        } else if let Some(sender_ns) =
            responses_ns.filter(|&ns| of(ns, receiver_ns) == Vantage::Sender)
        {
            set_vantage(sender_view, sender_ns, receiver_ns);
        }
    }
}

fn set_vantage(sender_view: &mut SenderView, sender_ns: i64, receiver_ns: i64) {
    sender_view.vantage = of(sender_ns, receiver_ns);
    if sender_view.vantage != Vantage::Sender {
        sender_view.sender_delay_ns = sender_ns;
        // Round trips so far had one half only.
        sender_view.rtt = RttStats::default();
        sender_view.rtt_timestamps = RttStats::default();
        sender_view.rtt_estimator = RttEstimator::default();
        if let Some(tracer) = &mut sender_view.tracer {
            tracer.forget_rtts();
        }
    }
}

fn of(sender_ns: i64, receiver_ns: i64) -> Vantage {
    let small = |side_rtt_ns: i64| {
        side_rtt_ns < HOST_NS
            || (side_rtt_ns as f64) < AT_THE_END * (sender_ns + receiver_ns) as f64
    };
    match (small(sender_ns), small(receiver_ns)) {
        (true, true) if sender_ns > receiver_ns => Vantage::Receiver,
        (true, _) => Vantage::Sender,
        (false, true) => Vantage::Receiver,
        (false, false) => Vantage::Middle,
    }
}

/// Return the confidence of the vantage: it grows with the distance from the thresholds.
pub fn confidence(sender_view: &SenderView, from: usize, side_rtts_ns: [i64; 2]) -> f64 {
    let (sender_ns, receiver_ns) = (side_rtts_ns[from], side_rtts_ns[1 - from]);
    match sender_view.vantage {
        Vantage::Unknown => 0.0,
        _ if sender_ns == 0 || receiver_ns == 0 => 0.9,
        vantage => {
            let share = sender_ns.min(receiver_ns) as f64 / (sender_ns + receiver_ns) as f64;
            let middle = vantage == Vantage::Middle;
            let distance = if middle {
                share / AT_THE_END
            } else {
                AT_THE_END / share.max(1e-9)
            };
            (1.0 - 0.5 / distance.max(1.0)).min(0.99)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_with_the_shorter_half_is_where_the_capture_was_taken() {
        assert_eq!(of(10_000, 50_000_000), Vantage::Sender);
        assert_eq!(of(50_000_000, 100_000), Vantage::Receiver);
        assert_eq!(of(20_000_000, 30_000_000), Vantage::Middle);
    }
}
