//! Congestion controls: how large the window is.
//!
//! A controller is a pure state machine. Time and measurements come in with each call; it reads no
//! clock and draws random numbers only from the seed in [`Opening`]. What is lost, and how much may be
//! sent during recovery, is the sender's business.
//!
//! This crate's dependencies are the proof: units, parameters as JSON, random numbers from a seed; no network, no
//! simulator, no file, no clock.
//!
//! Adding one: a file here, a card in the catalog, and its name in `controllers!`.

use ackclock_core::jiffies::JiffyClock;
use ackclock_core::{Rate, Time};
use serde::de::Error as _;
use serde_json::Value;

pub mod contract;
pub mod fractional_window;
pub mod hystart;
pub mod phase;
mod prototype;
pub mod round;
pub mod window;

/// The list, from one line each: the module, and its place among the [`CONTROLLERS`].
macro_rules! controllers {
    ($($name:ident,)*) => {
        $(pub mod $name;)*

        /// The list: name as in `sysctl`, and how to make one.
        pub const CONTROLLERS: &[(&str, Maker)] = &[$((stringify!($name), $name::make)),*];
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
    reno,
    scalable,
    tahoe,
    vegas,
    westwood,
}

pub use prototype::{Copied, Prototype};

/// What an acknowledgement tells the controller. Windows and counts are in segments.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Ack {
    /// The sender's clock.
    pub now: Time,
    /// Segments delivered by this ACK, cumulatively or selectively, for the first time.
    pub newly_acked: u32,
    /// Payload bytes of them.
    pub newly_acked_bytes: u64,
    /// Whether it is of those that may raise a window: the cumulative acknowledgement advanced; or, once the path is
    /// known to reorder, anything was delivered.
    pub advanced: bool,
    /// Segments that it advanced over, those that were delivered selectively before included.
    pub cumulatively_acked: u32,
    /// Whether it carries SACK blocks.
    pub selective: bool,
    /// Whether it tells a larger receive window than the one before.
    pub opens: bool,
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
    /// Delivery rate over the last flight (Linux's `rate_sample`); `None` if it cannot be told.
    pub delivery_rate: Option<Rate>,
    /// Segments delivered over the connection's life, this ACK included.
    pub delivered: u64,
    /// Value of `delivered` when the newest delivered segment was sent: tells rounds apart.
    pub prior_delivered: u64,
    /// Whether the delivery-rate sample was limited by the application.
    pub application_limited: bool,
    /// Whether the window, and not the application or the receiver, limited the sender.
    pub window_limited: bool,
    /// Segments found lost with this ACK.
    pub newly_lost: u32,
    /// Payload bytes that the ACK's ECN feedback reports as marked.
    pub marked_bytes: u64,
    /// Next segment to be sent for the first time.
    pub next: u64,
    /// First segment not cumulatively acknowledged.
    pub unacknowledged: u64,
    /// Whether the sender is in fast recovery or comes down for ECN marks; a window that reacts once per episode
    /// must not grow then. The repair after a timeout is slow start, not fast recovery.
    pub recovering: bool,
    /// Whether what a timeout took for lost is still being repaired.
    pub repairing: bool,
    /// Whether the sender is paced.
    pub paced: bool,
    /// When pacing lets the next segment go; not later than now if it need not wait.
    pub next_departure: Time,
}

/// Start of a recovery episode (fast recovery; a tail loss that a probe repaired; an ECN reaction).
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The sender's clock.
    pub now: Time,
    /// Segments in flight when the loss was found, before it is deducted.
    pub in_flight: u32,
    /// Smoothed RTT.
    pub srtt: Time,
    /// Smallest RTT seen.
    pub min_rtt: Time,
    /// Segments delivered over the connection's life.
    pub delivered: u64,
    /// Whether an ECN mark, and not a loss, is the reason.
    pub marked: bool,
}

/// The window and threshold that a reduction has changed, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// The window.
    pub cwnd: f64,
    /// The threshold, but at least three quarters of the window.
    pub ssthresh: f64,
}

/// What an ACK tells of ECN marks.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Segments that it delivers.
    pub delivered: u32,
    /// Segments that it reports as marked.
    pub marked: u32,
    /// Next segment to be sent for the first time.
    pub next: u64,
    /// First segment not cumulatively acknowledged.
    pub unacknowledged: u64,
}

/// The application sends again after the sender had nothing in flight.
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

/// The connection has opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The sender's clock.
    pub now: Time,
    /// Smoothed RTT, from the handshake; zero if the SYN was sent more than once.
    pub srtt: Time,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// A number of this flow in this run, for controllers that choose at random.
    pub seed: u64,
}

/// What CUBIC looks at inside, in segments; RFC 9438 has the names, Linux has `count` and the smallest RTT beside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// The window that the curve asks for: for Linux one smallest RTT ahead.
    pub target: f64,
    /// The curve now.
    pub w_cubic: f64,
    /// The window at the last loss, or less by fast convergence; none before it.
    pub w_max: Option<f64>,
    /// The flat of the curve.
    pub origin: f64,
    /// K: seconds from the start of the curve to its flat.
    pub k_s: f64,
    /// The window that a Reno sender would have.
    pub w_est: f64,
    /// Acknowledged segments that buy one more, where windows are whole.
    pub count: Option<f64>,
    /// The smallest RTT that it knows.
    pub min_rtt: Option<Time>,
}

/// Who decides what may be sent while losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The stack, as its card says (proportional rate reduction, or at once down to ssthresh).
    Stack,
    /// The controller: its window holds in every phase, and marks are its own business.
    Controller,
    /// A loss counts as the loss of everything outstanding, repaired by slow start from the controller's window.
    FromStart,
}

/// A congestion control. Windows are in segments and never below 1.
pub trait Controller: Send + Sync + Copied {
    /// An acknowledgement arrived, in any state.
    fn on_ack(&mut self, ack: &Ack);
    /// An ACK arrived where ECN is in use: called before [`Controller::on_loss`] and [`Controller::on_ack`], for
    /// controllers that measure the extent of marking and come down by what this very ACK completes.
    fn on_feedback(&mut self, feedback: &Feedback) {
        let _ = feedback;
    }
    /// A recovery episode begins: one call per episode. After it, [`Controller::cwnd`] and
    /// [`Controller::ssthresh`] are the window that the sender shall come down to.
    fn on_loss(&mut self, loss: &Loss);
    /// A loss is found while the window comes down for ECN marks of the same round trip. Linux does not reduce
    /// again.
    fn on_loss_after_mark(&mut self, loss: &Loss) {
        let _ = loss;
    }
    /// A fast recovery or a reaction to marks ends, its window reached: called before what else the same ACK brings,
    /// which may be the next loss. `rtt` is that ACK's [`Ack::rtt`].
    fn on_recovered(&mut self, now: Time, rtt: Option<Time>) {
        let _ = (now, rtt);
    }
    /// The connection has opened: the first call, if there is one.
    fn on_open(&mut self, opening: &Opening) {
        let _ = opening;
    }
    /// The retransmission timer expired; the window starts again from one segment. `in_flight` is in
    /// segments, before the loss is deducted.
    fn on_timeout(&mut self, now: Time, in_flight: u32);
    /// The same timeout is repeated, backed off. As Linux, nothing but the window changes, which is one segment again; it
    /// has to be said only to a controller whose window grows although nothing new is acknowledged.
    fn on_repeated_timeout(&mut self) {}
    /// The last loss or timeout was none (RFC 4015 section 3): the window and threshold come back to what they were
    /// before, unless they have grown beyond; the phase is over. What is left of a controller's memory of the loss
    /// is its own business. A controller that does not reduce its window has nothing to do.
    fn undo(&mut self, before: &Before) {
        let _ = before;
    }
    /// The application sends again after an idle time (RFC 5681 section 4.1).
    fn on_restart(&mut self, restart: &Restart) {
        let _ = restart;
    }
    /// The congestion window.
    fn cwnd(&self) -> f64;
    /// The slow start threshold; infinite until the first loss.
    fn ssthresh(&self) -> f64;
    /// Who decides what may be sent while losses are repaired.
    fn repair(&self) -> Repair {
        Repair::Stack
    }
    /// Whether the sender paces whatever its stack does.
    fn needs_pacing(&self) -> bool {
        false
    }
    /// What CUBIC and its relatives look at inside, at a moment of congestion avoidance.
    fn inside(&self, now: Time) -> Option<Inside> {
        let _ = now;
        None
    }
    /// Segments of a batch, at least, where the stack sends in batches.
    fn least_batch(&self) -> u32 {
        2
    }
    /// The rate to pace payload at, when the controller names one.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// A controller, or what is wrong with its parameters.
pub type Made = Result<Box<dyn Controller>, serde_json::Error>;

/// Makes a controller from its card's complete parameters and the initial window in segments.
pub type Maker = fn(&Value, f64) -> Made;

/// Why a congestion control cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No controller has this name.
    #[error("no congestion control is called \"{0}\"")]
    Unknown(String),
    /// The parameters are not those of the card.
    #[error("parameters of \"{kind}\": {source}")]
    Parameters {
        /// The congestion control.
        kind: String,
        /// What is wrong with them.
        source: serde_json::Error,
    },
}

/// Looks a controller up by name and makes it.
///
/// # Errors
/// An unknown name, or parameters that are not those of the card.
pub fn make(
    kind: &str,
    parameters: &Value,
    initial_window: u32,
) -> Result<Box<dyn Controller>, Error> {
    let (_, maker) = CONTROLLERS
        .iter()
        .find(|(name, _)| *name == kind)
        .ok_or_else(|| Error::Unknown(kind.to_owned()))?;
    maker(parameters, f64::from(initial_window)).map_err(|source| Error::Parameters {
        kind: kind.to_owned(),
        source,
    })
}

/// Refuses parameters of which something does not hold.
fn require(holds: bool, otherwise: &str) -> Result<(), serde_json::Error> {
    if holds {
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
