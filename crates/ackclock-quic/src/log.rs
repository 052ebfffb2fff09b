//! The stack's own log of a connection, in the format qlog (draft-ietf-quic-qlog-main-schema), as JSON text sequences.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ackclock_core::Time;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};

use crate::clock::instant;

/// Bytes that the stack has written since they were last taken. Times in them are the run's.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Take what was written.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl QlogFactory for Log {
    fn for_connection(
        &self,
        _side: Side,
        _remote: SocketAddr,
        _connection_id: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(Box::new(self.clone()));
        config.start_time(instant(Time::ZERO));
        Some(config)
    }
}
