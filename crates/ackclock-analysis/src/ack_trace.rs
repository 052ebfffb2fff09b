//! Traces of flows' windows, one sample for each acknowledgement: the input of the identification of CCAs.
//!
//! Memory is bounded: there is room for so many samples, of one flow and of all together. A flow in which nothing was
//! lost when it is over, or rests, frees its room; of those that are over the longest are kept.

pub use ackclock_core::tcp::ack_trace::{CaState, Signal};

/// Samples of a flow: with four times as many no control is named better. Of one that lost nothing in so many, later
/// ones.
pub const MAX_FLOW_SAMPLES: usize = 1 << 14;
/// Samples of all flows: 16 MB of them.
pub const MAX_SAMPLES: usize = 1 << 18;
/// Flows that are over and kept: more than anybody reads one by one.
pub const MAX_FLOWS: usize = 32;

/// Marks of an acknowledgement that reports all that it delivers as marked.
pub const ALL_MARKED: u8 = u8::MAX;

/// An acknowledgement at the sender, and what it sent then. Counts are of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckSample {
    /// When it reached the sender.
    pub time_ns: i64,
    /// When the oldest segment that is outstanding thereafter was first sent.
    pub oldest_sent_ns: i64,
    /// RTT of the newest segment that it delivers; None if any of them was sent more than once.
    pub rtt_ns: Option<u32>,
    /// RTT of the oldest.
    pub oldest_rtt_ns: Option<u32>,
    /// Bytes delivered, in order or not.
    pub delivered_bytes: u32,
    /// Bytes by which the cumulative acknowledgement advances.
    pub advanced_bytes: u32,
    /// The pipe before it.
    pub prior_in_flight_bytes: u32,
    /// The pipe after it, before it lets anything go.
    pub in_flight_bytes: u32,
    /// The pipe at most until the next sample.
    pub window_bytes: u32,
    /// From what is acknowledged to what is next, before it lets anything go.
    pub outstanding_bytes: u32,
    /// It is a duplicate, or has SACK blocks.
    pub selective: bool,
    /// The packets that it reports as marked.
    pub marks: u8,
    /// The application or the receiver holds the sender back.
    pub not_cwnd_limited: bool,
    /// Why the window comes down.
    pub signal: Option<Signal>,
    /// The congestion state of the sender.
    pub ca_state: CaState,
}

/// The samples of a direction with data.
#[derive(Clone, Debug, Default)]
pub struct AckTrace {
    /// Its number.
    pub flow: u32,
    /// Its segments' size.
    pub mss_bytes: u32,
    /// Segments that were sent before anything was acknowledged; None if the capture begins later.
    pub initial_window: Option<u32>,
    /// The RTT of the handshake, if that was captured.
    pub handshake_ns: Option<i64>,
    /// Its packets carry ECT(1) (see [`crate::identify::series::Series::is_l4s`]).
    pub is_l4s: bool,
    /// In the order of time.
    pub samples: Vec<AckSample>,
}

/// The samples that are kept of all flows.
#[derive(Debug)]
pub struct AckTraces {
    room: usize,
    /// Traces of finished flows.
    pub flows: Vec<AckTrace>,
}

impl AckTraces {
    /// With room for at most so many samples.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            flows: Vec::new(),
        }
    }

    /// Return true if traces are recorded.
    pub fn is_enabled(&self) -> bool {
        self.room > 0
    }

    /// Take room for a sample, if there is any.
    #[inline]
    pub fn take_room(&mut self) -> bool {
        let left = self.room > 0;
        self.room -= usize::from(left);
        left
    }

    /// Free the room of samples.
    pub fn give_room(&mut self, samples: usize) {
        self.room += samples;
    }

    /// Keep a flow that is over; of too many, drop the shortest.
    pub fn keep(&mut self, flow: AckTrace) {
        self.flows.push(flow);
        if self.flows.len() <= MAX_FLOWS {
            return;
        }
        let shortest = (0..self.flows.len()).min_by_key(|&index| self.flows[index].samples.len());
        if let Some(index) = shortest {
            let evicted = self.flows.remove(index);
            self.give_room(evicted.samples.len());
        }
    }
}

impl Default for AckTraces {
    fn default() -> Self {
        Self::new(MAX_SAMPLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flow: u32, samples: usize) -> AckTrace {
        let sample = AckSample {
            time_ns: 0,
            oldest_sent_ns: 0,
            rtt_ns: None,
            oldest_rtt_ns: None,
            delivered_bytes: 0,
            advanced_bytes: 0,
            prior_in_flight_bytes: 0,
            in_flight_bytes: 0,
            window_bytes: 0,
            outstanding_bytes: 0,
            selective: false,
            marks: 0,
            not_cwnd_limited: false,
            signal: None,
            ca_state: CaState::Open,
        };
        AckTrace {
            flow,
            samples: vec![sample; samples],
            ..AckTrace::default()
        }
    }

    #[test]
    fn the_longest_traces_are_kept_and_the_others_free_their_samples() {
        let mut kept = AckTraces::new(1000);
        for number in 0..40 {
            for _ in 0..number {
                assert!(kept.take_room());
            }
            kept.keep(of(number, number as usize));
        }
        let numbers: Vec<u32> = kept.flows.iter().map(|flow| flow.flow).collect();
        assert_eq!(numbers, (8..40).collect::<Vec<_>>());
        assert_eq!(kept.room, 1000 - (8..40).sum::<usize>());
    }

    #[test]
    fn the_number_of_samples_is_bounded() {
        let mut kept = AckTraces::new(1);
        assert!(kept.take_room());
        assert!(!kept.take_room());
    }

    #[test]
    fn samples_fit_the_memory_bound() {
        assert!(MAX_SAMPLES * size_of::<AckSample>() <= 40 << 20);
    }
}
