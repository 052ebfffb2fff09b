//! A window over a stream of bytes: what was read and is not yet used, in one piece.

use std::io::{self, ErrorKind, Read};

/// What is read at once: large enough that the call costs nothing, small enough for the second-level cache.
const CHUNK_BYTES: usize = 256 << 10;

/// The bytes that come next. It grows to the longest piece that was ever asked for, which is the caller's to bound.
#[derive(Debug)]
pub struct Window<R> {
    source: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl<R: Read> Window<R> {
    /// An empty window before the first byte.
    pub fn new(source: R) -> Self {
        Self {
            source,
            bytes: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            ended: false,
        }
    }

    /// What was read and is not used.
    #[inline]
    pub fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Whether `wanted` bytes are available, after reading as much as it takes; if not, the stream has ended.
    ///
    /// # Errors
    /// The stream's own; the bytes before it stay available.
    #[inline]
    pub fn ensure(&mut self, wanted: usize) -> io::Result<bool> {
        if self.end - self.start >= wanted {
            return Ok(true);
        }
        self.refill(wanted)
    }

    /// Uses `count` of the available bytes; they stay readable until the window moves on.
    #[inline]
    pub fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        &self.bytes[start..self.start]
    }

    /// Passes `count` bytes, however many; how many there were is less if the stream has ended.
    ///
    /// # Errors
    /// The stream's own.
    pub fn skip(&mut self, count: u64) -> io::Result<u64> {
        let mut left = count;
        loop {
            let step = left.min((self.end - self.start) as u64);
            self.start += step as usize;
            left -= step;
            if left == 0 || !self.ensure(1)? {
                return Ok(count - left);
            }
        }
    }

    #[cold]
    fn refill(&mut self, wanted: usize) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if wanted > self.bytes.len() {
            self.bytes.resize(wanted, 0);
        }
        while self.end < wanted && !self.ended {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(self.end >= wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Dripping(u8);

    impl Read for Dripping {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0 == 200 {
                return Ok(0);
            }
            into[0] = self.0;
            self.0 += 1;
            Ok(1)
        }
    }

    #[test]
    fn bytes_come_in_order_however_they_drip() {
        let mut window = Window::new(Dripping(0));
        assert!(window.ensure(3).unwrap());
        assert_eq!(window.take(2), [0, 1]);
        assert_eq!(window.skip(100).unwrap(), 100);
        assert!(window.ensure(1).unwrap());
        assert_eq!(window.available()[0], 102);
        assert!(!window.ensure(99).unwrap());
        assert_eq!(window.available().len(), 98);
        assert_eq!(window.skip(1_000_000).unwrap(), 98);
    }

    #[test]
    fn it_grows_to_what_is_asked_for() {
        let bytes = vec![7; 3 * CHUNK_BYTES];
        let mut window = Window::new(bytes.as_slice());
        assert!(window.ensure(2 * CHUNK_BYTES + 1).unwrap());
        assert!(!window.ensure(4 * CHUNK_BYTES).unwrap());
        assert_eq!(window.available().len(), 3 * CHUNK_BYTES);
    }
}
