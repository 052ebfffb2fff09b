//! Window during recovery.
//!
//! Proportional rate reduction (RFC 6937), as Linux refines it and RFC 9937 section 6 has it since: the window comes
//! down to ssthresh in proportion to what the ACKs deliver; below ssthresh it rebuilds one segment for one delivered
//! (conservative), plus one when the ACK also advances and reports no further loss (slow start).
//!
//! Deviation: `RecoverFS` is the window before the reduction, as in Linux.

/// The state of a reduction from `prior_window` to `target` segments.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    target: u32,
    prior_window: u32,
    delivered: u64,
    sent: u64,
}

impl Prr {
    /// Start a reduction.
    pub fn new(target: u32, prior_window: u32) -> Prr {
        Prr {
            target,
            prior_window: prior_window.max(1),
            delivered: 0,
            sent: 0,
        }
    }

    /// Change the target, and keep the counts so far.
    pub fn aim(&mut self, target: u32) {
        self.target = target;
    }

    /// Count segments sent during the reduction.
    pub fn on_sent(&mut self, segments: u64) {
        self.sent += segments;
    }

    /// The window after an ACK that delivered `delivered` segments and left `in_flight`;
    /// `progress`: it advanced and reported no new loss.
    pub fn on_ack(&mut self, delivered: u32, in_flight: u32, progress: bool) -> u32 {
        self.delivered += u64::from(delivered);
        let allowance = if in_flight > self.target {
            self.proportional_bound()
        } else {
            self.slow_start_bound(delivered, progress)
                .min(i64::from(self.target - in_flight))
        };
        // RFC 9937 section 6.2: the first retransmission is never held back.
        let allowance = allowance.max(i64::from(self.sent == 0));
        in_flight + allowance.clamp(0, i64::from(u32::MAX / 2)) as u32
    }

    /// ⌈delivered × target / prior window⌉ − sent.
    fn proportional_bound(&self) -> i64 {
        let share = self.delivered * u64::from(self.target);
        share.div_ceil(u64::from(self.prior_window)) as i64 - self.sent as i64
    }

    fn slow_start_bound(&self, delivered: u32, progress: bool) -> i64 {
        let conservation = self.delivered as i64 - self.sent as i64;
        conservation.max(i64::from(delivered)) + i64::from(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 section 3.1, the first example: 20 segments in flight, the first one lost, Reno halves to 10.
    #[test]
    fn one_segment_goes_out_for_two_delivered() {
        let mut prr = Prr::new(10, 20);
        let mut in_flight = 19; // the lost one deducted
        let mut sent = 0;
        for _ in 0..18 {
            in_flight -= 1;
            let window = prr.on_ack(1, in_flight, false);
            while in_flight < window {
                in_flight += 1;
                sent += 1;
                prr.on_sent(1);
            }
        }
        assert_eq!(sent, 9);
        assert_eq!(in_flight, 10);
    }

    /// RFC 9937 section 6.2, step by step: ssthresh 5, `RecoverFS` 10. Each row has
    /// `DeliveredData`, pipe, whether the ACK is safe, and the window: pipe + `SndCnt`.
    #[test]
    fn the_steps_of_the_algorithm() {
        let rows = [
            // pipe > ssthresh: ⌈1 × 5/10⌉ − 0 = 1, which is sent.
            (1, 8, false, 9),
            // ⌈2 × 5/10⌉ − 1 = 0.
            (1, 8, true, 8),
            // ⌈5 × 5/10⌉ − 1 = 2, which are sent.
            (3, 6, false, 8),
            // pipe ≤ ssthresh: max(6 − 3, 1) = 3, but no more than ssthresh − pipe = 1.
            (1, 4, false, 5),
            // max(8 − 4, 2) = 4 of ssthresh − pipe = 5.
            (2, 0, false, 4),
            // max(9 − 8, 1) = 1, and one more for a safe ACK.
            (1, 3, true, 5),
        ];
        let mut prr = Prr::new(5, 10);
        for (delivered, pipe, safe, expected) in rows {
            let window = prr.on_ack(delivered, pipe, safe);
            assert_eq!(window, expected, "{delivered} {pipe} {safe}");
            for _ in pipe..window {
                prr.on_sent(1);
            }
        }
    }

    #[test]
    fn after_heavy_loss_it_rebuilds_one_for_one_and_faster_with_progress() {
        let mut prr = Prr::new(10, 20);
        assert_eq!(prr.on_ack(1, 4, false), 5);
        prr.on_sent(1);
        assert_eq!(prr.on_ack(1, 4, true), 6);
        assert_eq!(prr.on_ack(9, 4, true), 10, "never above ssthresh");
    }
}
