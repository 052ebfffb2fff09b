//! Data that come from a disk, or go to one.
//!
//! What is read is a regular file of somebody's, or one without a name that is filled first; what arrives goes into one
//! without a name. Such a file is gone when its process ends, however it does. Neither grows: it is read, and written,
//! cyclically. The page cache does not replace the disk: read pages are dropped, and what was written
//! is waited for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{fadvise, statvfs, Advice};
use rustix::net::{recv, send, RecvFlags, SendFlags};

use crate::run_spec::Stored;

/// The size of a read or write.
const BLOCK_BYTES: u64 = 256 << 10;
/// The bytes that are dropped from the page cache, or written back, at a time.
const STRETCH_BYTES: u64 = 8 << 20;

/// A disk at either end of a host's flows.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// The source of sent data; none: memory.
    pub source: Option<Source>,
    /// The sink of received data; none: they are discarded.
    pub sink: Option<Sink>,
}

impl Store {
    /// Open the store; the flows of a source begin at different places, or one would warm the cache for all.
    pub(crate) fn open(
        source: Option<&Stored>,
        sink: Option<&Stored>,
        flows: usize,
    ) -> io::Result<Store> {
        Ok(Store {
            source: source
                .map(|source| Source::open(source, flows))
                .transpose()?,
            sink: sink.map(Sink::open).transpose()?,
        })
    }
}

/// A file from which data are sent.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    bytes: u64,
    flows: u64,
    block: Vec<u8>,
    /// The time its reader waited.
    pub spent: Duration,
}

impl Source {
    fn open(given: &Stored, flows: usize) -> io::Result<Source> {
        let file = if given.place.is_dir() {
            filled(&given.place, given.bytes)?
        } else {
            regular(&given.place)?
        };
        forget(&file, 0, 0);
        Ok(Source {
            bytes: given.bytes.max(1),
            file,
            flows: flows.max(1) as u64,
            block: vec![0; BLOCK_BYTES as usize],
            spent: Duration::ZERO,
        })
    }

    /// Send on what follows the first `done` bytes of a flow, at most so much; how much the socket took.
    pub(crate) fn send(
        &mut self,
        socket: &OwnedFd,
        flow: u32,
        done: u64,
        limit: u64,
    ) -> io::Result<usize> {
        let first = self.bytes / self.flows * (u64::from(flow) % self.flows);
        let at = (first + done) % self.bytes;
        let length = limit.min(BLOCK_BYTES).min(self.bytes - at) as usize;
        let begun = Instant::now();
        let found = self.file.read_at(&mut self.block[..length], at)?;
        self.spent += begun.elapsed();
        if found == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = send(socket, &self.block[..found], SendFlags::NOSIGNAL)?;
        let (stretch, next) = (at / STRETCH_BYTES, (at + taken as u64) / STRETCH_BYTES);
        if next != stretch || at + taken as u64 == self.bytes {
            forget(&self.file, stretch * STRETCH_BYTES, STRETCH_BYTES);
        }
        Ok(taken)
    }
}

/// A file to which data are written.
#[derive(Debug)]
pub(crate) struct Sink {
    file: File,
    bytes: u64,
    at: u64,
    unsynced: u64,
    block: Vec<u8>,
    /// The time its writer waited.
    pub spent: Duration,
}

impl Sink {
    fn open(given: &Stored) -> io::Result<Sink> {
        Ok(Sink {
            file: unnamed(folder_of(&given.place))?,
            bytes: given.bytes.max(BLOCK_BYTES),
            at: 0,
            unsynced: 0,
            block: vec![0; BLOCK_BYTES as usize],
            spent: Duration::ZERO,
        })
    }

    /// Take what a socket has, a block at most, and write it; how much that was, 0 at the end of the data.
    pub(crate) fn take(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        let limit = BLOCK_BYTES.min(self.bytes - self.at) as usize;
        let (_, found) = recv(socket, &mut self.block[..limit], RecvFlags::DONTWAIT)?;
        let begun = Instant::now();
        self.file.write_all_at(&self.block[..found], self.at)?;
        self.at = (self.at + found as u64) % self.bytes;
        self.unsynced += found as u64;
        if self.unsynced >= STRETCH_BYTES {
            self.unsynced = 0;
            self.file.sync_data()?;
        }
        self.spent += begun.elapsed();
        Ok(found)
    }
}

/// The free space at a path, and the length of a file there, as `Store` would open it.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes that may be written.
    pub free_bytes: u64,
    /// The length of a file; none for a folder.
    pub file_bytes: Option<u64>,
}

/// Return the free space at a path; an unnamed file is created there as a test.
///
/// # Errors
/// It is no folder and no regular file, or cannot be read, or not be written in.
pub fn room(place: &Path) -> io::Result<Room> {
    let file_bytes = if place.is_dir() {
        None
    } else {
        Some(regular(place)?.metadata()?.len())
    };
    let folder = folder_of(place);
    unnamed(folder)?;
    let room = statvfs(folder)?;
    Ok(Room {
        free_bytes: room.f_bavail * room.f_frsize,
        file_bytes,
    })
}

/// Return the folder in which a file would be written: the folder itself, or the parent of a file.
fn folder_of(place: &Path) -> &Path {
    if place.is_dir() {
        return place;
    }
    let parent = place
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn regular(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_fifo() || kind.is_socket() || !kind.is_file() {
        return Err(io::Error::other("Not a regular file"));
    }
    File::open(path)
}

/// A file that no folder lists.
fn unnamed(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            // For file systems that have none.
            let path = folder.join(format!(".ackclock-data-{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            fs::remove_file(path)?;
            Ok(file)
        }
        outcome => outcome,
    }
}

/// One with so many bytes that no disk can compress, all of them on the disk.
fn filled(folder: &Path, bytes: u64) -> io::Result<File> {
    let file = unnamed(folder)?;
    let mut random = File::open("/dev/urandom")?;
    let mut block = vec![0; BLOCK_BYTES as usize];
    for at in (0..bytes).step_by(block.len()) {
        let length = (bytes - at).min(BLOCK_BYTES) as usize;
        random.read_exact(&mut block[..length])?;
        file.write_all_at(&block[..length], at)?;
    }
    file.sync_data()?;
    Ok(file)
}

/// Have the system's cache forget a stretch of a file; of no length: all of it. One that does not is memory.
fn forget(file: &File, at: u64, length: u64) {
    let _ = fadvise(file, at, NonZeroU64::new(length), Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn stored(place: &Path, bytes: u64) -> Stored {
        Stored {
            place: place.to_owned(),
            bytes,
        }
    }

    #[test]
    fn a_file_is_read_and_written_cyclically_and_removed() {
        let folder = std::env::temp_dir().join(format!("ackclock-store-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (bytes, own) = (3 * BLOCK_BYTES, stored(&folder, 3 * BLOCK_BYTES));
        let mut store = Store::open(Some(&own), Some(&own), 2).expect("files");
        let (one, other) = UnixStream::pair().expect("sockets");
        let (one, other) = (OwnedFd::from(one), OwnedFd::from(other));
        let (source, sink) = (
            store.source.as_mut().expect("a source"),
            store.sink.as_mut().expect("a sink"),
        );
        let mut moved = 0;
        while moved < 2 * bytes {
            let sent = source.send(&one, 1, moved, 10_000).expect("sent");
            let mut left = sent;
            while left > 0 {
                left -= sink.take(&other).expect("taken");
            }
            moved += sent as u64;
        }
        // Flow 1 of 2 began in the middle; all of the source has arrived twice.
        let mut expected = vec![0; bytes as usize];
        source.file.read_exact_at(&mut expected, 0).expect("read");
        expected.rotate_left(bytes as usize / 2);
        let mut found = vec![0; bytes as usize];
        sink.file.read_exact_at(&mut found, 0).expect("read");
        assert!(found == expected);
        assert_eq!(sink.file.metadata().expect("its length").len(), bytes);
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 0);
        fs::remove_dir(folder).expect("removed");
    }

    #[test]
    fn a_file_is_read_and_its_folder_written() {
        let file = std::env::temp_dir().join(format!("ackclock-file-{}", std::process::id()));
        fs::write(&file, "some data").expect("written");
        let found = room(&file).expect("room");
        assert_eq!(found.file_bytes, Some(9));
        let mut store = Store::open(Some(&stored(&file, 9)), None, 1).expect("a file");
        let (one, other) = UnixStream::pair().expect("sockets");
        let source = store.source.as_mut().expect("a source");
        let taken = source.send(&OwnedFd::from(one), 0, 5, 100).expect("sent");
        assert_eq!(taken, 4);
        drop(other);
        fs::remove_file(file).expect("removed");
    }

    #[test]
    fn only_regular_files_and_folders_are_places() {
        assert!(room("/dev/zero".as_ref()).is_err());
        assert!(room("/no/such/place".as_ref()).is_err());
        assert!(room("/proc".as_ref()).is_err());
    }
}
