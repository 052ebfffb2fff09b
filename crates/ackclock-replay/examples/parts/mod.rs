//! What a sender's side capture shows, as series: the little that the example needs of the analysis of connections.

pub mod tracker;
pub mod truth;
