//! The flows of UDP as one JSON document. Null is what cannot be known.

use std::net::SocketAddr;

use ackclock_pcap::packet::quic::is_reserved;
use ackclock_pcap::packet::{ConnectionId, Endpoint, IcmpKind};
use serde_json::{json, Value};

use super::connection::{AddressChange, QuicConnection};
use super::flow::{Direction, UdpFlow};
use super::gaps::Gap;
use super::spin::SpinState;
use super::UdpFlows;
use crate::icmp::IcmpReport;

/// The ends, in their order.
const ENDS: [&str; 2] = ["client", "server"];
/// The types of packets, in the order of their flags.
const TYPES: [&str; 7] = [
    "initial",
    "zero_rtt",
    "handshake",
    "retry",
    "version_negotiation",
    "short",
    "other",
];

/// Return the flows with the most bytes, in the order of their numbers, and the sum of those that are not listed.
pub fn report(flows: &UdpFlows, max_flows: usize) -> Value {
    let mut order: Vec<_> = flows.flows().iter().collect();
    order.sort_by_key(|(&number, flow)| (std::cmp::Reverse(flow.payload_bytes()), number));
    let (listed, rest) = order.split_at(order.len().min(max_flows));
    let mut unlisted = flows.unlisted();
    for (_, flow) in rest {
        unlisted.flows += 1;
        unlisted.payload_bytes += flow.payload_bytes();
        unlisted.datagrams += datagrams(flow);
    }
    let mut listed = listed.to_vec();
    listed.sort_unstable_by_key(|(&number, _)| number);
    let errors = flows.icmp_reports();
    let about = |number: u32| errors.iter().filter(move |one| one.flow / 2 == number);
    json!({
        "flows": listed.iter().map(|&(&number, flow)| of_flow(number, flow, about(number))).collect::<Vec<_>>(),
        "unlisted": {
            "flows": unlisted.flows,
            "datagrams": unlisted.datagrams,
            "bytes": unlisted.payload_bytes,
        },
    })
}

fn datagrams(flow: &UdpFlow) -> u64 {
    flow.directions.iter().map(|one| one.datagrams).sum()
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn address(end: Endpoint) -> String {
    SocketAddr::new(end.address.ip(), end.port).to_string()
}

fn of_flow<'a>(number: u32, flow: &UdpFlow, errors: impl Iterator<Item = &'a IcmpReport>) -> Value {
    let gaps = &flow.gaps;
    let [client, server] = &flow.directions;
    json!({
        "id": number,
        "client": address(flow.ends[0]),
        "server": address(flow.ends[1]),
        "protocol": flow.quic().map(|_| "quic"),
        "start_s": seconds(flow.span_ns.0),
        "end_s": seconds(flow.span_ns.1),
        "datagrams": datagrams(flow),
        "bytes": flow.payload_bytes(),
        "from_client": of_direction(client, flow),
        "from_server": of_direction(server, flow),
        "rates": {
            "interval_s": flow.rates.interval_s(),
            "client_bps": flow.rates.bps(0),
            "server_bps": flow.rates.bps(1),
        },
        "gaps": {
            "count": gaps.count,
            "seconds": seconds(gaps.total_ns),
            "client_application_s": seconds(gaps.application_ns[0]),
            "server_application_s": seconds(gaps.application_ns[1]),
            "listed": gaps.listed.iter().map(of_gap).collect::<Vec<_>>(),
        },
        "icmp": errors.map(of_errors).collect::<Vec<_>>(),
        "quic": flow.quic().map(of_connection),
        "segments_lost": null,
    })
}

fn of_errors(report: &IcmpReport) -> Value {
    json!({
        "sender": ENDS[report.flow as usize % 2],
        "kind": IcmpKind::NAMES[report.kind as usize],
        "reporter": report.reporter.to_string(),
        "mtu": report.mtu,
        "errors": report.errors,
        "first_s": report.first_s,
    })
}

fn of_direction(one: &Direction, flow: &UdpFlow) -> Value {
    let span_s = one
        .span_ns
        .map(|(first_ns, last_ns)| seconds(last_ns - first_ns));
    let rate = span_s.filter(|&span_s| span_s > 0.0);
    json!({
        "datagrams": one.datagrams,
        "bytes": one.payload_bytes,
        "min_bytes": one.sizes.map(|(min, _)| min),
        "max_bytes": one.sizes.map(|(_, max)| max),
        "ack_sized": flow.quic().filter(|quic| quic.has_rfc9000_layout()).map(|_| one.ack_sized),
        "rate_bps": rate.map(|span_s| 8.0 * one.payload_bytes as f64 / span_s),
        "start_s": one.span_ns.map(|(first_ns, _)| seconds(first_ns)),
        "end_s": one.span_ns.map(|(_, last_ns)| seconds(last_ns)),
        "max_gap_s": (one.datagrams > 1).then(|| seconds(one.max_gap_ns)),
        "ecn": {
            "ect0": one.ecn[2],
            "ect1": one.ecn[1],
            "ce": one.ecn[3],
        },
    })
}

fn of_gap(gap: &Gap) -> Value {
    json!({
        "start_s": seconds(gap.start_ns),
        "duration_s": seconds(gap.duration_ns),
        "class": if gap.is_application { "application" } else { "undecided" },
        "next": ENDS[gap.next],
    })
}

fn of_connection(quic: &QuicConnection) -> Value {
    let handshake = &quic.handshake;
    let wait = handshake.amplification;
    let types = TYPES.iter().zip(quic.datagrams);
    json!({
        "version": quic.version.map(version_name),
        "versions_offered": quic.offered.iter().map(|&version| version_name(version)).collect::<Vec<_>>(),
        "datagrams": types.map(|(name, count)| ((*name).to_owned(), json!(count))).collect::<serde_json::Map<_, _>>(),
        "client_id": quic.ids[0].map(id_name),
        "server_id": quic.ids[1].map(id_name),
        "id_changes": quic.id_changes,
        "handshake": {
            "state": handshake.state(),
            "rtt_s": handshake.rtt_ns().map(seconds),
            "to_client_s": handshake.to_client_ns.map(seconds),
            "to_server_s": handshake.to_server_ns.map(seconds),
            "duration_s": handshake.duration_ns().map(seconds),
            "tried_s": seconds(handshake.tried_ns()),
            "amplification_waits": wait.count,
            "amplification_wait_s": seconds(wait.waited_ns),
            "amplification_sent_bytes": (wait.count > 0).then_some(wait.sent_bytes),
            "amplification_received_bytes": (wait.count > 0).then_some(wait.received_bytes),
        },
        "spin": of_spin(quic),
        "address_changes": quic.address_changes.iter().map(of_change).collect::<Vec<_>>(),
    })
}

fn of_spin(quic: &QuicConnection) -> Value {
    let rtts = quic.spin.rtts();
    let [all, to_client, to_server] = rtts.unwrap_or_default();
    json!({
        "state": SpinState::NAMES[quic.spin.state() as usize],
        "rtt_samples": rtts.map(|_| all.count),
        "rtt_min_s": all.min_s(),
        "rtt_mean_s": all.mean_s(),
        "rtt_max_s": all.max_s(),
        "to_client_min_s": to_client.min_s(),
        "to_server_min_s": to_server.min_s(),
    })
}

fn of_change(change: &AddressChange) -> Value {
    let is_port = change.from.address == change.to.address;
    json!({
        "time_s": seconds(change.time_ns),
        "from": address(change.from),
        "to": address(change.to),
        "kind": if is_port { "port" } else { "address" },
    })
}

fn id_name(id: ConnectionId) -> String {
    let digits = id.bytes().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digit = |value: u8| char::from_digit(value.into(), 16);
    digits.filter_map(digit).collect()
}

/// Return a version's name: `1`, `2`, `draft-29`, `Q046`, `reserved` or its number.
fn version_name(version: u32) -> String {
    let letters = version.to_be_bytes();
    match version {
        1 => "1".to_owned(),
        0x6b33_43cf => "2".to_owned(),
        0xff00_0000..=0xff00_00ff => format!("draft-{}", version & 0xff),
        _ if is_reserved(version) => "reserved".to_owned(),
        _ if letters.iter().all(u8::is_ascii_alphanumeric) => {
            letters.map(char::from).iter().collect()
        }
        _ => format!("0x{version:08x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_names_of_their_specifications() {
        let named = [
            1,
            0x6b33_43cf,
            0xff00_001d,
            0x5130_3436,
            0x1a2a_3a4a,
            0xface_b002,
        ];
        let expected = ["1", "2", "draft-29", "Q046", "reserved", "0xfaceb002"];
        assert_eq!(named.map(version_name), expected);
    }
}
