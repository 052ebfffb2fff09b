//! Applications: one that writes to streams, and one that reads all that comes.

use std::collections::BTreeMap;

use ackclock_core::Time;
use ackclock_plan::QuicPlan;
use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamEvent, StreamId, WriteError};

/// Zeros that an application writes, a block at a time.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The application at one end of a connection.
pub enum Application {
    /// It sends.
    Writer(Writer),
    /// It receives.
    Reader(Reader),
}

/// Streams that are written, each with the bytes that are left; an endless one has none.
pub struct Writer {
    stop: Time,
    shares: Vec<Option<u64>>,
    open: BTreeMap<StreamId, Option<u64>>,
    unacknowledged: usize,
    is_started: bool,
}

/// Bytes that were read.
#[derive(Default)]
pub struct Reader {
    pub read_bytes: u64,
}

impl Writer {
    /// An application that stops at a time.
    pub fn new(plan: &QuicPlan, stop: Time) -> Writer {
        let streams = u64::from(plan.streams);
        let share = |number: u64| {
            plan.size_bytes
                .map(|size| size / streams + u64::from(number < size % streams))
        };
        Writer {
            stop,
            shares: (0..streams).map(share).collect(),
            open: BTreeMap::new(),
            unacknowledged: 0,
            is_started: false,
        }
    }

    /// Time at which the application stops, whatever has not arrived.
    pub fn stop(&self) -> Time {
        self.stop
    }

    /// True if every byte was acknowledged.
    pub fn is_finished(&self) -> bool {
        self.is_started && self.unacknowledged == 0
    }

    /// Open the streams and write.
    pub fn start(&mut self, connection: &mut Connection) {
        self.is_started = true;
        for share in std::mem::take(&mut self.shares) {
            if let Some(id) = connection.streams().open(Dir::Uni) {
                self.open.insert(id, share);
                self.unacknowledged += 1;
                self.write(connection, id);
            }
        }
    }

    /// Handle an event of the streams.
    pub fn on_event(&mut self, connection: &mut Connection, event: &StreamEvent) {
        match event {
            StreamEvent::Writable { id } => self.write(connection, *id),
            StreamEvent::Finished { .. } | StreamEvent::Stopped { .. } => {
                self.unacknowledged = self.unacknowledged.saturating_sub(1);
            }
            StreamEvent::Opened { .. }
            | StreamEvent::Readable { .. }
            | StreamEvent::Available { .. } => {}
        }
    }

    /// Write to a stream as much as it takes, and end it after its last byte.
    fn write(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(left) = self.open.get_mut(&id) else {
            return;
        };
        let mut stream = connection.send_stream(id);
        while *left != Some(0) {
            let length = left.map_or(ZEROS.len(), |left| ZEROS.len().min(left as usize));
            match stream.write_chunks(&mut [Bytes::from_static(&ZEROS[..length])].as_mut_slice()) {
                Ok(written) => {
                    if let Some(left) = left {
                        *left -= written as u64;
                    }
                }
                Err(WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return;
                }
            }
        }
        // A stream that its receiver has stopped is over.
        let _ = stream.finish();
        self.open.remove(&id);
    }
}

impl Reader {
    /// Handle an event of the streams.
    pub fn on_event(&mut self, connection: &mut Connection, event: &StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = connection.streams().accept(*dir) {
                    self.read(connection, id);
                }
            }
            StreamEvent::Readable { id } => self.read(connection, *id),
            StreamEvent::Writable { .. }
            | StreamEvent::Finished { .. }
            | StreamEvent::Stopped { .. }
            | StreamEvent::Available { .. } => {}
        }
    }

    /// Read a stream in order, as far as it has arrived.
    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.read_bytes += chunk.bytes.len() as u64;
        }
        // Whether flow control credit goes out is seen when the connection is polled next.
        let _ = chunks.finalize();
    }
}
