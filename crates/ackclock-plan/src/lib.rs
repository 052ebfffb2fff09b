//! Plan of a run: complete numbers in SI units, without defaults.
//!
//! A plan arrives as JSON; it is what engines need of the frozen plan that `ackclock run --dry-run` prints. Every
//! default has been filled in from the algorithm specs before it comes here, so each field is required (`null` where
//! a quantity is absent) and an unknown field is an error.

mod checks;
mod datagrams;
mod error;
mod flows;
mod network;
mod plan;
mod quic;
mod record;
mod tcp;
mod trace;
mod traffic;
mod wire;

pub use ackclock_traffic::DatagramSource;
pub use datagrams::{FeedbackTrigger, MediaPlan, SourcePlan};
pub use error::Error;
pub use flows::{DatagramPlan, FlowPlan};
pub use network::{
    ChangePlan, Distribution, EcnRewrite, EndsPlan, HopPlan, ImpairmentPlan, JitterPlan, LinkPlan,
    LossPlan, NodePlan, PathPairPlan, PathPlan, QueuePlan, Routing, Tunnel,
};
pub use plan::Plan;
pub use quic::{QuicCongestion, QuicPlan, QuicStack, StackCongestion, StackPlan};
pub use record::{PcapPlan, RecordPlan, Vantage};
pub use tcp::{
    CongestionPlan, DelayedAck, EcnMode, GroupPlan, LossDetection, Misbehaviour, Reduction,
    RttSampling, TcpPlan, TIMESTAMPS_BYTES,
};
pub use trace::{CoursePlan, TracePlan};
pub use traffic::{PopulationPlan, TrafficPlan};
