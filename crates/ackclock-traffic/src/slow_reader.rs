//! Slow readers: receiving applications that leave data in the receive buffer.
//!
//! A slow reader reads a chunk once so much has arrived, or less if no more is to come or fits into the buffer, and then
//! takes the time of the chunk at its rate before it reads the next. While it pauses it reads nothing.

use ackclock_core::{Rate, Time};
use serde::Deserialize;

/// A receiving application that does not read all data as they arrive.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowReader {
    /// Rate at which it reads; `null` is as fast as data arrive.
    #[serde(rename = "rate_bps", deserialize_with = "Option::deserialize")]
    pub rate: Option<Rate>,
    /// Bytes of a read, which waits until so many have arrived.
    pub chunk_bytes: u64,
    /// Times in which it reads nothing; `null`: there are none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub pause: Option<Pause>,
}

/// Times in which an application stands still, by the run's clock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Beginning of the first pause.
    #[serde(rename = "at_s")]
    pub at: Time,
    /// Length of a pause.
    #[serde(rename = "for_s")]
    pub length: Time,
    /// Time from the beginning of a pause to that of the next; `null`: there is one pause.
    #[serde(rename = "every_s", deserialize_with = "Option::deserialize")]
    pub every: Option<Time>,
}

/// The reads of a slow reader on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Reads {
    reader: SlowReader,
    /// Time from which it reads the next chunk.
    ready: Time,
    /// Bytes read.
    pub read_bytes: u64,
}

impl SlowReader {
    /// The field that no run can have, if there is one.
    pub fn fault(&self) -> Option<&'static str> {
        let is_faster = |rate: Rate| rate.bits_per_second() > 0.0;
        if self.chunk_bytes == 0 {
            return Some("slow_reader.chunk_bytes");
        }
        if !self.rate.is_none_or(is_faster) {
            return Some("slow_reader.rate_bps");
        }
        let pause = self.pause?;
        let is_back = |every: Time| every <= pause.length;
        pause
            .every
            .is_some_and(is_back)
            .then_some("slow_reader.pause.every_s - for_s")
    }
}

impl Pause {
    /// End of the pause that `time` falls into, or `time` itself if it falls into none.
    fn end(&self, time: Time) -> Time {
        if time < self.at {
            return time;
        }
        let since = time.since(self.at).picoseconds();
        let into = self
            .every
            .map_or(since, |every| since % every.picoseconds().max(1));
        time + Time::from_picoseconds(self.length.picoseconds().saturating_sub(into))
    }
}

impl Reads {
    /// No reads so far.
    pub fn new(reader: SlowReader) -> Reads {
        Reads {
            reader,
            ready: Time::ZERO,
            read_bytes: 0,
        }
    }

    /// Read what is due at `now` of the bytes that have arrived; `is_all`: no more can come before a read.
    pub fn read(&mut self, arrived_bytes: u64, is_all: bool, now: Time) {
        self.ready = self.ready.max(now);
        while self.due(arrived_bytes, is_all) <= now {
            let left = arrived_bytes - self.read_bytes;
            let chunk = self.reader.chunk_bytes;
            let (bytes, busy) = match self.reader.rate {
                Some(rate) => (chunk.min(left), rate.transmission_time(chunk.min(left))),
                None if is_all => (left, Time::ZERO),
                None => (left / chunk * chunk, Time::ZERO),
            };
            self.read_bytes += bytes;
            self.ready = now + busy;
        }
    }

    /// Time of the next read; [`Time::NEVER`] as long as too little has arrived.
    pub fn due(&self, arrived_bytes: u64, is_all: bool) -> Time {
        let left = arrived_bytes - self.read_bytes;
        if left == 0 || (left < self.reader.chunk_bytes && !is_all) {
            return Time::NEVER;
        }
        let pause = self.reader.pause;
        pause.map_or(self.ready, |pause| pause.end(self.ready))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    fn pause(every: Option<Time>) -> Pause {
        Pause {
            at: ms(100),
            length: ms(50),
            every,
        }
    }

    /// Reads of chunks of 1000 bytes.
    fn reads(rate_bytes_per_second: Option<f64>, pause: Option<Pause>) -> Reads {
        let reader = SlowReader {
            rate: rate_bytes_per_second.map(Rate::from_bytes_per_second),
            chunk_bytes: 1000,
            pause,
        };
        Reads::new(reader)
    }

    #[test]
    fn chunks_are_read_at_the_rate() {
        let mut reads = reads(Some(10_000.0), None);
        let (mut times, mut now) = (vec![], ms(5));
        while !now.is_never() {
            reads.read(3000, false, now);
            times.push(now);
            now = reads.due(3000, false);
        }
        assert_eq!(times, [ms(5), ms(105), ms(205)]);
        assert_eq!(reads.read_bytes, 3000);
    }

    #[test]
    fn a_chunk_is_awaited_except_at_the_end() {
        let mut reads = reads(None, None);
        reads.read(2999, false, ms(1));
        assert_eq!(reads.read_bytes, 2000);
        assert!(reads.due(2999, false).is_never());
        reads.read(2999, true, ms(2));
        assert_eq!(reads.read_bytes, 2999);
    }

    #[test]
    fn pauses_repeat() {
        let times = [99, 100, 149, 150, 320].map(ms);
        let once = times.map(|time| pause(None).end(time));
        assert_eq!(once, [99, 150, 150, 150, 320].map(ms));
        let again = times.map(|time| pause(Some(ms(200))).end(time));
        assert_eq!(again, [99, 150, 150, 150, 350].map(ms));
    }

    #[test]
    fn nothing_is_read_in_a_pause() {
        let mut reads = reads(None, Some(pause(None)));
        reads.read(1000, false, ms(99));
        assert_eq!(reads.read_bytes, 1000);
        reads.read(2000, false, ms(120));
        assert_eq!((reads.read_bytes, reads.due(2000, false)), (1000, ms(150)));
        reads.read(2000, false, ms(150));
        assert_eq!(reads.read_bytes, 2000);
    }

    #[test]
    fn readers_that_never_read_are_faults() {
        let sound = SlowReader {
            rate: None,
            chunk_bytes: 1,
            pause: Some(pause(Some(ms(51)))),
        };
        assert_eq!(sound.fault(), None);
        let always = SlowReader {
            pause: Some(pause(Some(ms(50)))),
            ..sound
        };
        assert_eq!(always.fault(), Some("slow_reader.pause.every_s - for_s"));
        let nothing = SlowReader {
            chunk_bytes: 0,
            ..sound
        };
        assert_eq!(nothing.fault(), Some("slow_reader.chunk_bytes"));
        let stopped = SlowReader {
            rate: Some(Rate::from_bytes_per_second(0.0)),
            ..sound
        };
        assert_eq!(stopped.fault(), Some("slow_reader.rate_bps"));
    }
}
