//! BBR through a bottleneck: what its authors say that one sees from outside.

#[path = "../kit/mod.rs"]
mod kit;

mod bottleneck;
mod version1;
mod version3;
