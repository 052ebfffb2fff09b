//! Headers of the flows' packets, as far as a discipline reads them.

use std::sync::Arc;

use crate::packet::Packet;

/// Header fields of a flow's packets, besides the flow itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHeader {
    /// Priority, 0 to 15, as in `tc-prio(8)`.
    pub priority: u8,
    /// Codepoint of the DS field, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// IP packet of an ACK without SACK blocks; 0: the flow has no ACKs.
    pub bare_ack_bytes: u16,
    /// Hosts: the source and the destination of the data.
    pub hosts: [u32; 2],
    /// True for programs' packets: each has a codepoint of its own, and the priority that a router derives from it.
    pub is_external: bool,
}

/// Priorities that a router of Linux gives to the packets that it forwards, by the last three bits of the codepoint:
/// best effort, bulk, interactive and interactive bulk, twice each (`ip_tos2prio` of net/ipv4/route.c, which reads the
/// TOS field of RFC 1349).
const PRIORITIES: [u8; 8] = [0, 0, 2, 2, 6, 6, 4, 4];

/// The headers of all flows: for each run of flows with the same one, the number of the first flow and the header. The
/// first run begins with flow 0.
#[derive(Clone, Debug)]
pub struct FlowHeaders(Option<Arc<[(u32, FlowHeader)]>>);

impl FlowHeaders {
    /// Headers in which all is 0.
    pub const NONE: &'static FlowHeaders = &FlowHeaders(None);

    /// Headers by flow, in the order of the flows' numbers; a flow without one has that of the flow before.
    pub fn new(flows: impl IntoIterator<Item = (u32, FlowHeader)>) -> FlowHeaders {
        let mut runs: Vec<_> = flows.into_iter().collect();
        runs.dedup_by_key(|&mut (_, header)| header);
        FlowHeaders(Some(runs.into()))
    }

    /// The header of a packet.
    #[inline]
    pub fn of_packet(&self, packet: &Packet) -> FlowHeader {
        let header = self.of(packet.flow);
        if !header.is_external {
            return header;
        }
        let dscp = packet.flags.dscp();
        FlowHeader {
            priority: PRIORITIES[usize::from(dscp & 7)],
            dscp,
            ..header
        }
    }

    /// The header of a flow.
    #[inline]
    pub fn of(&self, flow: u32) -> FlowHeader {
        let runs = self.0.as_deref().unwrap_or_default();
        let after = runs.partition_point(|&(first, _)| first <= flow);
        let known = after.checked_sub(1).map(|of| runs[of].1);
        known.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, Flags, NO_PACKET};

    fn with_dscp(dscp: u8) -> FlowHeader {
        FlowHeader {
            dscp,
            ..FlowHeader::default()
        }
    }

    #[test]
    fn a_programs_packet_has_its_own_codepoint_and_a_routers_priority() {
        let external = FlowHeader {
            is_external: true,
            ..with_dscp(0)
        };
        let headers = FlowHeaders::new([(0, with_dscp(8)), (1, external)]);
        let found = |flow, dscp| {
            let flags = Flags::of(Ecn::Ect0).with_dscp(dscp);
            let header = headers.of_packet(&Packet {
                flow,
                flags,
                ..NO_PACKET
            });
            (header.dscp, header.priority)
        };
        assert_eq!(found(0, 46), (8, 0));
        assert_eq!(
            [0, 8, 46, 4, 2].map(|dscp| found(1, dscp).0),
            [0, 8, 46, 4, 2]
        );
        assert_eq!(
            [0, 8, 46, 4, 2].map(|dscp| found(1, dscp).1),
            [0, 0, 4, 6, 2]
        );
    }

    #[test]
    fn a_flow_has_the_header_of_its_run() {
        let headers = FlowHeaders::new(
            [(0, 8), (1, 8), (2, 46), (9, 0)].map(|(flow, dscp)| (flow, with_dscp(dscp))),
        );
        let found = [0, 1, 2, 8, 9, 1000].map(|flow| headers.of(flow).dscp);
        assert_eq!(found, [8, 8, 46, 46, 0, 0]);
        assert_eq!(FlowHeaders::NONE.of(3), FlowHeader::default());
    }
}
