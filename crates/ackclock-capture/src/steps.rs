//! What flows' windows did, acknowledgement by acknowledgement: what tells which congestion control it was.
//!
//! Memory is bounded: there is room for so many steps, of one flow and of all together. A flow in which nothing was lost
//! when it is over, or rests, gives its room back; of those that are over the longest are kept.

pub use ackclock_core::tcp::ack_trace::{Phase, Signal};

/// Steps of a flow: with four times as many no control is named better. Of one that lost nothing in so many, later ones.
pub const MOST_OF_A_FLOW: usize = 1 << 14;
/// Steps of all flows: 16 MB of them.
pub const MOST: usize = 1 << 18;
/// Flows that are over and kept: more than anybody reads one by one.
pub const MOST_FLOWS: usize = 32;

/// An acknowledgement at the sender, and what it sent then. Counts are of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it was heard.
    pub time_ns: i64,
    /// When the oldest segment that is outstanding thereafter was first sent.
    pub oldest_sent_ns: i64,
    /// RTT of the newest segment that it delivers; None if any of them was sent more than once.
    pub rtt_ns: Option<u32>,
    /// RTT of the oldest.
    pub oldest_rtt_ns: Option<u32>,
    /// What it delivers, in order or not.
    pub delivered_bytes: u32,
    /// By how much it advances.
    pub advanced_bytes: u32,
    /// The pipe before it.
    pub prior_in_flight_bytes: u32,
    /// The pipe after it, before it lets anything go.
    pub in_flight_bytes: u32,
    /// The pipe at most until the next step.
    pub window_bytes: u32,
    /// From what is acknowledged to what is next, before it lets anything go.
    pub outstanding_bytes: u32,
    /// It is a duplicate, or has SACK blocks.
    pub selective: bool,
    /// It reports marks.
    pub marked: bool,
    /// The application or the receiver holds the sender back.
    pub limited_elsewhere: bool,
    /// Why the window comes down.
    pub signal: Option<Signal>,
    /// What is being repaired.
    pub phase: Phase,
}

/// The steps of a direction with data.
#[derive(Clone, Debug, Default)]
pub struct FlowSteps {
    /// Its number.
    pub flow: u32,
    /// Its segments' size.
    pub mss_bytes: u32,
    /// Segments that were sent before anything was acknowledged; None if the capture begins later.
    pub initial_window: Option<u32>,
    /// The RTT of the handshake, if that was captured.
    pub handshake_ns: Option<i64>,
    /// In the order of time.
    pub steps: Vec<Step>,
}

/// The steps that are kept of all flows.
#[derive(Debug)]
pub struct Kept {
    room: usize,
    /// Of flows that are over.
    pub flows: Vec<FlowSteps>,
}

impl Kept {
    /// With room for at most so many steps.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            flows: Vec::new(),
        }
    }

    /// Whether any are wanted.
    pub fn wanted(&self) -> bool {
        self.room > 0
    }

    /// Takes room for a step, if there is any.
    #[inline]
    pub fn take_room(&mut self) -> bool {
        let left = self.room > 0;
        self.room -= usize::from(left);
        left
    }

    /// Gives room back.
    pub fn give_room(&mut self, steps: usize) {
        self.room += steps;
    }

    /// Keeps a flow that is over; of too many the shortest goes.
    pub fn keep(&mut self, flow: FlowSteps) {
        self.flows.push(flow);
        if self.flows.len() <= MOST_FLOWS {
            return;
        }
        let shortest = (0..self.flows.len()).min_by_key(|&index| self.flows[index].steps.len());
        if let Some(index) = shortest {
            let gone = self.flows.remove(index);
            self.give_room(gone.steps.len());
        }
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::new(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flow: u32, steps: usize) -> FlowSteps {
        let step = Step {
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
            marked: false,
            limited_elsewhere: false,
            signal: None,
            phase: Phase::Open,
        };
        FlowSteps {
            flow,
            steps: vec![step; steps],
            ..FlowSteps::default()
        }
    }

    #[test]
    fn the_longest_are_kept_and_the_others_give_their_room_back() {
        let mut kept = Kept::new(1000);
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
    fn there_is_room_for_so_many() {
        let mut kept = Kept::new(1);
        assert!(kept.take_room());
        assert!(!kept.take_room());
    }

    #[test]
    fn a_step_is_as_large_as_the_bound_on_memory_says() {
        assert!(MOST * size_of::<Step>() <= 40 << 20);
    }
}
