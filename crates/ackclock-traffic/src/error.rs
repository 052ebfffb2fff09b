//! Why a workload cannot be generated.

use ackclock_core::Time;

/// Why a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// A quantity that must be positive is not.
    #[error("{0} must be greater than zero")]
    NotPositive(&'static str),
    /// A quantity that must not be negative is, or is no number.
    #[error("{what} is {found}; expected a number of at least zero")]
    Negative {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: f64,
    },
    /// A quantity is larger than can be.
    #[error("{what} is {found}, but at most {most} is possible")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: f64,
        /// The largest possible.
        most: f64,
    },
    /// A range's end lies before its beginning.
    #[error("{from} must not be larger than {to}")]
    Reversed {
        /// The key of the beginning.
        from: &'static str,
        /// The key of the end.
        to: &'static str,
    },
    /// More than half of all draws would be thrown away.
    #[error("redraw to at most {most_bytes} bytes, below the median of {median_bytes:.0}, throws most draws away; clip, or choose a smaller size")]
    RedrawBelowMedian {
        /// The largest size.
        most_bytes: u64,
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
    #[error("{0} arrivals need a size: what begins next waits for the end of what was before")]
    Endless(&'static str),
    /// Nothing bounds how many transfers there are.
    #[error("{kind} arrivals without {missing} never come to an end; give {limit}")]
    Unbounded {
        /// The kind of arrivals.
        kind: &'static str,
        /// What takes no time.
        missing: &'static str,
        /// The key that limits them.
        limit: &'static str,
    },
    /// There is nobody to transfer anything.
    #[error("the population has no pair of a source and another destination")]
    NoPair,
    /// A node stands in a list twice.
    #[error("node {node} stands twice among the {list}")]
    Repeated {
        /// The node.
        node: u32,
        /// The list.
        list: &'static str,
    },
    /// A pairing of one to one needs lists of the same length.
    #[error("pairing one to one needs as many destinations as sources; found {sources} sources and {destinations} destinations")]
    Unequal {
        /// How many sources.
        sources: usize,
        /// How many destinations.
        destinations: usize,
    },
    /// A source is to send to itself.
    #[error("node {0} has no other node to send to")]
    ToItself(u32),
    /// An incast has more senders than there are.
    #[error("incast of {senders} senders, but there are {found}")]
    TooFewSenders {
        /// How many are asked for.
        senders: u32,
        /// How many there are, the destination apart.
        found: usize,
    },
    /// An incast knows only two pairings.
    #[error("incast takes the pairings random and in_turn")]
    IncastPairing,
    /// More transfers than are possible.
    #[error("{kind} arrivals over {span} come to about {about:.0} transfers, but at most {most} are possible")]
    TooMany {
        /// The kind of arrivals.
        kind: &'static str,
        /// From the first arrival to the end.
        span: Time,
        /// How many transfers are expected.
        about: f64,
        /// How many are possible.
        most: u64,
    },
}

/// Refuses what is not a positive, finite number.
pub(crate) fn positive(what: &'static str, found: f64) -> Result<(), WorkloadError> {
    if found > 0.0 && found.is_finite() {
        Ok(())
    } else {
        Err(WorkloadError::NotPositive(what))
    }
}

/// Refuses what is negative or no finite number.
pub(crate) fn not_negative(what: &'static str, found: f64) -> Result<(), WorkloadError> {
    if found >= 0.0 && found.is_finite() {
        Ok(())
    } else {
        Err(WorkloadError::Negative { what, found })
    }
}

/// Refuses what is larger than `most`.
pub(crate) fn at_most(what: &'static str, found: f64, most: f64) -> Result<(), WorkloadError> {
    if found <= most {
        Ok(())
    } else {
        Err(WorkloadError::TooLarge { what, found, most })
    }
}
