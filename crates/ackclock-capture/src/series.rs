//! The series that tell what limits a path: what reached the limiter, and the round-trip times behind it.

/// A segment as it passed the capture's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds of the capture's clock.
    pub time_ns: i64,
    /// The bytes that it takes of an Ethernet, with header and check sequence: what policers that were measured count.
    pub bytes: u32,
    /// It was lost behind the point.
    pub lost: bool,
    /// Which flow it is of.
    pub flow: u32,
}

/// A round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// When its segment passed the capture's point.
    pub time_ns: i64,
    /// How long until its acknowledgement came.
    pub rtt_ns: i64,
    /// Which flow it is of.
    pub flow: u32,
}

/// Both, of all flows of one direction of a path.
#[derive(Clone, Debug, Default)]
pub struct PathSeries {
    /// In the order of the capture.
    pub arrivals: Vec<Arrival>,
    /// In the order of their acknowledgements.
    pub rtts: Vec<RttSample>,
}
