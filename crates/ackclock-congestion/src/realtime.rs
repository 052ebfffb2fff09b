//! Congestion control of real-time media: rates for an encoder and a pacer, from feedback on each packet.
//!
//! The receiver reports the arrival time, the loss and the ECN mark of each packet at an interval (RFC 8888). The
//! sender knows when it sent them and how large they were, so a controller gets both together ([`PacketReport`]) and
//! does all its computation at the sender. Rates count the bytes of IP packets, headers included.
//!
//! A controller is a pure state machine, as the other algorithms of this crate are: time comes in with each call.
//!
//! To add an algorithm: a file here, an algorithm spec in the catalog, and its name in `controllers!`.

use std::fmt::Debug;

use ackclock_core::{Rate, Time};
use serde_json::Value;

use super::{Error, Variables};

mod arrivals;

/// Declare the modules and list them in [`CONTROLLERS`].
macro_rules! controllers {
    ($($name:ident,)*) => {
        $(pub mod $name;)*

        /// All controllers of real-time media: the name, and the factory.
        pub const CONTROLLERS: &[(&str, Factory)] = &[$((stringify!($name), $name::make)),*];
    };
}

controllers! {
    gcc,
    nada,
    scream,
}

/// The fate of a packet, with what the sender knows of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketReport {
    /// Its number; packets are numbered in the order of sending.
    pub sequence: u64,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// When it arrived, by the receiver's clock; `None` if it is lost.
    pub arrival: Option<Time>,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// True if it arrived with CE.
    pub marked: bool,
}

impl PacketReport {
    /// One-way delay, if it arrived.
    pub fn delay(&self) -> Option<Time> {
        self.arrival.map(|arrival| arrival.since(self.sent))
    }
}

/// A report of the receiver, when it reaches the sender.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// The sender's clock.
    pub now: Time,
    /// RTT of the newest packet that arrived, without the time that its report waited at the receiver.
    pub rtt: Time,
    /// The packets that it reports, in the order of their numbers.
    pub packets: &'a [PacketReport],
}

/// A media source, as its controller knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaSource {
    /// The lowest rate.
    pub min: Rate,
    /// The rate at the start.
    pub start: Rate,
    /// The highest rate.
    pub max: Rate,
    /// Frames in a second.
    pub frames_per_s: f64,
    /// Bytes of its largest IP packet.
    pub packet_bytes: u32,
    /// True if its packets are ECT(1), so that marks are those of L4S (RFC 9331).
    pub l4s: bool,
}

/// A frame that enters the pacer's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueuedFrame {
    /// Bytes of its IP packets.
    pub bytes: u64,
    /// Waiting time of the oldest packet before it in the queue.
    pub waited: Time,
}

impl MediaSource {
    /// A rate in bit/s, held between the lowest and the highest.
    fn clamp(&self, bps: f64) -> f64 {
        bps.clamp(self.min.bits_per_second(), self.max.bits_per_second())
    }
}

/// A congestion control algorithm of real-time media.
pub trait RateController: Debug + Send + Sync {
    /// Process a report of the receiver.
    fn on_feedback(&mut self, feedback: &Feedback<'_>);
    /// Process a frame that enters the pacer's queue.
    fn on_frame(&mut self, frame: &QueuedFrame) {
        let _ = frame;
    }
    /// Process the sending of a packet, which the bytes in flight include.
    fn on_sent(&mut self, in_flight_bytes: u64) {
        let _ = in_flight_bytes;
    }
    /// Return the target of the encoder. `backlog_bytes` wait at the sender to be paced out.
    fn target_rate(&self, backlog_bytes: u64) -> Rate;
    /// Return the rate at which packets leave the sender.
    fn pacing_rate(&self, backlog_bytes: u64) -> Rate;
    /// Return the limit of the bytes in flight, if there is one.
    fn window_bytes(&self) -> Option<u64> {
        None
    }
    /// Return the internal state by the names of the specification.
    fn variables(&self) -> Variables;
}

/// A controller, or the error in its parameters.
pub type Made = Result<Box<dyn RateController>, serde_json::Error>;

/// Creates a controller from its complete parameters and the rates of the media.
pub type Factory = fn(&Value, MediaSource) -> Made;

/// Create a controller by name.
///
/// # Errors
/// An unknown name, or parameters that are not those of its algorithm spec.
pub fn make(
    kind: &str,
    parameters: &Value,
    source: MediaSource,
) -> Result<Box<dyn RateController>, Error> {
    let (_, factory) = CONTROLLERS
        .iter()
        .find(|(name, _)| *name == kind)
        .ok_or_else(|| Error::Unknown(kind.to_owned()))?;
    factory(parameters, source).map_err(|source| Error::Parameters {
        kind: kind.to_owned(),
        source,
    })
}

#[cfg(test)]
mod contract;
