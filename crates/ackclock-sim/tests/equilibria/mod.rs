//! Where congestion controls settle: the queues that delay-based ones keep, who gives way, and how exactly a
//! window tracks what the path holds.

mod compound;
mod cubic_relatives;
mod delay;
mod restart;
mod runs;
