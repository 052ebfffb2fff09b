//! What a plan may not say.

use ackclock_traffic::WorkloadError;

/// Why no engine could carry a plan out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    /// A capture is to be written at a link that is not there.
    #[error("a capture is to be written at link {0:?}, which is not there")]
    UnknownLinkCaptured(String),
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
    /// A quantity is beyond what an engine or a packet can hold.
    #[error("{what} is {found}, but at most {most} is possible")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The largest possible.
        most: u64,
    },
    /// What a host takes for a packet is no distribution.
    #[error("processing: {0}")]
    Processing(WorkloadError),
    /// A quantity that must be positive is not.
    #[error("{0} must be greater than zero")]
    NotPositive(&'static str),
}
