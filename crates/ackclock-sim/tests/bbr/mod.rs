//! BBR through a bottleneck: what its authors say that one sees from outside.

mod bottleneck;
mod version1;
mod version3;
