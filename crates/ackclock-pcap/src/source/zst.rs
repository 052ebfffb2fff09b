//! zstd (RFC 8878) by `ruzstd`: frames one after the other, with what a frame that breaks off holds before its end.

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The last block of a frame, empty, with a checksum behind it (RFC 8878 section 3.1.1.2): a decoder gives what it
/// keeps for references only when it knows that no block follows.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// A stream of zstd frames, decompressed.
pub struct Zst<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    within: bool,
    failed: Option<io::Error>,
}

impl<R: Read> Zst<R> {
    /// Create a decoder that rejects frames with a window of more than `max_memory_bytes`.
    pub fn new(source: R, max_memory_bytes: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(max_memory_bytes);
        Self {
            source: BufReader::new(source),
            decoder,
            within: false,
            failed: None,
        }
    }

    /// Decode the next block or frame header; return false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        if self.within {
            let some = BlockDecodingStrategy::UptoBlocks(1);
            if let Err(error) = self.decoder.decode_blocks(&mut self.source, some) {
                self.failed = Some(io::Error::other(error));
                let end = self
                    .decoder
                    .decode_blocks(END_OF_FRAME.as_slice(), BlockDecodingStrategy::All);
                end.map_err(io::Error::other)?;
            }
            return Ok(true);
        }
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.init(&mut self.source) {
            Ok(()) => self.within = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(true)
    }

    /// Finish a frame: report a delayed error or a wrong checksum.
    fn leave(&mut self) -> io::Result<()> {
        self.within = false;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("its checksum differs"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Zst<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if self.within {
                let given = self.decoder.read(into)?;
                if given > 0 {
                    return Ok(given);
                }
                if self.decoder.is_finished() {
                    self.leave()?;
                    continue;
                }
            }
            if !self.advance()? {
                return Ok(0);
            }
        }
    }
}
