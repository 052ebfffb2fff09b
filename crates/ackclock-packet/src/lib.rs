//! A discrete-event simulator of transport protocols: every segment, ACK, SYN and FIN.
//!
//! A [`plan::Plan`] goes in, [`record::Tables`] come out. The simulator reads no clock and no
//! operating-system randomness: the same plan and seed give the same tables.
//!
//! The journey of a packet: a [`sender`] hands it to the first [`link`] of its path, the link's
//! [`queue`] holds it, each further link or delay takes it on, the [`receiver`] answers, and the
//! answer travels back. [`simulation`] is the only module that schedules anything.

pub mod agenda;
pub mod calendar;
pub mod datagram;
pub mod histogram;
pub mod link;
pub mod network;
pub mod options;
pub mod packet;
pub mod path;
pub mod pcap;
pub mod plan;
pub mod queue;
pub mod receiver;
pub mod record;
pub mod routing;
pub mod rtt;
pub mod sender;
pub mod simulation;
pub mod workload;

pub use simulation::Simulation;

/// Why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A congestion control, or its parameters, are not known.
    #[error(transparent)]
    Congestion(#[from] ackclock_congestion::Error),
    /// No queue discipline has this name.
    #[error("the packet engine has no queue discipline \"{0}\"")]
    UnknownDiscipline(String),
    /// The parameters are not those of the algorithm's card.
    #[error("parameters of \"{algorithm}\": {source}")]
    Parameters {
        /// The algorithm.
        algorithm: String,
        /// What is wrong with them.
        source: serde_json::Error,
    },
    /// A flow's group is not there, or names no congestion control.
    #[error("group {0} describes no TCP")]
    NoTcp(u32),
    /// A flow's path names a link that is not there.
    #[error("{what} {index} passes link {link}, but there are {links} links")]
    UnknownLink {
        /// What has the path.
        what: &'static str,
        /// Its number.
        index: usize,
        /// The link its path names.
        link: u32,
        /// How many links there are.
        links: usize,
    },
    /// A flow's data pass no link.
    #[error("{what} {index} passes no link: its path needs at least one")]
    NoLink {
        /// What has the path.
        what: &'static str,
        /// Its number.
        index: usize,
    },
    /// A UDP source cannot be.
    #[error("datagrams {index}: {reason}")]
    Datagrams {
        /// Its number.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A workload cannot be generated.
    #[error("traffic {index}: {source}")]
    Traffic {
        /// Its number.
        index: usize,
        /// What is wrong with it.
        source: ackclock_traffic::WorkloadError,
    },
    /// A change names a link that is not there.
    #[error("a change at {at_s} s names link {link}, but there are {links} links")]
    UnknownLinkChanged {
        /// When.
        at_s: f64,
        /// The link.
        link: u32,
        /// How many links there are.
        links: usize,
    },
    /// A link or a flow names a node that is not there.
    #[error("{what} {index} names node {node}, but there are {nodes} nodes")]
    UnknownNode {
        /// "link" or "flow".
        what: &'static str,
        /// Its number.
        index: usize,
        /// The node.
        node: u32,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A link or a flow leads from a node to the same one.
    #[error("{what} {index} begins and ends at \"{node}\"")]
    SameEnds {
        /// "link" or "flow".
        what: &'static str,
        /// Its number.
        index: usize,
        /// The node.
        node: String,
    },
    /// A flow begins or ends at a switch.
    #[error("{what} {index} begins or ends at \"{node}\", which is not a host")]
    NotAHost {
        /// "flow", "datagrams" or "traffic".
        what: &'static str,
        /// Its number.
        index: usize,
        /// The node.
        node: String,
    },
    /// A flow has both ends to be routed between and paths.
    #[error("{what} {index} has ends and paths: it may have only one of them")]
    EndsAndPaths {
        /// "flow" or "datagrams".
        what: &'static str,
        /// Its number.
        index: usize,
    },
    /// No path leads from one node to another.
    #[error("no path leads from \"{source_name}\" to \"{destination_name}\"")]
    Unreachable {
        /// The first node.
        source_name: String,
        /// The other.
        destination_name: String,
    },
    /// A quantity is beyond what the simulator or a packet can hold.
    #[error("{what} is {found}, but at most {most} is possible")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The largest possible.
        most: u64,
    },
    /// A quantity that must be positive is not.
    #[error("{0} must be greater than zero")]
    NotPositive(&'static str),
}
