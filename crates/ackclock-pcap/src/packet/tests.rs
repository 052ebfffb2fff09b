use proptest::prelude::*;

use super::*;

const OPTIONS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 4];

/// The checksum field of bytes that have zeros in its place.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    (!checksum::folded(checksum::sum(bytes))).to_ne_bytes()
}

/// A TCP segment between ports 1000 and 80 with these options and data; its checksum is of a mapped pseudo-header.
fn tcp(options: &[u8], payload: &[u8], addresses: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes[..4].copy_from_slice(&[0x03, 0xe8, 0, 80]);
    bytes[4..8].copy_from_slice(&100_u32.to_be_bytes());
    bytes[8..12].copy_from_slice(&200_u32.to_be_bytes());
    bytes[12] = (((20 + options.len()) / 4) << 4) as u8;
    bytes[13] = (Flags::ACK | Flags::PSH) as u8;
    bytes[14..16].copy_from_slice(&500_u16.to_be_bytes());
    bytes.extend(options);
    bytes.extend(payload);
    let pseudo = [addresses, &[0, 6], &(bytes.len() as u16).to_be_bytes()[..]].concat();
    let field = checksum(&[&pseudo, &bytes[..]].concat());
    bytes[16..18].copy_from_slice(&field);
    bytes
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
fn v4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![
        0x45, 0x02, 0, 0, 0, 77, 0, 0, 60, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    let total = (20 + payload.len()) as u16;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    let field = checksum(&bytes);
    bytes[10..12].copy_from_slice(&field);
    bytes.extend(payload);
    bytes
}

/// An IPv6 packet from ::1 to ::2.
fn v6(next: u8, length: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0x30, 0, 0, 0, 0, next, 61];
    bytes[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    bytes.extend(1_u128.to_be_bytes());
    bytes.extend(2_u128.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn tcp4() -> Vec<u8> {
    v4(6, 0, &tcp(&OPTIONS, b"hello", &[10, 0, 0, 1, 10, 0, 0, 2]))
}

fn tcp6() -> Vec<u8> {
    tcp(
        &OPTIONS,
        b"hello",
        &[1_u128.to_be_bytes(), 2_u128.to_be_bytes()].concat(),
    )
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], payload].concat()
}

fn record(link: u16, bytes: &[u8]) -> Record<'_> {
    Record {
        time_ns: Some(1),
        interface: 3,
        link,
        outbound: None,
        frame_bytes: bytes.len() as u32,
        bytes,
    }
}

fn of(link: u16, bytes: &[u8]) -> Result<Segment, Skipped> {
    decode(&record(link, bytes))
}

/// Decode the tests' segment from these bytes.
fn decode_test_segment(link: u16, bytes: &[u8]) -> Segment {
    let segment = of(link, bytes).unwrap_or_else(|skipped| panic!("{skipped:?}: {bytes:02x?}"));
    assert_eq!((segment.source.port, segment.destination.port), (1000, 80));
    assert_eq!(
        (segment.payload_bytes, segment.checksum),
        (5, Checksum::Good)
    );
    segment
}

#[test]
fn all_header_fields_are_decoded() {
    let segment = decode_test_segment(1, &ethernet(0x0800, &tcp4()));
    assert_eq!(segment.source.address.ip().to_string(), "10.0.0.1");
    assert_eq!(segment.destination.address.ip().to_string(), "10.0.0.2");
    assert_eq!(
        (segment.sequence, segment.acknowledgement, segment.window),
        (100, 200, 500)
    );
    assert!(segment.flags.has(Flags::PSH) && !segment.flags.has(Flags::SYN | Flags::FIN));
    assert_eq!(segment.options.timestamps, Some((5, 4)));
    assert_eq!(
        (segment.identification, segment.hops, segment.ecn),
        (Some(77), 60, 2)
    );
    assert_eq!(
        (segment.time_ns, segment.interface, segment.frame_bytes),
        (Some(1), 3, 71)
    );
    assert_eq!(segment.packet_bytes, 57);
    assert_eq!(
        (
            segment.encapsulations,
            segment.super_segment,
            segment.fragmented
        ),
        (0, false, false)
    );
    let segment = decode_test_segment(1, &ethernet(0x86dd, &v6(6, 37, &tcp6())));
    assert_eq!(segment.source.address.ip().to_string(), "::1");
    assert_eq!(
        (segment.identification, segment.hops, segment.ecn),
        (None, 61, 3)
    );
    assert_eq!(segment.packet_bytes, 77);
}

#[test]
fn options_of_a_handshake_and_of_losses_are_read() {
    let of_options = |options: &[u8]| of(101, &v4(6, 0, &tcp(options, b"", &[]))).unwrap().options;
    let syn = of_options(&[
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ]);
    assert_eq!(
        (syn.mss, syn.window_scale, syn.sack_permitted),
        (Some(1460), Some(7), true)
    );
    assert_eq!(syn.timestamps, Some((1, 0)));
    let sack = of_options(&[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
    assert_eq!(sack.sack(), [(1, 2), (3, 4)]);
    assert_eq!(
        of_options(&[1, 1, 8, 99]),
        Options::default(),
        "a length beyond the header"
    );
    assert_eq!(
        of_options(&[9, 0, 0, 0]),
        Options::default(),
        "a length of nothing"
    );
    assert_eq!(of_options(&[1, 1, 1, 3]), Options::default(), "no length");
}

#[test]
fn the_fields_of_accurate_ecn_are_read() {
    // RFC 9768 section 3.2.3: EE0B, ECEB and EE1B in either order, or the first ones of them.
    let both = [172, 11, 0, 0, 1, 0, 2, 3, 0, 0, 1, 1];
    let without_last = [174, 8, 0, 0, 1, 0, 2, 3];
    let first_only = [172, 5, 0, 0, 1, 1, 1, 0];
    for (options, marked_bytes) in [
        (&both[..], Some(0x203)),
        (&without_last, Some(0x203)),
        (&first_only, None),
    ] {
        let mut bytes = tcp(options, b"", &[]);
        bytes[12] |= 1;
        let segment = of(101, &v4(6, 0, &bytes)).unwrap();
        assert_eq!(segment.options.marked_bytes, marked_bytes);
        assert_eq!(segment.flags, Flags(Flags::AE | Flags::ACK | Flags::PSH));
    }
}

#[test]
fn cooked_headers_have_direction_and_interface() {
    let sll = |kind: u16| {
        [
            &kind.to_be_bytes()[..],
            &[0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0],
            &tcp4(),
        ]
        .concat()
    };
    let (incoming, outgoing) = (
        decode_test_segment(113, &sll(0)),
        decode_test_segment(113, &sll(4)),
    );
    assert_eq!(
        (incoming.outbound, outgoing.outbound),
        (Some(false), Some(true))
    );
    assert_ne!(incoming.place, outgoing.place);
    let sll2 = [
        &[8, 0, 0, 0, 0, 0, 0, 9, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0][..],
        &tcp4(),
    ]
    .concat();
    let segment = decode_test_segment(276, &sll2);
    assert_eq!((segment.interface, segment.outbound), (9, Some(true)));
}

#[test]
fn every_link_gives_the_segment() {
    let packet = tcp4();
    let behind = |header: &[u8]| [header, &packet].concat();
    for link in [12, 14, 101, 228] {
        decode_test_segment(link, &packet);
    }
    for (link, header) in [
        (0, &[2, 0, 0, 0][..]),
        (0, &[0, 0, 0, 2]),
        (108, &[0, 0, 0, 2]),
        (9, &[0xff, 3, 0, 0x21]),
        (9, &[0x21]),
        (50, &[0, 0x21]),
        (204, &[1, 0, 0x21]),
        (51, &[0x11, 0, 0, 1, 0, 59, 0, 0x21]),
        (104, &[15, 0, 8, 0]),
        (109, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        decode_test_segment(link, &behind(header));
    }
    for (kind, header) in [
        (0x8100, &[0, 5, 8, 0][..]),
        (0x88a8, &[0, 5, 0x81, 0, 0, 6, 8, 0]),
        (0x8847, &[0, 0, 0x10, 64, 0, 0, 0x21, 64]),
        (0x8864, &[0x11, 0, 0, 1, 0, 59, 0, 0x21]),
        (65, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
    ] {
        decode_test_segment(1, &ethernet(kind, &behind(header)));
    }
    let wired = ethernet(0x0800, &packet);
    decode_test_segment(
        1,
        &ethernet(
            0x8847,
            &[&[0, 0, 0x11, 64, 0, 0, 0, 0][..], &wired].concat(),
        ),
    );
}

#[test]
fn tunnels_are_counted_and_left_behind() {
    let packet = tcp4();
    let wired = ethernet(0x0800, &packet);
    let udp =
        |port: u16, rest: &[u8]| [&[0x30, 0x39][..], &port.to_be_bytes(), &[0; 4], rest].concat();
    for (protocol, header, inner) in [
        (4, vec![], &packet),
        (47, vec![0, 0, 8, 0], &packet),
        (
            47,
            vec![0xb0, 0, 8, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
            &packet,
        ),
        (47, vec![0x20, 0, 0x65, 0x58, 0, 0, 0, 1], &wired),
        (
            47,
            vec![
                0x30, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x21,
            ],
            &packet,
        ),
        (47, vec![0, 0, 0x88, 0xbe], &wired),
        (
            47,
            vec![0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            &wired,
        ),
        (
            47,
            [
                &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..],
                &[0; 11],
                &[1],
                &[0; 8],
            ]
            .concat(),
            &wired,
        ),
        (17, udp(4789, &[8, 0, 0, 0, 0, 0, 1, 0]), &wired),
        (17, udp(4790, &[12, 0, 0, 1, 0, 0, 1, 0]), &packet),
        (
            17,
            udp(6081, &[1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0]),
            &wired,
        ),
        (97, vec![0x30, 0], &wired),
        (137, vec![0, 0, 1, 64], &packet),
    ] {
        let segment = decode_test_segment(101, &v4(protocol, 0, &[&header, &inner[..]].concat()));
        assert_eq!(segment.encapsulations, 1);
    }
    assert_eq!(of(101, &v4(17, 0, &udp(53, &[]))), Err(Skipped::Udp));
}

#[test]
fn extension_headers_are_passed() {
    let headers = [
        [43, 0, 1, 4, 0, 0, 0, 0],
        [44, 0, 0, 0, 0, 0, 0, 0],
        [6, 0, 0, 0, 0, 0, 0, 9],
    ];
    let payload = [&headers.concat(), &tcp6()[..]].concat();
    let segment = decode_test_segment(101, &v6(60, payload.len(), &payload));
    assert_eq!(
        (segment.identification, segment.fragmented),
        (Some(9), false)
    );
    let authenticated = [&[6, 1][..], &[0; 10], &tcp6()].concat();
    decode_test_segment(101, &v6(51, authenticated.len(), &authenticated));
    let home = [&[6, 2, 1, 2, 0, 0, 0xc9, 16][..], &[7; 16], &tcp6()].concat();
    let segment = of(101, &v6(60, home.len(), &home)).unwrap();
    assert_eq!(
        segment.checksum,
        Checksum::Unknown,
        "the home address is in it"
    );
}

#[test]
fn packets_without_a_length_have_that_of_their_frame() {
    let mut packet = tcp4();
    packet[2..4].copy_from_slice(&[0, 0]);
    assert!(decode_test_segment(101, &packet).super_segment);
    assert!(decode_test_segment(101, &v6(6, 0, &tcp6())).super_segment);
    let jumbo = [
        &[6, 0, 0xc2, 4][..],
        &45_u32.to_be_bytes(),
        &tcp6(),
        b"padding",
    ]
    .concat();
    assert!(decode_test_segment(101, &v6(0, 0, &jumbo)).super_segment);
}

#[test]
fn a_fragment_with_ports_is_marked_and_others_are_counted() {
    let segment = of(101, &v4(6, 0x2000, &tcp(&[], b"hello", &[]))).unwrap();
    assert_eq!(
        (segment.fragmented, segment.checksum),
        (true, Checksum::Unknown)
    );
    assert_eq!(of(101, &v4(6, 3, b"later")), Err(Skipped::LaterFragment));
    assert_eq!(
        of(101, &v6(44, 8, &[6, 0, 0, 8, 0, 0, 0, 1])),
        Err(Skipped::LaterFragment)
    );
}

#[test]
fn lengths_are_those_of_the_headers() {
    let frame = ethernet(0x0800, &tcp4());
    let snapped = Record {
        frame_bytes: 71,
        ..record(1, &frame[..54])
    };
    let segment = decode(&snapped).unwrap();
    assert_eq!(
        (segment.payload_bytes, segment.checksum),
        (5, Checksum::Unknown)
    );
    assert_eq!(
        (segment.options.timestamps, segment.options.cut),
        (None, true)
    );
    let padded = [&frame[..], &[0; 30]].concat();
    assert!(
        !decode_test_segment(1, &padded).options.cut,
        "and Ethernet's padding is none of it"
    );
    assert_eq!(of(1, &frame[..48]), Err(Skipped::Cut));
}

#[test]
fn checksums_are_judged() {
    let mut packet = tcp4();
    packet[56] ^= 1;
    assert_eq!(of(101, &packet).unwrap().checksum, Checksum::Bad);
    let mut packet = tcp4();
    packet[8] ^= 1;
    assert_eq!(
        of(101, &packet).unwrap().checksum,
        Checksum::Bad,
        "that of the IP header"
    );
    let mut packet = tcp4();
    let partial = checksum(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, 37]).map(|byte| !byte);
    packet[36..38].copy_from_slice(&partial);
    assert_eq!(of(101, &packet).unwrap().checksum, Checksum::Offloaded);
}

#[test]
fn a_datagram_has_its_ends_sizes_and_ecn() {
    let payload = [0x60, 1, 2, 3, 4];
    let udp = [&[0x03, 0xe8, 1, 0xbb, 0, 13, 0xab, 0xcd], &payload[..]].concat();
    let bytes = v4(17, 0, &udp);
    let mut datagram = Datagram::default();
    datagram_into(&record(101, &bytes), &mut datagram).unwrap();
    assert_eq!(
        (datagram.source.port, datagram.destination.port),
        (1000, 443)
    );
    assert_eq!((datagram.payload_bytes, datagram.packet_bytes), (5, 33));
    assert_eq!((datagram.ecn, datagram.hops), (2, 60));
    assert_eq!(datagram.quic.spin, Some(true));
    let cut = Record {
        frame_bytes: bytes.len() as u32,
        ..record(101, &bytes[..28])
    };
    datagram_into(&cut, &mut datagram).unwrap();
    assert_eq!((datagram.payload_bytes, datagram.quic.spin), (5, None));
    assert_eq!(
        datagram_into(&record(101, &tcp4()), &mut datagram),
        Err(Skipped::NotIp)
    );
    let longer = v4(17, 0, &[&udp[..5], &[90], &udp[6..]].concat());
    let malformed = datagram_into(&record(101, &longer), &mut datagram);
    assert_eq!(malformed, Err(Skipped::Malformed));
}

#[test]
fn frames_without_a_segment_have_a_reason() {
    assert_eq!(of(147, &[]), Err(Skipped::LinkType));
    assert_eq!(of(1, &ethernet(0x0806, &[0; 28])), Err(Skipped::NotIp));
    assert_eq!(of(101, &v4(1, 0, &[0; 8])), Err(Skipped::Icmp));
    assert_eq!(of(101, &v4(17, 0, &[0; 8])), Err(Skipped::Udp));
    assert_eq!(of(101, &v4(132, 0, &[0; 8])), Err(Skipped::NotTcp));
    let mut short = tcp4();
    short[32] = 0x40;
    assert_eq!(of(101, &short), Err(Skipped::Malformed));
    let mut short = tcp4();
    short[0] = 0x44;
    assert_eq!(of(101, &short), Err(Skipped::Malformed));
    let nested = (0..40).fold(tcp4(), |inner, _| v4(4, 0, &inner));
    assert_eq!(of(101, &nested), Err(Skipped::Malformed));
}

proptest! {
    #[test]
    fn any_bytes_are_walked_to_an_end(
        link in prop::sample::select(&link::SUPPORTED[..]),
        start in prop::sample::select(vec![
            vec![], tcp4(), v4(47, 0, &[0; 40]), v6(0, 0, &[0; 40]), ethernet(0x8847, &[0; 40]), v4(17, 0, &[0; 60]),
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        frame_bytes in any::<u32>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = start;
        bytes.push(0);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let record = Record { frame_bytes, ..record(link, &bytes) };
        let _ = decode(&record);
        let _ = datagram_into(&record, &mut Datagram::default());
    }
}
