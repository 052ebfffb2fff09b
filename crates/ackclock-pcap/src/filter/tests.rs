use proptest::prelude::*;

use super::*;
use crate::framing::Record;

const ETHERNET: u16 = 1;

/// An Ethernet header, and what it carries.
fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

/// TCP's SYN from 10.0.0.1 port 50000 to 198.51.100.7 port 443.
fn syn() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0];
    packet.extend([10, 0, 0, 1, 198, 51, 100, 7]);
    packet.extend([
        0xc3, 0x50, 1, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0,
    ]);
    packet
}

fn matches(text: &str, link: u16, bytes: &[u8]) -> bool {
    let filter: Filter = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    filter.matches(&Record {
        time_ns: None,
        interface: 0,
        link,
        outbound: None,
        frame_bytes: bytes.len() as u32,
        bytes,
    })
}

#[test]
fn a_frame_that_ends_before_a_loaded_field_matches_nothing() {
    let frame = ethernet(0x0800, &syn());
    let cut = &frame[..36];
    assert!(matches("not udp", ETHERNET, cut));
    assert!(!matches("dst port 443", ETHERNET, cut));
    assert!(!matches("not dst port 443", ETHERNET, cut));
    assert!(matches("src port 50000 or dst port 443", ETHERNET, cut));
    assert!(!matches("dst port 443 or src port 50000", ETHERNET, cut));
    assert!(!matches("len / (tcp[13] - 2) = 0", ETHERNET, &frame));
}

#[test]
fn tags_and_labels_move_what_is_to_their_right() {
    let tagged = ethernet(0x8100, &[&[0, 100, 8, 0][..], &syn()].concat());
    for (text, expected) in [
        ("tcp", false),
        ("vlan", true),
        ("vlan 100 and tcp dst port 443", true),
        ("vlan 101", false),
        ("vlan 101 or tcp", true),
        ("tcp or vlan", true),
        ("vlan and vlan", false),
    ] {
        assert_eq!(matches(text, ETHERNET, &tagged), expected, "{text}");
    }
    let labels = [0, 0, 0x70, 64, 0, 0, 0x91, 64];
    let labelled = ethernet(0x8847, &[&labels[..], &syn()].concat());
    for (text, expected) in [
        ("mpls 7", true),
        ("mpls 7 and mpls 9 and host 10.0.0.1", true),
        ("mpls and tcp", false),
        ("mpls and mpls and mpls", false),
    ] {
        assert_eq!(matches(text, ETHERNET, &labelled), expected, "{text}");
    }
}

/// libpcap rejects such an expression for such a file.
#[test]
fn a_primitive_of_another_link_type_does_not_match() {
    const RAW: u16 = 101;
    assert!(matches("tcp dst port https", RAW, &syn()));
    for text in ["ether host 2:0:0:0:0:1", "vlan", "arp", "multicast", "mpls"] {
        assert!(!matches(text, RAW, &syn()), "{text}");
    }
    // An unsupported link type is for the file's report.
    assert!(matches("tcp", 195, &[]));
}

#[test]
fn a_syntax_error_is_reported_with_its_column() {
    for (text, line) in [
        ("port httpx", "column 6: found \"httpx\"; expected a number from 0 to 65535, or a service such as http"),
        ("port 65536", "column 6: found \"65536\"; expected a number from 0 to 65535, or a service such as http"),
        ("port 080", "column 6: found \"080\"; expected a number from 0 to 65535, or a service such as http"),
        ("host example.org", "column 6: found \"example.org\"; expected an address such as 192.0.2.1 or 2001:db8::1"),
        ("ip host ::1", "column 9: found \"::1\"; expected an address such as 192.0.2.1 or 2001:db8::1"),
        (
            "net 192.0.2.1/24",
            "column 5: found \"192.0.2.1/24\"; expected a network such as 192.0.2.0/24, 192.0 or 2001:db8::/32, with no bit set \
             behind it",
        ),
        ("portrange 80-", "column 13: found \"-\"; expected and, or, or the end"),
        ("(port 80", "column 9: found the end; expected and, or, or )"),
        ("port 80)", "column 8: found \")\"; expected and, or, or the end"),
        ("port 80 host ::1", "column 9: found \"host\"; expected and, or, or the end"),
        ("tcp host 10.0.0.1", "column 1: found \"tcp host\"; expected host with ether, ip, ip6, arp, rarp or nothing before it"),
        ("ip[0:3] = 1", "column 6: found \"3\"; expected a size of 1, 2 or 4 bytes"),
        ("ip[0 = 1", "column 6: found \"=\"; expected an operator, : with a size, or ]"),
        ("len", "column 4: found the end; expected a comparison such as = or >"),
        ("len / 0 = 1", "column 7: found \"0\"; expected a divisor that is not 0"),
        ("len << 32 = 1", "column 8: found \"32\"; expected a shift of at most 31 bits"),
        ("vlan 4096", "column 6: found \"4096\"; expected an identifier from 0 to 4095"),
        ("tcp or 80", "column 8: found \"80\"; expected a primitive such as tcp, ip6, host, net, port, src, dst or vlan, a value such as len or tcp[13], not or ("),
        ("geneve", "column 1: found \"geneve\", which is not supported; expected a primitive such as tcp, ip6, host, net, port, src, dst or vlan, a value such as len or tcp[13], not or ("),
        ("tcp and inbound", "column 9: found \"inbound\", which is not supported; expected a primitive such as tcp, ip6, host, net, port, src, dst or vlan, a value such as len or tcp[13], not or ("),
        ("größe", "column 1: found \"größe\"; expected a primitive such as tcp, ip6, host, net, port, src, dst or vlan, a value such as len or tcp[13], not or ("),
        ("port 80 & é", "column 9: found \"&\"; expected and, or, or the end"),
    ] {
        assert_eq!(text.parse::<Filter>().unwrap_err().to_string(), line, "{text}");
    }
}

#[test]
fn nesting_and_length_are_bounded() {
    let expected = |text: String| text.parse::<Filter>().unwrap_err().expected;
    for (open, close) in [
        ("(", ")"),
        ("-", ""),
        ("1 ^ ", ""),
        ("ip[", "]"),
        ("port (", ")"),
    ] {
        let deep = format!("{}1{} = 1", open.repeat(1000), close.repeat(1000));
        assert_eq!(expected(deep), "fewer parentheses", "{open}");
    }
    assert_eq!(expected("tcp or ".repeat(100_000)), "a shorter expression");
    let long = format!("tcp{}", " or udp and tcp".repeat(900));
    assert!(matches(&long, ETHERNET, &ethernet(0x0800, &syn())));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "[ ()!&|<>=+*/%^\\[\\]a-z0-9.:/é\\\\-]{0,40}") {
        if let Err(error) = text.parse::<Filter>() {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column));
        }
    }

    #[test]
    fn any_expression_is_evaluated_on_any_frame(
        tokens in prop::collection::vec(prop::sample::select(TOKENS), 1..12),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        link in prop::sample::select(&[0_u16, 1, 9, 101, 104, 113, 276]),
    ) {
        if let Ok(filter) = tokens.join(" ").parse::<Filter>() {
            let record = Record {
                time_ns: None,
                interface: 0,
                link,
                outbound: None,
                frame_bytes: bytes.len() as u32,
                bytes: &bytes,
            };
            filter.matches(&record);
        }
    }
}

const TOKENS: &[&str] = &[
    "tcp",
    "ip",
    "ip6",
    "[",
    "]",
    "0",
    "13",
    "4",
    ":",
    "=",
    "<",
    "!=",
    "&",
    "%",
    "-",
    "/",
    "<<",
    "(",
    ")",
    "not",
    "and",
    "or",
    "vlan",
    "mpls",
    "port",
    "host",
    "net",
    "10.0.0.1",
    "::1",
    "src",
    "dst",
    "len",
    "0xffffffff",
    "ether",
    "multicast",
    "arp",
    "proto",
    "less",
    "icmp6",
    "portrange",
    "1-5",
];
