//! Responses of a sender to acknowledgements: how soon data follow one that ends a pause.

/// Shortest pause before an acknowledgement whose response is timed: far above what a host takes to respond.
const MIN_PAUSE_NS: i64 = 1_000_000;
/// A response is prompt if the pause before the acknowledgement was so many times as long: data that pass at times of
/// their own follow so soon once in sixteen times.
const PROMPTNESS: i64 = 16;

/// Minimum number of prompt responses.
const MIN_RESPONSES: u64 = 16;

/// Times from acknowledgements that end a pause to the first data after them.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckResponses {
    /// The pause before the last acknowledgement, until data follow.
    pause_ns: i64,
    responses: u64,
    prompt: u64,
    min_ns: i64,
}

impl AckResponses {
    /// An acknowledgement was captured, so long after the last packet of the connection.
    #[inline]
    pub fn on_ack(&mut self, pause_ns: i64) {
        self.pause_ns = self.pause_ns.max(pause_ns);
    }

    /// Data were captured, so long after the last acknowledgement.
    #[inline]
    pub fn on_data(&mut self, after_ns: i64) {
        let pause_ns = std::mem::take(&mut self.pause_ns);
        if pause_ns < MIN_PAUSE_NS {
            return;
        }
        self.responses += 1;
        if after_ns.saturating_mul(PROMPTNESS) < pause_ns {
            self.min_ns = if self.prompt == 0 {
                after_ns
            } else {
                self.min_ns.min(after_ns)
            };
            self.prompt += 1;
        }
    }

    /// The round-trip time to the sender, if three responses of four are prompt.
    pub fn sender_side_ns(&self) -> Option<i64> {
        let prompt = self.prompt >= MIN_RESPONSES && 4 * self.prompt >= 3 * self.responses;
        prompt.then_some(self.min_ns.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data and acknowledgements after pauses of 20 ms: each response comes `after_ns(number)` later.
    fn responses(after_ns: impl Fn(i64) -> i64) -> AckResponses {
        let mut responses = AckResponses::default();
        for number in 0..100 {
            responses.on_ack(20_000_000);
            responses.on_data(after_ns(number));
        }
        responses
    }

    #[test]
    fn prompt_responses_show_the_sender() {
        let host = responses(|number| 20_000 + 100 * number);
        assert_eq!(host.sender_side_ns(), Some(20_000));
        // An application writes at times of its own in a quarter of the cases.
        let idle = responses(|number| if number % 4 == 0 { 9_000_000 } else { 30_000 });
        assert_eq!(idle.sender_side_ns(), Some(30_000));
    }

    #[test]
    fn data_at_times_of_their_own_show_no_sender() {
        let between = responses(|number| number * 200_000);
        assert_eq!(between.sender_side_ns(), None);
        let mut dense = AckResponses::default();
        for _ in 0..100 {
            dense.on_ack(MIN_PAUSE_NS / 2);
            dense.on_data(10_000);
        }
        assert_eq!(dense.sender_side_ns(), None, "no pauses");
        let mut few = responses(|_| 50_000);
        few.prompt = MIN_RESPONSES - 1;
        assert_eq!(few.sender_side_ns(), None);
    }
}
