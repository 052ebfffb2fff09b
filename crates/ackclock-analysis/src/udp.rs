//! UDP datagrams in captures: flows by their ends, and QUIC connections by their ends and connection IDs.
//!
//! QUIC is encrypted and nothing here has keys: what its headers, sizes and times show is what there is (RFC 9312).
//! Losses, windows and retransmissions are not visible.
//!
//! A datagram of an unknown pair of ends whose short header has the connection ID of a known connection to the same
//! server continues that one: the client has moved, or a NAT has bound it anew (RFC 9000 section 9). A client that moves
//! to a connection ID that it has not used before cannot be followed.

use std::collections::{BTreeMap, HashMap};

use ackclock_pcap::packet::{ConnectionId, Datagram, Endpoint, IcmpError, PacketTypes};

use crate::icmp::{IcmpLog, IcmpReport};

use connection::AddressChange;
use flow::UdpFlow;

mod connection;
mod flow;
mod gaps;
mod handshake;
mod rates;
mod report;
mod spin;

pub use report::report;

/// Flows that are kept; when there are more, the half with the least bytes is summed up.
const MAX_FLOWS: usize = 16_384;
/// Keys of flows that are kept, with those that have become stale.
const MAX_KEYS: usize = 16 * MAX_FLOWS;
/// The lengths of connection IDs that are looked up for a short header.
const ID_BYTES: std::ops::RangeInclusive<usize> = 4..=20;

/// Flows that are no longer kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// Their number; one that went on later counts again.
    pub flows: u64,
    /// Their datagrams.
    pub datagrams: u64,
    /// Their UDP payload.
    pub payload_bytes: u64,
}

/// All flows of UDP.
#[derive(Debug, Default)]
pub struct UdpFlows {
    flows: BTreeMap<u32, UdpFlow>,
    /// The last flow between two ends.
    by_ends: HashMap<(Endpoint, Endpoint), u32>,
    /// Connections by the end that chose a connection ID.
    by_id: HashMap<(Endpoint, ConnectionId), u32>,
    begun: u32,
    unlisted: Unlisted,
    /// ICMP errors by twice the flow's number, and one more if they quote the server's datagrams.
    icmp: IcmpLog,
}

impl UdpFlows {
    /// Take a datagram.
    pub fn take(&mut self, datagram: &Datagram, now_ns: i64) {
        let number = self.number(datagram, now_ns);
        let Some(flow) = self.flows.get_mut(&number) else {
            return;
        };
        if let Some((end, id)) = flow.take(datagram, now_ns) {
            self.by_id.insert((flow.ends[end], id), number);
        }
        if self.by_id.len() > MAX_KEYS || self.by_ends.len() > MAX_KEYS {
            self.forget_stale();
        }
    }

    /// Return the flow of a datagram, a new one if there is none. Connections that share their ends differ by
    /// the connection ID to which a datagram is sent.
    fn number(&mut self, datagram: &Datagram, now_ns: i64) -> u32 {
        let ends = ordered(datagram.source, datagram.destination);
        let Some(&last) = self.by_ends.get(&ends) else {
            return self
                .moved(datagram, now_ns)
                .unwrap_or_else(|| self.begin(datagram, now_ns));
        };
        let flow = &self.flows[&last];
        let Some(quic) = flow.quic() else {
            return last;
        };
        let is_new = flow.end(datagram) == 0 && quic.is_new_connection(&datagram.quic);
        match self.by_id_and_ends(datagram) {
            Some(number) => number,
            None if is_new => self.begin(datagram, now_ns),
            None => last,
        }
    }

    /// Return the connection to whose connection ID a datagram is sent, unless that is between other ends.
    fn by_id_and_ends(&self, datagram: &Datagram) -> Option<u32> {
        let number = self.by_id(datagram)?;
        let [client, server] = self.flows[&number].ends;
        let is_between = ordered(client, server) == ordered(datagram.source, datagram.destination);
        is_between.then_some(number)
    }

    fn by_id(&self, datagram: &Datagram) -> Option<u32> {
        let of = |id: ConnectionId| self.by_id.get(&(datagram.destination, id)).copied();
        if let Some(id) = datagram.quic.destination_id {
            return of(id);
        }
        let bytes = datagram.quic.short_bytes?;
        let prefixes = ID_BYTES.filter_map(|length| bytes.bytes().get(..length));
        prefixes.filter_map(ConnectionId::new).find_map(of)
    }

    /// Return the connection that a datagram from another address continues.
    fn moved(&mut self, datagram: &Datagram, now_ns: i64) -> Option<u32> {
        if datagram.quic.types != PacketTypes(PacketTypes::SHORT) {
            return None;
        }
        let number = self.by_id(datagram)?;
        let flow = self.flows.get_mut(&number)?;
        if flow.ends[1] != datagram.destination {
            return None;
        }
        let from = std::mem::replace(&mut flow.ends[0], datagram.source);
        flow.quic_mut()?.move_client(AddressChange {
            time_ns: now_ns,
            from,
            to: datagram.source,
        });
        let ends = ordered(datagram.source, datagram.destination);
        self.by_ends.insert(ends, number);
        Some(number)
    }

    fn begin(&mut self, datagram: &Datagram, now_ns: i64) -> u32 {
        if self.flows.len() >= MAX_FLOWS {
            self.forget_small();
        }
        let number = self.begun;
        self.begun += 1;
        self.flows.insert(number, UdpFlow::new(datagram, now_ns));
        let ends = ordered(datagram.source, datagram.destination);
        self.by_ends.insert(ends, number);
        number
    }

    /// Sum up the half of the flows that has the least bytes, of equally large ones the earlier.
    fn forget_small(&mut self) {
        let mut order: Vec<(u64, u32)> = (self.flows.iter())
            .map(|(&number, flow)| (flow.payload_bytes(), number))
            .collect();
        order.sort_unstable();
        for (payload_bytes, number) in &order[..order.len() / 2] {
            let Some(flow) = self.flows.remove(number) else {
                continue;
            };
            self.unlisted.flows += 1;
            self.unlisted.payload_bytes += payload_bytes;
            self.unlisted.datagrams += flow.directions.iter().map(|one| one.datagrams).sum::<u64>();
        }
        self.forget_stale();
    }

    /// Forget keys of flows that are no longer kept, ends that a client has left, and connection IDs no longer in use.
    fn forget_stale(&mut self) {
        let flows = &self.flows;
        self.by_ends.retain(|ends, number| {
            let flow = flows.get(number);
            flow.is_some_and(|flow| ordered(flow.ends[0], flow.ends[1]) == *ends)
        });
        self.by_id.retain(|(end, id), number| {
            let flow = flows.get(number);
            flow.is_some_and(|flow| flow.has_id(*end, *id))
        });
    }

    /// Take an ICMP error that quotes a datagram: it is about the last flow between those ends, if that is kept.
    pub fn take_icmp_error(&mut self, error: &IcmpError, now_ns: i64) {
        let ends = ordered(error.source, error.destination);
        let Some(&number) = self.by_ends.get(&ends) else {
            return;
        };
        if let Some(flow) = self.flows.get(&number) {
            let is_of_server = flow.ends[1] == error.source;
            self.icmp
                .count(error, 2 * number + u32::from(is_of_server), now_ns);
        }
    }

    /// Return the ICMP errors by the flow: of each twice its number, and one more if they quote the server's datagrams.
    pub fn icmp_reports(&self) -> Vec<IcmpReport> {
        self.icmp.reports()
    }

    /// Return the flows by their numbers.
    pub fn flows(&self) -> &BTreeMap<u32, UdpFlow> {
        &self.flows
    }

    /// Return the sum of the flows that are not kept.
    pub fn unlisted(&self) -> Unlisted {
        self.unlisted
    }
}

fn ordered(one: Endpoint, other: Endpoint) -> (Endpoint, Endpoint) {
    if one <= other {
        (one, other)
    } else {
        (other, one)
    }
}

#[cfg(test)]
mod tests;
