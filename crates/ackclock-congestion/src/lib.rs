//! Congestion control algorithms (CCAs).
//!
//! A controller is a pure state machine. Time and measurements come in with each call; it reads no
//! clock and draws random numbers only from the seed in [`Opening`]. Loss detection and transmission during
//! recovery belong to the sender.
//!
//! The dependencies enforce this: units, parameters as JSON, random numbers from a seed; no network, no simulator, no
//! file, no clock.
//!
//! To add a CCA: a file here, an algorithm spec in the catalog, and its name in `controllers!`.

use ackclock_core::jiffies::JiffyClock;
use ackclock_core::{Rate, Time};
use serde::de::Error as _;
use serde_json::Value;

pub mod agent;
pub mod base_delay;
pub mod ca_state;
pub mod contract;
pub mod detector;
pub mod fractional_window;
pub mod hystart;
pub mod hystart_plus_plus;
mod prototype;
pub mod realtime;
mod registry;
pub mod round;
pub mod search;
pub mod slow_start;
pub mod window;

/// Declare the modules and list them in [`CONTROLLERS`].
macro_rules! controllers {
    ($($name:ident,)*) => {
        $(pub mod $name;)*

        /// All CCAs: the name as in `sysctl`, and the factory.
        pub const CONTROLLERS: &[(&str, ControllerFactory)] = &[$((stringify!($name), $name::make)),*];
    };
}

controllers! {
    abcc,
    accucubic,
    aimd,
    bbr,
    bbr3,
    bic,
    compound,
    cubic,
    dctcp,
    fast,
    highspeed,
    htcp,
    hybla,
    illinois,
    ledbat,
    lincubic,
    prague,
    reno,
    scalable,
    tahoe,
    vegas,
    westwood,
}

/// The algorithm of CONTRIBUTING.md's walk-through.
#[cfg(test)]
mod walkthrough;

/// The template of `ackclock new control`.
#[cfg(test)]
#[path = "../../../python/ackclock/scaffold/templates/control.rs"]
mod template;

use detector::Steer;
pub use prototype::{CloneBox, Prototype};
pub use registry::{register, Factory};

/// An acknowledgement as reported to the controller. Windows and counts are in segments.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Ack {
    /// The sender's clock.
    pub now: Time,
    /// Segments delivered by this ACK, cumulatively or selectively, for the first time.
    pub newly_acked: u32,
    /// Payload bytes of them.
    pub newly_acked_bytes: u64,
    /// True if it may raise a window (Linux's `tcp_may_raise_cwnd`): the cumulative acknowledgement advanced; or, once
    /// reordering was detected on the path, anything was delivered.
    pub may_raise_cwnd: bool,
    /// Segments by which the cumulative acknowledgement advanced, including those sacked before.
    pub cumulatively_acked: u32,
    /// True if it carries SACK blocks.
    pub has_sack: bool,
    /// True if it advertises a larger receive window than the one before.
    pub window_update: bool,
    /// RTT of the newest segment delivered by this ACK, if it was sent only once.
    pub rtt: Option<Time>,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Time,
    /// Smallest RTT seen; [`Time::NEVER`] before the first sample.
    pub min_rtt: Time,
    /// Segments in flight before this ACK was processed.
    pub prior_in_flight: u32,
    /// Segments in flight after it.
    pub in_flight: u32,
    /// Delivery rate over the last flight (Linux's `rate_sample`); `None` if it cannot be measured.
    pub delivery_rate: Option<Rate>,
    /// Segments delivered over the connection's life, this ACK included.
    pub delivered: u64,
    /// Value of `delivered` when the newest delivered segment was sent; it separates round trips.
    pub prior_delivered: u64,
    /// True if the delivery-rate sample was limited by the application.
    pub application_limited: bool,
    /// True if the window, and not the application or the receiver, limited the sender.
    pub window_limited: bool,
    /// Segments marked lost with this ACK.
    pub newly_lost: u32,
    /// Payload bytes that the ACK's ECN feedback reports as marked.
    pub marked_bytes: u64,
    /// Next segment to be sent for the first time.
    pub next: u64,
    /// First segment not cumulatively acknowledged.
    pub unacknowledged: u64,
    /// True if the sender is in fast recovery or reduces its window for ECN marks; a window that reacts once per
    /// episode must not grow then. After a timeout the sender is in slow start, not in fast recovery.
    pub recovering: bool,
    /// True while the segments that a timeout marked lost are being retransmitted (Linux's `TCP_CA_Loss`).
    pub in_loss: bool,
    /// True if the sender is paced.
    pub paced: bool,
    /// The departure time that pacing sets for the next segment; not later than now if it may leave at once.
    pub next_departure: Time,
}

/// The start of a recovery episode: fast recovery, a tail loss that a probe retransmitted, or an ECN reaction.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The sender's clock.
    pub now: Time,
    /// Segments in flight when the loss was detected, lost segments included.
    pub in_flight: u32,
    /// Smoothed RTT.
    pub srtt: Time,
    /// Smallest RTT seen.
    pub min_rtt: Time,
    /// Segments delivered over the connection's life.
    pub delivered: u64,
    /// True if an ECN mark, and not a loss, is the reason.
    pub marked: bool,
}

/// The window and threshold before a reduction, in segments.
#[derive(Clone, Copy, Debug)]
pub struct PriorWindow {
    /// The window.
    pub cwnd: f64,
    /// The threshold, but at least three quarters of the window.
    pub ssthresh: f64,
}

/// The ECN feedback of an ACK.
#[derive(Clone, Copy, Debug)]
pub struct EcnFeedback {
    /// Segments delivered.
    pub delivered: u32,
    /// Segments reported as marked.
    pub marked: u32,
    /// Next segment to be sent for the first time.
    pub next: u64,
    /// First segment not cumulatively acknowledged.
    pub unacknowledged: u64,
}

/// A restart of transmission after the sender had nothing in flight.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// The sender's clock.
    pub now: Time,
    /// When the last segment was sent.
    pub idle_since: Time,
    /// Retransmission timeout.
    pub rto: Time,
    /// Initial window of the connection, in segments.
    pub initial_window: u32,
}

/// The state of a connection when it is established.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The sender's clock.
    pub now: Time,
    /// Smoothed RTT, from the handshake; zero if the SYN was sent more than once.
    pub srtt: Time,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// A number of this flow in this run, for randomized controllers.
    pub seed: u64,
}

/// CUBIC's internal state in segments, named as in RFC 9438; `count` and the smallest RTT are Linux's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicState {
    /// The target window: for Linux, the curve one smallest RTT ahead.
    pub target: f64,
    /// The curve now.
    pub w_cubic: f64,
    /// The window at the last loss, or less by fast convergence; none before it.
    pub w_max: Option<f64>,
    /// The plateau of the curve.
    pub origin: f64,
    /// K: seconds from the start of the curve to its plateau.
    pub k_s: f64,
    /// The window that a Reno sender would have.
    pub w_est: f64,
    /// Acknowledged segments per increment, where windows are whole segments.
    pub count: Option<f64>,
    /// The smallest RTT so far.
    pub min_rtt: Option<Time>,
}

/// The internal state of a controller by the names of its specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Variables {
    /// The state of its state machine.
    pub state: &'static str,
    /// The other variables.
    pub values: Vec<(&'static str, f64)>,
}

/// The component that limits transmission during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPolicy {
    /// The stack, by its algorithm spec: proportional rate reduction, or an immediate reduction to ssthresh.
    Stack,
    /// The controller: its window applies in every state, and it handles ECN marks itself.
    Controller,
    /// Slow start: a loss marks everything outstanding as lost, to be retransmitted from the controller's window.
    SlowStart,
}

/// A congestion control algorithm. Windows are in segments and never below 1.
pub trait Controller: Send + Sync + CloneBox {
    /// Process an acknowledgement, in any state.
    fn on_ack(&mut self, ack: &Ack);
    /// Process an ACK's ECN feedback, where ECN is in use: called before [`Controller::on_loss`] and
    /// [`Controller::on_ack`], for controllers that measure the fraction of marked segments.
    fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        let _ = feedback;
    }
    /// Begin a recovery episode: one call per episode. Afterwards, [`Controller::cwnd`] and
    /// [`Controller::ssthresh`] are the target of the sender's reduction.
    fn on_loss(&mut self, loss: &Loss);
    /// React to a loss that is detected during the ECN reaction of the same round trip. Linux does not reduce again.
    fn on_loss_after_mark(&mut self, loss: &Loss) {
        let _ = loss;
    }
    /// End a fast recovery or a reaction to marks: called before the other events of the same ACK, which may include
    /// the next loss. `rtt` is that ACK's [`Ack::rtt`].
    fn on_recovered(&mut self, now: Time, rtt: Option<Time>) {
        let _ = (now, rtt);
    }
    /// Set up for an established connection: the first call, if it is made.
    fn on_established(&mut self, opening: &Opening) {
        let _ = opening;
    }
    /// React to an expired retransmission timer: the window restarts from one segment. `in_flight` is in segments, lost
    /// segments included.
    fn on_timeout(&mut self, now: Time, in_flight: u32);
    /// React to the backed-off repetition of a timeout. As in Linux, only the window changes, back to one segment; only
    /// a controller whose window grows without new acknowledgements has to implement it.
    fn on_repeated_timeout(&mut self) {}
    /// Undo the reduction of a spurious loss or timeout (RFC 4015 section 3): restore the window and threshold unless
    /// they have grown larger since, and end the episode. A controller that does not reduce its window has nothing to
    /// do.
    fn undo(&mut self, before: &PriorWindow) {
        let _ = before;
    }
    /// React to the end of an idle time (RFC 5681 section 4.1).
    fn on_restart(&mut self, restart: &Restart) {
        let _ = restart;
    }
    /// Grow in slow start as a detector says, or leave it: for a controller whose algorithm spec has `slow_start`.
    fn steer_slow_start(&mut self, steer: Steer) {
        let _ = steer;
    }
    /// Set the window, in segments, and the pacing rate from outside the engine. Returns false, and changes nothing, for
    /// a controller that sets its own: all but the [`agent`].
    fn set_window(&mut self, cwnd: f64, rate: Option<Rate>) -> bool {
        let _ = (cwnd, rate);
        false
    }
    /// Return true while RTT samples still show the queue of the last loss, and count for nothing.
    fn discards_rtt(&self, now: Time) -> bool {
        let _ = now;
        false
    }
    /// Return the congestion window.
    fn cwnd(&self) -> f64;
    /// Return the slow start threshold; infinite until the first loss.
    fn ssthresh(&self) -> f64;
    /// Return which component limits transmission during recovery.
    fn recovery_policy(&self) -> RecoveryPolicy {
        RecoveryPolicy::Stack
    }
    /// Return true if the sender must pace, whatever the stack's default is.
    fn requires_pacing(&self) -> bool {
        false
    }
    /// Return the internal state of CUBIC and its variants in congestion avoidance.
    fn cubic_state(&self, now: Time) -> Option<CubicState> {
        let _ = now;
        None
    }
    /// Return the internal state, for the test cases of a specification; `None` where none has been needed.
    fn variables(&self) -> Option<Variables> {
        None
    }
    /// Return the minimum number of segments in a TSO batch (Linux's `min_tso_segs`).
    fn min_tso_segs(&self) -> u32 {
        2
    }
    /// Return the binary logarithm of the TSO batches that a pacing rate fills in a second (Linux's `sk_pacing_shift`).
    fn pacing_shift(&self) -> u32 {
        10
    }
    /// Return the pacing rate of the payload, if the controller sets one.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// A controller, or the error in its parameters.
pub type Made = Result<Box<dyn Controller>, serde_json::Error>;

/// Creates a controller from its complete parameters and the initial window in segments.
pub type ControllerFactory = fn(&Value, f64) -> Made;

/// An error when creating a controller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No controller has this name.
    #[error("no congestion control algorithm is called \"{0}\"")]
    Unknown(String),
    /// A controller cannot be registered by this name.
    #[error("\"{0}\" is the name of an algorithm of this engine")]
    Taken(String),
    /// The parameters are not those of the algorithm spec.
    #[error("parameters of \"{kind}\": {source}")]
    Parameters {
        /// The CCA's name.
        kind: String,
        /// The error in them.
        source: serde_json::Error,
    },
}

/// Create a controller by name: one of [`CONTROLLERS`], or one that was registered.
///
/// # Errors
/// An unknown name, or parameters that are not those of its algorithm spec.
pub fn make(
    kind: &str,
    parameters: &Value,
    initial_window: u32,
) -> Result<Box<dyn Controller>, Error> {
    let window = f64::from(initial_window);
    let made = compiled(kind)
        .map(|factory| factory(parameters, window))
        .or_else(|| registry::registered(kind).map(|factory| factory(parameters, window)))
        .ok_or_else(|| Error::Unknown(kind.to_owned()))?;
    made.map_err(|source| Error::Parameters {
        kind: kind.to_owned(),
        source,
    })
}

/// Return the factory of a controller of this crate: one of [`CONTROLLERS`], or the agent, which no scenario names.
fn compiled(kind: &str) -> Option<ControllerFactory> {
    let agent: (&str, ControllerFactory) = (agent::NAME, agent::make);
    let mut all = CONTROLLERS.iter().chain([&agent]);
    all.find(|(name, _)| *name == kind)
        .map(|(_, factory)| *factory)
}

/// Reject parameters that violate a condition.
fn require(condition: bool, otherwise: &str) -> Result<(), serde_json::Error> {
    if condition {
        Ok(())
    } else {
        Err(serde_json::Error::custom(otherwise))
    }
}

/// Make the kernel's clock with jiffies of length `tick`, the parameter of an algorithm that measures in jiffies.
fn jiffy_clock(tick: Time) -> Result<JiffyClock, serde_json::Error> {
    JiffyClock::new(tick).ok_or_else(|| {
        serde_json::Error::custom("tick, the kernel's clock, must be between 1 µs and 1 s")
    })
}
