//! Connections with hosts outside the scenario, by a relay at the first end.
//!
//! The relay is a program with a socket for each transport and version of IP. A packet to a host outside is written to
//! the relay's end with the relay's address as destination, and as source an address of [`NETWORK`] or [`NETWORK_6`] that
//! encodes the connection's number, to which the relay responds. ICMP, which has no ports, is handed to the relay as it
//! is. On the links and in captures, packets have the original addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::connections::Connection;
use crate::ip::{self, Key};

/// The first address of 10.128.0.0/9, of which each connection has one.
const NETWORK: u32 = 0x0a80_0000;
/// The network fd00:77:0:1::/96, of which each connection over IPv6 has an address.
const NETWORK_6: u128 = 0xfd00_0077_0000_0001 << 64;
/// Connections that have an address.
const CONNECTIONS: u32 = 1 << 23;
/// Number of the relay's end.
pub const RELAY_END: usize = 0;

/// Sockets of a relay for a version of IP.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// Address at the relay's end.
    pub address: IpAddr,
    /// Ports for TCP and for UDP.
    pub ports: [u16; 2],
}

/// A relay at the first end.
#[derive(Debug)]
pub struct Relay {
    /// Its sockets, at most one pair for a version of IP.
    pub listeners: Vec<Listener>,
    /// A non-blocking socket of the relay, over which packets of ICMP are exchanged with it.
    pub icmp: OwnedFd,
}

impl Relay {
    /// Redirect a packet of a numbered connection to the relay; returns false if the relay does not take it: only TCP and
    /// UDP, without fragments, of the versions of IP that it has.
    pub fn redirect(&self, packet: &mut [u8], number: u32, key: &Key) -> bool {
        let (from, source_port) = key.source;
        let mut listeners = self.listeners.iter();
        let Some(listener) = listeners.find(|one| one.address.is_ipv4() == from.is_ipv4()) else {
            return false;
        };
        let port = listener.ports[usize::from(key.protocol != ip::TCP)];
        let source = if from.is_ipv4() {
            Ipv4Addr::from(NETWORK | number).into()
        } else {
            Ipv6Addr::from(NETWORK_6 | u128::from(number)).into()
        };
        number < CONNECTIONS
            && ip::readdress(packet, (source, source_port), (listener.address, port))
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
        IpAddr::V6(address) => {
            let bits = u128::from(address) ^ NETWORK_6;
            (bits < u128::from(CONNECTIONS)).then_some(bits as u32)
        }
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
        for given in [0, 70_000, CONNECTIONS - 1] {
            let address = Ipv6Addr::from(NETWORK_6 | u128::from(given));
            assert_eq!(number(address.into()), Some(given));
        }
        for other in ["fd00:77::2", "fd00:77:0:1::80:0"] {
            assert_eq!(number(other.parse().expect("an address")), None);
        }
        for other in [[10, 77, 0, 1], [10, 127, 255, 255], [11, 0, 0, 0]] {
            assert_eq!(number(IpAddr::V4(Ipv4Addr::from(other))), None);
        }
    }
}
