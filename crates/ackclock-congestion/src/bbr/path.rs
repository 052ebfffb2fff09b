//! The model of the path, which both versions of BBR have: how fast it delivers, how long it is, whether it is full.

use ackclock_core::Time;
use rand_pcg::Pcg64Mcg;

use crate::Opening;

pub mod aggregation;
pub mod filter;
pub mod full_pipe;
pub mod min_rtt;
pub mod pacing;
pub mod pipe;
pub mod rounds;

use aggregation::Aggregation;
use filter::WindowedMax;
use full_pipe::FullPipe;
use min_rtt::MinRtt;
use pipe::Pipe;
use rounds::{HeldBack, Rounds};

/// The model of the path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub pipe: Pipe,
    pub rounds: Rounds,
    /// Segments per second.
    pub bandwidth: WindowedMax,
    pub min_rtt: MinRtt,
    pub full: FullPipe,
    pub aggregation: Aggregation,
    pub held_back: HeldBack,
}

impl Path {
    /// Create a path model without measurements; for the two times see [`MinRtt::new`].
    pub fn new(initial_window: f64, window_s: f64, interval_s: f64) -> Path {
        Path {
            pipe: Pipe::new(initial_window),
            rounds: Rounds::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: MinRtt::new(Time::from_seconds(window_s), Time::from_seconds(interval_s)),
            full: FullPipe::default(),
            aggregation: Aggregation::default(),
            held_back: HeldBack::default(),
        }
    }

    /// The connection is open.
    pub fn open(&mut self, opening: &Opening) {
        self.pipe.open(opening.mss_bytes);
        self.min_rtt.open(opening.now, opening.srtt);
        self.aggregation.restart(opening.now);
    }

    /// `gain` × `bandwidth` × the smallest RTT, in segments.
    #[inline]
    pub fn volume(&self, bandwidth: f64, gain: f64) -> f64 {
        self.pipe.volume(bandwidth, self.min_rtt.get(), gain)
    }
}

/// The random numbers of a flow.
pub fn random(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::new(u128::from(seed) << 1 | 1)
}
