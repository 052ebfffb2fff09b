//! Why a workload cannot be generated.

use ackclock_core::Time;

/// Why a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// A quantity that must be positive is not.
    #[error("{0} must be greater than zero")]
    NotPositive(&'static str),
    /// A quantity that must not be negative is, or is no number.
    #[error("{quantity} is {value}; expected a number of at least zero")]
    Negative {
        /// The quantity.
        quantity: &'static str,
        /// Its value.
        value: f64,
    },
    /// A quantity is larger than can be.
    #[error("{quantity} is {value}, but at most {limit} is possible")]
    TooLarge {
        /// The quantity.
        quantity: &'static str,
        /// Its value.
        value: f64,
        /// The largest possible.
        limit: f64,
    },
    /// A range's end lies before its beginning.
    #[error("{from} must not be larger than {to}")]
    Reversed {
        /// The key of the beginning.
        from: &'static str,
        /// The key of the end.
        to: &'static str,
    },
    /// More than half of all draws would be rejected.
    #[error("redraw to at most {max_bytes} bytes, below the median of {median_bytes:.0}, rejects most draws; clip, or choose a smaller size")]
    RedrawBelowMedian {
        /// The largest size.
        max_bytes: u64,
        /// The distribution's median.
        median_bytes: f64,
    },
    /// The points of an empirical distribution are none.
    #[error("points: {0}")]
    Points(&'static str),
    /// `stop_s` is not after `start_s`.
    #[error("stop_s ({stop}) must be later than start_s ({start})")]
    StopsBeforeStart {
        /// The start.
        start: Time,
        /// The stop.
        stop: Time,
    },
    /// The next transfer waits for the end of one that has none.
    #[error(
        "{0} arrivals require a size: the next transfer waits for the end of the previous one"
    )]
    Endless(&'static str),
    /// The number of transfers is unbounded.
    #[error("{kind} arrivals without {missing} never end; give {limit}")]
    Unbounded {
        /// The kind of arrivals.
        kind: &'static str,
        /// The missing duration.
        missing: &'static str,
        /// The key that limits them.
        limit: &'static str,
    },
    /// The population has no pair of hosts.
    #[error("the population has no pair of a source and another destination")]
    NoPair,
    /// A node is listed twice.
    #[error("node {node} is listed twice among the {list}")]
    Repeated {
        /// The node.
        node: u32,
        /// The list.
        list: &'static str,
    },
    /// A pairing of one to one needs lists of the same length.
    #[error("pairing one to one requires as many destinations as sources; found {sources} sources and {destinations} destinations")]
    Unequal {
        /// The number of sources.
        sources: usize,
        /// The number of destinations.
        destinations: usize,
    },
    /// A source is to send to itself.
    #[error("node {0} has no other node to send to")]
    ToItself(u32),
    /// An incast has more senders than there are.
    #[error("incast of {senders} senders, but there are {value}")]
    TooFewSenders {
        /// The requested number of senders.
        senders: u32,
        /// The available number of senders, without the destination.
        value: usize,
    },
    /// An incast knows only two pairings.
    #[error("incast takes the pairings random and in_turn")]
    IncastPairing,
    /// More transfers than are possible.
    #[error("{kind} arrivals over {span} give about {about:.0} transfers, but at most {limit} are possible")]
    TooMany {
        /// The kind of arrivals.
        kind: &'static str,
        /// From the first arrival to the end.
        span: Time,
        /// The expected number of transfers.
        about: f64,
        /// The maximum number of transfers.
        limit: u64,
    },
}

/// Reject what is not a positive, finite number.
pub(crate) fn positive(quantity: &'static str, value: f64) -> Result<(), WorkloadError> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(WorkloadError::NotPositive(quantity))
    }
}

/// Reject what is negative or no finite number.
pub(crate) fn not_negative(quantity: &'static str, value: f64) -> Result<(), WorkloadError> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(WorkloadError::Negative { quantity, value })
    }
}

/// Reject what is larger than `limit`.
pub(crate) fn check_max(
    quantity: &'static str,
    value: f64,
    limit: f64,
) -> Result<(), WorkloadError> {
    if value <= limit {
        Ok(())
    } else {
        Err(WorkloadError::TooLarge {
            quantity,
            value,
            limit,
        })
    }
}
