//! A read buffer over a byte stream, which keeps the unconsumed bytes contiguous.

use std::io::{self, ErrorKind, Read};

/// The size of a read: large enough to amortise the system call, small enough for the L2 cache.
const CHUNK_BYTES: usize = 256 << 10;

/// A read buffer. It grows to the longest piece requested so far, which the caller must bound.
#[derive(Debug)]
pub struct ReadBuffer<R> {
    source: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl<R: Read> ReadBuffer<R> {
    /// Create an empty buffer.
    pub fn new(source: R) -> Self {
        Self {
            source,
            bytes: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            ended: false,
        }
    }

    /// Return the bytes that were read and not yet consumed.
    #[inline]
    pub fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Read until `min_bytes` bytes are available; return false if the stream ends before.
    ///
    /// # Errors
    /// The stream's own; the bytes before it stay available.
    #[inline]
    pub fn ensure(&mut self, min_bytes: usize) -> io::Result<bool> {
        if self.end - self.start >= min_bytes {
            return Ok(true);
        }
        self.refill(min_bytes)
    }

    /// Consume and return `count` of the available bytes; they stay valid until the next read.
    #[inline]
    pub fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        &self.bytes[start..self.start]
    }

    /// Skip `count` bytes; return how many were skipped, fewer if the stream has ended.
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
    fn refill(&mut self, min_bytes: usize) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if min_bytes > self.bytes.len() {
            self.bytes.resize(min_bytes, 0);
        }
        while self.end < min_bytes && !self.ended {
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
        Ok(self.end >= min_bytes)
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
    fn short_reads_keep_the_order_of_bytes() {
        let mut buffer = ReadBuffer::new(Dripping(0));
        assert!(buffer.ensure(3).unwrap());
        assert_eq!(buffer.take(2), [0, 1]);
        assert_eq!(buffer.skip(100).unwrap(), 100);
        assert!(buffer.ensure(1).unwrap());
        assert_eq!(buffer.available()[0], 102);
        assert!(!buffer.ensure(99).unwrap());
        assert_eq!(buffer.available().len(), 98);
        assert_eq!(buffer.skip(1_000_000).unwrap(), 98);
    }

    #[test]
    fn the_buffer_grows_to_the_requested_length() {
        let bytes = vec![7; 3 * CHUNK_BYTES];
        let mut buffer = ReadBuffer::new(bytes.as_slice());
        assert!(buffer.ensure(2 * CHUNK_BYTES + 1).unwrap());
        assert!(!buffer.ensure(4 * CHUNK_BYTES).unwrap());
        assert_eq!(buffer.available().len(), 3 * CHUNK_BYTES);
    }
}
