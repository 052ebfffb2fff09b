//! Identification of the CCA that a flow used.
//!
//! A capture shows when what was acknowledged, lost and sent. Every controller of `ackclock-congestion` is driven with
//! just that ([`replay`]), and its window is compared with the observed one ([`likelihood`]).
//! What comes of it is a [`ranking`] with probabilities, in which "unknown" has its place.
//!
//! In addition, [`features`] lists what people look for in each congestion epoch.
//!
//! What it needs of a flow is a [`series`], which names no capture: it can come of one, of a run or of a log.
//!
//! Indistinguishable candidates stay tied: where the window stays below their thresholds several CCAs *are* Reno, and
//! DCTCP without marks, LP without delay or Vegas without enough samples a round trip as well. Then the likelihoods are
//! the same, and the one that is more common has the greater probability.

pub mod features;
pub mod likelihood;
mod pacing;
pub mod ranking;
pub mod replay;
pub mod series;
#[cfg(test)]
mod testing;
