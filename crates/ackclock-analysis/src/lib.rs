//! Analysis of packet captures: from the packets that [`ackclock_pcap`] reads to connections of TCP ([`connections`],
//! [`flow`]) and flows of UDP ([`udp`]), the limits of their paths ([`path`]) and the results ([`analysis`], [`tables`]).

pub mod ack_trace;
pub mod analysis;
pub mod capture_gap;
pub mod connections;
pub mod flow;
pub mod icmp;
pub mod identify;
pub mod output;
pub mod path;
pub mod series;
pub mod shared_bottleneck;
pub mod tables;
pub mod top_talkers;
pub mod udp;
