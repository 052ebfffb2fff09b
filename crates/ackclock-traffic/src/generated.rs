//! Generated transfers, and the gates that they wait for.

use ackclock_core::Time;

use crate::{Ends, WorkloadError};

/// Transfers that a workload may come to, at most.
pub const MAX_TRANSFERS: u64 = 10_000_000;

/// When a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Time),
    /// When the gate of this index opens.
    Gate(u32),
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When it begins.
    pub start: Start,
    /// The size in bytes; `None` is endless.
    pub size_bytes: Option<u64>,
    /// Between whom.
    pub ends: Ends,
    /// The gate that counts its completion.
    pub completes: Option<u32>,
}

/// A condition that transfers wait for.
///
/// A gate opens once: `delay` after the last of the completions that it awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Completions it awaits, > 0: as many transfers name it in [`Transfer::completes`].
    pub awaits: u32,
    /// The delay between the last of them and the opening.
    pub delay: Time,
}

/// All transfers of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// First those with a time, in its order; then those behind gates, in the order of their making: pair
    /// by pair or round by round.
    pub transfers: Vec<Transfer>,
    /// The gates.
    pub gates: Vec<Gate>,
    /// No transfer begins at or after this. The times of the transfers keep to it; who opens gates must
    /// too: a gate that opens at or after `stop` begins nothing.
    pub stop: Time,
}

impl Generated {
    /// No transfers, of a workload that stops at this time.
    pub fn none(stop: Time) -> Generated {
        Generated {
            transfers: Vec::new(),
            gates: Vec::new(),
            stop,
        }
    }
}

/// Collects transfers and gates.
#[derive(Debug)]
pub(crate) struct Builder {
    transfers: Vec<Transfer>,
    gates: Vec<Gate>,
    kind: &'static str,
    span: Time,
    limit: u64,
}

impl Builder {
    /// Room for `limit` transfers; `kind` and `span` are for the error's sake.
    pub fn new(kind: &'static str, span: Time, limit: u64) -> Builder {
        Builder {
            transfers: Vec::new(),
            gates: Vec::new(),
            kind,
            span,
            limit,
        }
    }

    /// Reject more transfers than are possible before they are made.
    pub fn expect(&self, about: f64) -> Result<(), WorkloadError> {
        if about <= self.limit as f64 {
            return Ok(());
        }
        Err(WorkloadError::TooMany {
            kind: self.kind,
            span: self.span,
            about,
            limit: self.limit,
        })
    }

    pub fn transfer(&mut self, transfer: Transfer) -> Result<(), WorkloadError> {
        self.transfers.push(transfer);
        self.expect(self.transfers.len() as f64)
    }

    /// Create a gate; its index.
    pub fn gate(&mut self, awaits: u32, delay: Time) -> u32 {
        self.gates.push(Gate { awaits, delay });
        self.gates.len() as u32 - 1
    }

    pub fn finish(mut self, stop: Time) -> Generated {
        // Stable: what begins at the same time, or behind gates, stays in its order.
        self.transfers.sort_by_key(|transfer| match transfer.start {
            Start::At(time) => (false, time),
            Start::Gate(_) => (true, Time::ZERO),
        });
        Generated {
            transfers: self.transfers,
            gates: self.gates,
            stop,
        }
    }
}
