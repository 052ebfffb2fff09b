//! A discrete-event simulator of transport protocols: every segment, ACK, SYN and FIN.
//!
//! A [`ackclock_plan::Plan`] goes in, [`ackclock_core::tables::Tables`] come out. The simulator reads no clock and no
//! operating-system randomness: the same plan and seed give the same tables.
//!
//! The journey of a packet: a [`sender`] hands it to the first [`link`] of its path, the link's
//! [`queue`] holds it, each further link or delay takes it on, the [`receiver`] answers, and the
//! answer travels back. `simulation` is the only module that schedules anything.

mod datagram;
mod delay_queue;
mod distinct;
mod endpoint;
pub mod external;
mod flow_slots;
mod gateway;
mod histogram;
mod host_delay;
pub mod link;
mod media;
mod network;
pub mod options;
pub mod packet;
mod partition;
mod path;
mod pcap;
pub mod queue;
mod quic;
pub mod receiver;
pub mod routing;
mod rtp;
mod rtt;
pub mod sender;
mod simulation;
mod timing_wheel;
mod tournament_tree;
mod workload;

pub use ackclock_quic::{Stack, StackFailure};
pub use simulation::{Simulation, Stacks, Work};

/// Reason why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No engine can run the plan.
    #[error(transparent)]
    Plan(#[from] ackclock_plan::Error),
    /// Unknown congestion control algorithm or parameters.
    #[error(transparent)]
    Congestion(#[from] ackclock_congestion::Error),
    /// A controller of the engine that a QUIC stack cannot have.
    #[error(transparent)]
    QuicController(#[from] ackclock_quic::ControllerError),
    /// No stack of the user has this name.
    #[error("the packet engine was given no stack \"{0}\"")]
    UnknownStack(String),
    /// No queue discipline has this name.
    #[error("the packet engine has no queue discipline \"{0}\"")]
    UnknownDiscipline(String),
    /// Parameters that differ from those in the algorithm's specification.
    #[error("parameters of \"{algorithm}\": {source}")]
    Parameters {
        /// The algorithm.
        algorithm: String,
        /// Description of the error.
        source: serde_json::Error,
    },
    /// A workload cannot be generated.
    #[error("traffic {index}: {source}")]
    Traffic {
        /// Its number.
        index: usize,
        /// Description of the error.
        source: ackclock_traffic::WorkloadError,
    },
    /// More flows than can be numbered.
    #[error("{count} flows and transfers, but at most {max} are possible")]
    TooManyFlows {
        /// Number of flows.
        count: usize,
        /// Largest possible number.
        max: usize,
    },
    /// No path leads from one node to another.
    #[error("no path leads from \"{source_name}\" to \"{destination_name}\"")]
    Unreachable {
        /// The first node.
        source_name: String,
        /// The other.
        destination_name: String,
    },
}
