//! Random streams from a seed and an index, as the packet simulator has them.

use ackclock_core::random::unit_interval;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// The index of the stream that says how many flows an event hits.
pub const SYNCHRONISATION: u64 = 1 << 32;
/// The index of the stream that orders the flows.
pub const VICTIMS: u64 = 2 << 32;
/// The index of the stream of early drops.
pub const EARLY: u64 = 3 << 32;

/// A stream of random numbers that depends on the seed and an index alone.
pub fn stream(seed: u64, index: u64) -> Pcg64Mcg {
    let mut stream = Pcg64Mcg::new((u128::from(seed) << 64 | u128::from(index)) << 1 | 1);
    stream.next_u64();
    stream.next_u64();
    stream
}

/// A uniform draw from [0, 1) that depends on the seed and an index alone.
pub fn uniform(seed: u64, index: u64) -> f64 {
    unit_interval(stream(seed, index).next_u64())
}
