//! Where a capture was taken, by the times that packets take from there to each end and back.

use super::sending::Sending;
use crate::tables::Vantage;

/// An end is where the capture was taken if its half of the round trip is a smaller share of the whole.
const AT_THE_END: f64 = 0.04;
/// Or shorter than this: no path but a host's own.
const HOST_NS: i64 = 60_000;
/// Samples of each half that are enough.
const ENOUGH: u64 = 16;
/// A queue before the point is this share of the least RTT, and longer than two ticks of a clock.
const QUEUE: f64 = 0.1;
const TICKS_NS: i64 = 2_000_000;

/// Finds the vantage of a direction. `to_ns`: the halves of the handshake, to the client and to the server; `ours`: the
/// packet was sent by the host that captured.
#[inline]
pub fn look(sending: &mut Sending, from: usize, to_ns: [i64; 2], ours: bool) {
    if sending.vantage != Vantage::Unknown {
        let queue_ns = sending.far.window_ns;
        let long = queue_ns > TICKS_NS && queue_ns as f64 > QUEUE * sending.rtt.min_ns as f64;
        let long = long && sending.far.is_stale;
        if long && sending.vantage == Vantage::Sender && !sending.ours && !ours {
            sending.vantage = Vantage::Middle;
            sending.lead_ns = queue_ns;
        }
        return;
    }
    let (sender_ns, receiver_ns) = (to_ns[from], to_ns[1 - from]);
    if ours {
        sending.ours = true;
        sending.vantage = Vantage::Sender;
    } else if sender_ns > 0 && receiver_ns > 0 {
        place(sending, sender_ns, receiver_ns);
    } else if sending.sender_half.count >= ENOUGH && sending.receiver_half.count >= ENOUGH {
        place(
            sending,
            sending.sender_half.min_ns.max(1),
            sending.receiver_half.min_ns.max(1),
        );
    }
}

fn place(sending: &mut Sending, sender_ns: i64, receiver_ns: i64) {
    sending.vantage = of(sender_ns, receiver_ns);
    if sending.vantage != Vantage::Sender {
        sending.lead_ns = sender_ns;
    }
}

fn of(sender_ns: i64, receiver_ns: i64) -> Vantage {
    let small = |half_ns: i64| {
        half_ns < HOST_NS || (half_ns as f64) < AT_THE_END * (sender_ns + receiver_ns) as f64
    };
    match (small(sender_ns), small(receiver_ns)) {
        (true, true) if sender_ns > receiver_ns => Vantage::Receiver,
        (true, _) => Vantage::Sender,
        (false, true) => Vantage::Receiver,
        (false, false) => Vantage::Middle,
    }
}

/// How sure a vantage is: the further from the thresholds, the surer.
pub fn confidence(sending: &Sending, from: usize, to_ns: [i64; 2]) -> f64 {
    let (sender_ns, receiver_ns) = (to_ns[from], to_ns[1 - from]);
    match sending.vantage {
        Vantage::Unknown => 0.0,
        _ if sender_ns == 0 || receiver_ns == 0 => 0.9,
        vantage => {
            let share = sender_ns.min(receiver_ns) as f64 / (sender_ns + receiver_ns) as f64;
            let middle = vantage == Vantage::Middle;
            let far = if middle {
                share / AT_THE_END
            } else {
                AT_THE_END / share.max(1e-9)
            };
            (1.0 - 0.5 / far.max(1.0)).min(0.99)
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
