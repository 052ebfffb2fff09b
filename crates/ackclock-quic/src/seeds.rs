//! Random numbers of an endpoint: connection IDs and the stack's own draws, all from one seed.

use noq_proto::{ConnectionId, ConnectionIdGenerator};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::time::Duration;

/// Bytes of a connection ID, as many as the stack's own generator makes.
const CONNECTION_ID_BYTES: usize = 8;

/// Draws of one endpoint.
pub struct Seeds(Pcg64Mcg);

impl Seeds {
    /// The draws of a seed.
    pub fn new(seed: u64) -> Seeds {
        Seeds(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A seed for the stack's generator.
    pub fn stack_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.0.fill_bytes(&mut seed);
        seed
    }

    /// A connection ID.
    pub fn connection_id(&mut self) -> ConnectionId {
        let mut bytes = [0; CONNECTION_ID_BYTES];
        self.0.fill_bytes(&mut bytes);
        ConnectionId::new(&bytes)
    }

    /// A seed for another generator.
    pub fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Generator of the connection IDs by which an endpoint is addressed.
pub struct ConnectionIds(pub Seeds);

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0.connection_id()
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
