//! Input streams of captures: files and standard input, plain or compressed as gz, zst or xz, which their first bytes
//! identify.
//!
//! The libraries are Rust: `flate2` with `zlib-rs`, `ruzstd`, `lzma-rust2`. The formats' own libraries in C decompress
//! captures in half the time (47 MB: xz .09 s and not .17 s, zstd .014 s and not .023 s), but take 41 s to compile,
//! these 16 s, on every installation from source.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::error::ReadError;
use zst::Zst;

mod zst;

/// The path that stands for standard input.
pub const STANDARD_INPUT: &str = "-";
/// The memory limit of a decompressor: `xz -9` takes 65 MiB, `zstd --ultra -22` and `--long` 128 MiB.
const MAX_DECODER_BYTES: u64 = 256 << 20;
/// The size of a read from xz: a read that fails returns none of its bytes.
const XZ_PIECE_BYTES: usize = 4096;

/// A stream of bytes, decompressed.
pub struct Source {
    bytes: Box<dyn Read + Send>,
    compression: Option<&'static str>,
}

impl Source {
    /// Open a file, or standard input if the path is `-`.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        if path.as_os_str() == STANDARD_INPUT {
            return Self::new(io::stdin());
        }
        let file = File::open(path).map_err(ReadError::System)?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            return Err(ReadError::NotACapture {
                actual: "a folder".into(),
            });
        }
        Self::new(file)
    }

    /// Wrap a stream in the decompressor that its first bytes identify.
    ///
    /// # Errors
    /// The first bytes cannot be read.
    pub fn new(mut bytes: impl Read + Send + 'static) -> Result<Self, ReadError> {
        let mut magic = Vec::with_capacity(6);
        (&mut bytes)
            .take(6)
            .read_to_end(&mut magic)
            .map_err(ReadError::System)?;
        let first = magic.clone();
        let whole = Cursor::new(magic).chain(bytes);
        let (bytes, compression): (Box<dyn Read + Send>, _) = match first.as_slice() {
            [0x1f, 0x8b, ..] => (Box::new(MultiGzDecoder::new(whole)), Some("gz")),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                (Box::new(Zst::new(whole, MAX_DECODER_BYTES)), Some("zst"))
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0] => (Box::new(xz(whole)), Some("xz")),
            _ => (Box::new(whole), None),
        };
        Ok(Self { bytes, compression })
    }

    /// Return the name of the compression format, if any.
    pub fn compression(&self) -> Option<&'static str> {
        self.compression
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Source")
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let limit = match self.compression {
            Some("xz") => into.len().min(XZ_PIECE_BYTES),
            _ => into.len(),
        };
        self.bytes
            .read(&mut into[..limit])
            .map_err(|error| match self.compression {
                Some(kind) => io::Error::new(
                    error.kind(),
                    format!("the {kind} data is damaged or breaks off ({error})"),
                ),
                None => error,
            })
    }
}

fn xz<R: Read>(bytes: R) -> XzReader<BufReader<R>> {
    XzReader::new_mem_limit(
        BufReader::new(bytes),
        true,
        (MAX_DECODER_BYTES >> 10) as u32,
    )
}

#[cfg(test)]
mod tests;
