use proptest::prelude::*;

use super::*;
use crate::packet::{Checksum, Flags, Options};

fn end(address: &str, port: u16) -> Endpoint {
    Endpoint {
        address: address.parse::<IpAddr>().unwrap().into(),
        port,
    }
}

fn segment(source: Endpoint, destination: Endpoint) -> Segment {
    Segment {
        time_ns: None,
        file: 0,
        interface: 0,
        place: 0,
        outbound: None,
        source,
        destination,
        sequence: 0,
        acknowledgement: 0,
        flags: Flags(Flags::ACK),
        window: 0,
        payload_bytes: 0,
        options: Options::default(),
        identification: None,
        hops: 64,
        ecn: 0,
        packet_bytes: 40,
        frame_bytes: 54,
        checksum_field: None,
        checksum: Checksum::Unknown,
        encapsulations: 0,
        super_segment: false,
        fragmented: false,
        duplicate: false,
    }
}

/// tcpdump 4.99.3 with libpcap 1.10.3 takes the same packets.
#[test]
fn addresses_and_ports_match_as_in_pcap_filter_7() {
    let request = segment(end("192.0.2.1", 50_000), end("198.51.100.7", 443));
    let answer = segment(end("198.51.100.7", 443), end("192.0.2.1", 50_000));
    let six = segment(end("2001:db8::1", 80), end("2001:db8::2", 8080));
    for (text, expected) in [
        ("", [true, true, true]),
        ("tcp", [true, true, true]),
        ("ip", [true, true, false]),
        ("ip6", [false, false, true]),
        ("host 192.0.2.1", [true, true, false]),
        ("src 192.0.2.1", [true, false, false]),
        ("dst host 192.0.2.1", [false, true, false]),
        ("src or dst host 192.0.2.1", [true, true, false]),
        ("src and dst net 2001:db8::/32", [false, false, true]),
        ("net 192.0.2", [true, true, false]),
        ("net 192.0.0.0/16", [true, true, false]),
        ("net 192.0.2.128/25", [false, false, false]),
        ("net 0.0.0.0/0", [true, true, false]),
        ("net ::/0", [false, false, true]),
        ("host 2001:db8::2", [false, false, true]),
        ("port 443", [true, true, false]),
        ("src port 443", [false, true, false]),
        ("port 80 or 443", [true, true, true]),
        ("dst port 80 or 8080", [false, false, true]),
        ("portrange 8000-9000", [false, false, true]),
        ("portrange 9000-8000", [false, false, true]),
        ("not port 443", [false, false, true]),
        ("! host 192.0.2.1 && tcp", [false, false, true]),
        ("not not port 443", [true, true, false]),
        // `and` and `or` are equals: (all or …) and dst port 443.
        ("tcp or port 80 and dst port 443", [true, false, false]),
        ("tcp or (port 80 and dst port 443)", [true, true, true]),
        ("src host 192.0.2.1 or src port 80", [true, false, true]),
    ] {
        let filter: Filter = text.parse().unwrap();
        assert_eq!(
            [request, answer, six].map(|segment| filter.matches(&segment)),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_syntax_error_is_reported_with_its_column() {
    for (text, line) in [
        ("port http", "column 6: found \"http\"; expected a number from 0 to 65535"),
        ("port 65536", "column 6: found \"65536\"; expected a number from 0 to 65535"),
        ("port +80", "column 6: found \"+80\"; expected a number from 0 to 65535"),
        ("host example.org", "column 6: found \"example.org\"; expected an address such as 192.0.2.1 or 2001:db8::1"),
        (
            "net 192.0.2.1/24",
            "column 5: found \"192.0.2.1/24\"; expected a network such as 192.0.2.0/24, 192.0 or 2001:db8::/32, with no bit set \
             behind it",
        ),
        ("portrange 80", "column 11: found \"80\"; expected two numbers from 0 to 65535 such as 8000-8080"),
        ("(port 80", "column 9: found the end; expected and, or, or )"),
        ("port 80)", "column 8: found \")\"; expected and, or, or the end"),
        ("port 80 host ::1", "column 9: found \"host\"; expected and, or, or the end"),
        ("udp", "column 1: found \"udp\"; expected host, net, port, portrange, src, dst, not, tcp, ip, ip6 or ("),
        ("not", "column 4: found the end; expected host, net, port, portrange, src, dst, not, tcp, ip, ip6 or ("),
        ("80", "column 1: found \"80\"; expected host, net, port, portrange, src, dst, not, tcp, ip, ip6 or ("),
        ("größe", "column 1: found \"größe\"; expected host, net, port, portrange, src, dst, not, tcp, ip, ip6 or ("),
        ("port 80 & é", "column 9: found \"&\"; expected and, or, or the end"),
    ] {
        assert_eq!(text.parse::<Filter>().unwrap_err().to_string(), line, "{text}");
    }
    let deep = format!("{}tcp{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(
        deep.parse::<Filter>().unwrap_err().expected,
        "fewer parentheses"
    );
    assert!(format!("{}tcp", "not ".repeat(100_001))
        .parse::<Filter>()
        .is_ok());
}

fn filters() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("tcp".to_owned()),
        Just("ip6".to_owned()),
        any::<u16>().prop_map(|port| format!("src port {port}")),
        any::<(u16, u16)>().prop_map(|(low, high)| format!("portrange {low}-{high}")),
        any::<u32>()
            .prop_map(|address| format!("dst host {}", std::net::Ipv4Addr::from_bits(address))),
        any::<u128>().prop_map(|address| format!(
            "src and dst host {}",
            std::net::Ipv6Addr::from_bits(address)
        )),
        any::<u8>().prop_map(|first| format!("net {first}")),
    ];
    value.prop_recursive(6, 40, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("not {inner}")),
            (inner.clone(), inner.clone())
                .prop_map(|(first, second)| format!("({first} and {second})")),
            (inner.clone(), inner).prop_map(|(first, second)| format!("({first}) or {second}")),
        ]
    })
}

proptest! {
    /// Parsing the printed form gives the same filter.
    #[test]
    fn a_filter_is_read_as_it_is_printed(text in filters()) {
        let filter: Filter = text.parse().unwrap();
        let printed = filter.to_string();
        prop_assert_eq!(printed.parse::<Filter>().unwrap(), filter, "{}", printed);
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "[ ()!&|a-z0-9.:/é-]{0,40}") {
        if let Err(is_unreadable) = text.parse::<Filter>() {
            prop_assert!((1..=text.chars().count() + 1).contains(&is_unreadable.column));
        }
    }
}
