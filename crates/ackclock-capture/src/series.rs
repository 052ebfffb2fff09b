//! The series that tell what limits a path: what reached the limiter, and the round-trip times behind it.

/// A segment as it passed the capture's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds of the capture's clock.
    pub time_ns: i64,
    /// The bytes that it takes of an Ethernet, with header and check sequence: what policers that were measured count.
    pub bytes: u32,
    /// Which path it took.
    pub path: u16,
    /// It was lost behind the point.
    pub lost: bool,
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
    /// Which path it took.
    pub path: u16,
}

/// Both, of all flows of one direction of a path, or of several paths.
#[derive(Clone, Debug, Default)]
pub struct PathSeries {
    /// In the order of the capture.
    pub arrivals: Vec<Arrival>,
    /// In the order of their acknowledgements.
    pub rtts: Vec<RttSample>,
}

impl PathSeries {
    /// Those of one path.
    #[must_use]
    pub fn of(&self, path: u16) -> Self {
        Self {
            arrivals: picked(&self.arrivals, |arrival| arrival.path == path),
            rtts: picked(&self.rtts, |sample| sample.path == path),
        }
    }
}

/// The items that are wanted, in memory for just so many.
fn picked<T: Copy>(items: &[T], wanted: impl Fn(&T) -> bool) -> Vec<T> {
    let mut found = Vec::with_capacity(items.iter().filter(|&item| wanted(item)).count());
    found.extend(items.iter().filter(|&item| wanted(item)));
    found
}
