//! Applications that write messages: at equal intervals some bytes, in one or more writes.
//!
//! How TCP makes segments of writes smaller than a segment (Nagle's algorithm) is the engine's business.

use ackclock_core::Time;
use serde::Deserialize;

/// An application that writes messages while its connection is open.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    /// Bytes of a write.
    pub size_bytes: u64,
    /// Writes of a message, one right after the other.
    pub count: u64,
    /// Time from a message's first write to that of the next message.
    #[serde(rename = "every_s")]
    pub every: Time,
    /// True if the application switches Nagle's algorithm off (`TCP_NODELAY`).
    pub nodelay: bool,
}

impl Writes {
    /// The field that no run can have, if there is one.
    pub fn fault(&self) -> Option<&'static str> {
        if self.size_bytes == 0 {
            return Some("writes.size_bytes");
        }
        if self.count == 0 {
            return Some("writes.count");
        }
        (self.every == Time::ZERO).then_some("writes.every_s")
    }

    /// Writes of the messages that begin within `open` of the connection's opening, its end included.
    pub fn due(&self, open: Time) -> u64 {
        let messages = open.picoseconds() / self.every.picoseconds().max(1) + 1;
        messages.saturating_mul(self.count)
    }

    /// The same without those that begin at its end.
    pub fn overdue(&self, open: Time) -> u64 {
        let messages = open.picoseconds().div_ceil(self.every.picoseconds().max(1));
        messages.saturating_mul(self.count)
    }

    /// Time of write number `write`, counted from 0, since the connection's opening.
    pub fn time_of(&self, write: u64) -> Time {
        let messages = write / self.count.max(1);
        Time::from_picoseconds(messages.saturating_mul(self.every.picoseconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: Writes = Writes {
        size_bytes: 100,
        count: 2,
        every: Time::from_milliseconds(10),
        nodelay: false,
    };

    #[test]
    fn messages_begin_at_equal_intervals() {
        let due = [0, 9, 10, 11, 20].map(|ms| WRITES.due(Time::from_milliseconds(ms)));
        assert_eq!(due, [2, 2, 4, 4, 6]);
        let overdue = [0, 9, 10, 11, 20].map(|ms| WRITES.overdue(Time::from_milliseconds(ms)));
        assert_eq!(overdue, [0, 2, 2, 4, 4]);
        let times = [0, 1, 2, 5].map(|write| WRITES.time_of(write).microseconds());
        assert_eq!(times, [0, 0, 10_000, 20_000]);
    }

    #[test]
    fn nothing_is_written_in_no_bytes_no_writes_or_no_time() {
        assert_eq!(WRITES.fault(), None);
        let faults = [
            Writes {
                size_bytes: 0,
                ..WRITES
            },
            Writes { count: 0, ..WRITES },
            Writes {
                every: Time::ZERO,
                ..WRITES
            },
        ];
        let fields = faults.map(|writes| writes.fault().unwrap_or(""));
        assert_eq!(
            fields,
            ["writes.size_bytes", "writes.count", "writes.every_s"]
        );
    }
}
