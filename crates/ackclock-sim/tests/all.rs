//! The integration tests, in one program: the simulator is linked once, not once for each group.

mod bbr;
mod contract;
mod conversations;
mod equilibria;
mod kit;
mod networks;
mod properties;
mod queues;
mod traffic;
