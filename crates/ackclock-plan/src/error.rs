//! Errors in a plan.

use ackclock_traffic::WorkloadError;

/// Reason why no engine can run a plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flow's group is not there, or names no congestion control.
    #[error("group {0} describes no TCP")]
    NoTcp(u32),
    /// A flow's path names a link that is not there.
    #[error("{subject} {index} passes link {link}, but there are {links} links")]
    UnknownLink {
        /// Kind of object that has the path.
        subject: &'static str,
        /// Its number.
        index: usize,
        /// The link its path names.
        link: u32,
        /// Number of links.
        links: usize,
    },
    /// A flow's data pass no link.
    #[error("{subject} {index} passes no link: its path needs at least one")]
    NoLink {
        /// Kind of object that has the path.
        subject: &'static str,
        /// Its number.
        index: usize,
    },
    /// A UDP source cannot be.
    #[error("datagrams {index}: {reason}")]
    Datagrams {
        /// Its number.
        index: usize,
        /// Description of the error.
        reason: String,
    },
    /// A capture is to be written at a link that is not there.
    #[error("a capture is to be written at link {0:?}, which is not there")]
    UnknownLinkCaptured(String),
    /// A change names a link that is not there.
    #[error("a change at {at_s} s names link {link}, but there are {links} links")]
    UnknownLinkChanged {
        /// Time of the change.
        at_s: f64,
        /// The link.
        link: u32,
        /// Number of links.
        links: usize,
    },
    /// A link or a flow names a node that is not there.
    #[error("{subject} {index} names node {node}, but there are {nodes} nodes")]
    UnknownNode {
        /// "link" or "flow".
        subject: &'static str,
        /// Its number.
        index: usize,
        /// The node.
        node: u32,
        /// Number of nodes.
        nodes: usize,
    },
    /// A link or a flow leads from a node to the same one.
    #[error("{subject} {index} begins and ends at \"{node}\"")]
    SameEnds {
        /// "link" or "flow".
        subject: &'static str,
        /// Its number.
        index: usize,
        /// The node.
        node: String,
    },
    /// A flow begins or ends at a switch.
    #[error("{subject} {index} begins or ends at \"{node}\", which is not a host")]
    NotAHost {
        /// "flow", "datagrams" or "traffic".
        subject: &'static str,
        /// Its number.
        index: usize,
        /// The node.
        node: String,
    },
    /// A flow has both ends to be routed between and paths.
    #[error("{subject} {index} has ends and paths: it may have only one of them")]
    EndsAndPaths {
        /// "flow" or "datagrams".
        subject: &'static str,
        /// Its number.
        index: usize,
    },
    /// A quantity exceeds what an engine or a packet can hold.
    #[error("{subject} is {value}, but at most {max} is possible")]
    TooLarge {
        /// The quantity.
        subject: &'static str,
        /// Its value.
        value: u64,
        /// The largest possible.
        max: u64,
    },
    /// The host processing delay is no valid distribution.
    #[error("processing: {0}")]
    Processing(WorkloadError),
    /// A quantity that must be positive is not.
    #[error("{0} must be greater than zero")]
    NotPositive(&'static str),
}
