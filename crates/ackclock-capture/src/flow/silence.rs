//! Silences of a connection, and why (Mihály et al.; TAPO: *Demystifying and Mitigating TCP Stalls at the Server Side*,
//! CoNEXT 2015, whose tree the transport's classes follow).

use super::{Connection, Stall};
use crate::packet::Segment;
use crate::tables::Cause;

/// No shorter gap is a silence.
pub const LEAST_NS: i64 = 200_000_000;
/// Nor one of fewer smoothed RTTs.
const LEAST_RTTS: i64 = 4;
/// The whole capture was as silent as the connection if it was for this share of the time.
const ALL_SILENT: f64 = 0.95;
/// A clock that moved by less than this share of the time stood still.
const STOOD_STILL: f64 = 0.1;
/// With fewer segments outstanding there are not enough duplicate acknowledgements.
const SMALL_WINDOW: u64 = 4;
/// A clock's rate is known after so long.
const CLOCK_NS: i64 = 500_000_000;

/// What was the case when the silence began.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // what was the case and what was not
pub struct Silence {
    /// How long it was.
    pub gap_ns: i64,
    /// Whose data the connection waited for.
    pub sender: usize,
    outstanding_bytes: u64,
    window_shut: bool,
    sacked: bool,
    repaired: bool,
    all_silent: bool,
    handshake: bool,
}

/// A gap, if it is a silence.
pub fn of(connection: &Connection, gap_ns: i64, from: usize, silent_ns: i64) -> Option<Silence> {
    let halves = &connection.halves;
    let busy = |half: usize| {
        halves[half]
            .sending
            .as_ref()
            .is_some_and(|sending| !sending.board.is_empty())
    };
    let sender = match (busy(0), busy(1)) {
        (true, false) => 0,
        (false, true) => 1,
        _ if halves[from].sending.is_none() => 1 - from,
        _ => from,
    };
    let sending = halves[sender].sending.as_deref();
    let srtt_ns = sending.map_or(0, |sending| sending.smoothed.srtt_ns);
    if gap_ns <= LEAST_RTTS * srtt_ns || connection.closed() {
        return None;
    }
    let outstanding_bytes = sending.map_or(0, |sending| sending.next.saturating_sub(sending.una));
    let mss = sending.map_or(1, |sending| u64::from(sending.mss));
    let window = sending.and_then(|sending| sending.window_bytes);
    Some(Silence {
        gap_ns,
        sender,
        outstanding_bytes,
        window_shut: window.is_some_and(|window| window < outstanding_bytes + mss),
        sacked: sending.is_some_and(|sending| sending.board.sacked_bytes() > 0),
        repaired: sending
            .and_then(|sending| sending.board.front())
            .is_some_and(|first| !first.once()),
        all_silent: silent_ns as f64 >= ALL_SILENT * gap_ns as f64,
        handshake: connection.established_ns.is_none() && connection.syn_ns.is_some(),
    })
}

impl Silence {
    /// Why, now that the packet that ends it has been taken in.
    pub fn class(&self, connection: &Connection, segment: &Segment, from: usize) -> Stall {
        let sending = connection.halves[self.sender].sending.as_deref();
        if self.handshake {
            return Stall::Handshake;
        }
        let Some(sending) = sending else {
            return Stall::Application;
        };
        if from == self.sender && segment.payload_bytes > 0 && sending.left_hole {
            return Stall::CaptureLoss;
        }
        if self.window_shut {
            return Stall::Receiver;
        }
        if self.outstanding_bytes == 0 {
            return Stall::Application;
        }
        let again = if from == self.sender && segment.payload_bytes > 0 {
            sending.last_cause
        } else {
            None
        };
        match again {
            Some(_) if self.repaired => Stall::DoubleRetransmission,
            Some(Cause::TailProbe) => Stall::TailLoss,
            Some(_) if self.sacked => Stall::Timeout,
            Some(_) if self.outstanding_bytes < SMALL_WINDOW * u64::from(sending.mss) => {
                Stall::SmallWindow
            }
            Some(_) => Stall::ContinuousLoss,
            None => self.without_repair(connection, from),
        }
    }

    fn without_repair(&self, connection: &Connection, from: usize) -> Stall {
        if from != self.sender {
            return Stall::AckDelay;
        }
        if self.all_silent {
            return match clock_moved(connection, from, self.gap_ns) {
                Some(share) if share < STOOD_STILL => Stall::Machine,
                _ => Stall::Host,
            };
        }
        Stall::Application
    }
}

/// By which share of the silence the end's clock moved, as its timestamps tell.
fn clock_moved(connection: &Connection, from: usize, gap_ns: i64) -> Option<f64> {
    let half = &connection.halves[from];
    let [first, last] = half.clock?;
    let before = half.clock_before;
    let known_ns = before.1 - first.1;
    if known_ns < CLOCK_NS {
        return None;
    }
    let ticks_per_ns = f64::from(before.0.wrapping_sub(first.0)) / known_ns as f64;
    let moved = f64::from(last.0.wrapping_sub(before.0));
    (ticks_per_ns > 0.0).then(|| moved / (ticks_per_ns * gap_ns as f64))
}
