//! Connections with hosts outside the scenario, by a relay at the first end.
//!
//! The relay is a program with a socket for each transport. A packet to a host outside is written to the relay's end with
//! the relay's address as destination, and as source an address of [`NETWORK`] that encodes the connection's number, to
//! which the relay responds. On the links and in captures, packets have the original addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::connections::Connection;
use crate::ip::{self, Key};

/// The first address of 10.128.0.0/9, of which each connection has one.
const NETWORK: u32 = 0x0a80_0000;
/// Connections that have an address.
const CONNECTIONS: u32 = 1 << 23;
/// Number of the relay's end.
pub const RELAY_END: usize = 0;

/// A relay at the first end.
#[derive(Clone, Copy, Debug)]
pub struct Relay {
    /// Address at that end.
    pub address: IpAddr,
    /// Ports for TCP and for UDP.
    pub ports: [u16; 2],
}

impl Relay {
    /// Redirect a packet of a numbered connection to the relay; returns false if the relay does not take it: only TCP and
    /// UDP of IPv4, and no fragments.
    pub fn redirect(&self, packet: &mut [u8], number: u32, key: &Key) -> bool {
        let port = self.ports[usize::from(key.protocol != ip::TCP)];
        let (_, source_port) = key.source;
        let source = (Ipv4Addr::from(NETWORK | number).into(), source_port);
        number < CONNECTIONS && ip::readdress(packet, source, (self.address, port))
    }

    /// Restore the original addresses in a response of the relay; returns false if it is none.
    pub fn restore(&self, packet: &mut [u8], destination: IpAddr, all: &[Connection]) -> bool {
        let found = number(destination).and_then(|number| all.get(number as usize));
        found.is_some_and(|one| ip::readdress(packet, one.key.source, one.key.destination))
    }
}

/// Keys of the connections by their numbers, as the first packet has it: the sender's end first.
#[derive(Clone, Debug, Default)]
pub struct Keys(Arc<Mutex<Vec<Key>>>);

impl Keys {
    pub(crate) fn push(&self, key: Key) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(key);
    }

    /// The key of a connection by the address that a relay sees of it; `None` for any other address.
    pub fn relayed(&self, address: IpAddr) -> Option<Key> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(number(address)? as usize).copied()
    }
}

/// The number of the connection that has an address.
fn number(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => {
            let bits = u32::from(address);
            (bits & !(CONNECTIONS - 1) == NETWORK).then_some(bits & (CONNECTIONS - 1))
        }
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_number_of_its_connection() {
        for given in [0, 1, 70_000, CONNECTIONS - 1] {
            assert_eq!(
                number(IpAddr::V4(Ipv4Addr::from(NETWORK | given))),
                Some(given)
            );
        }
        for other in [[10, 77, 0, 1], [10, 127, 255, 255], [11, 0, 0, 0]] {
            assert_eq!(number(IpAddr::V4(Ipv4Addr::from(other))), None);
        }
    }
}
