//! Equilibria of congestion control algorithms: the queues of delay-based ones, which one yields, and how closely a
//! window tracks what the path holds.

mod compound;
mod cubic_relatives;
mod delay;
mod restart;
mod runs;
