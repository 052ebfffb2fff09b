use std::iter;

use proptest::prelude::*;

use super::*;

/// A number in a file's byte order.
fn bytes_of<const N: usize>(big_endian: [u8; N], is_big: bool) -> Vec<u8> {
    let mut bytes = big_endian.to_vec();
    if !is_big {
        bytes.reverse();
    }
    bytes
}

/// A pcap file with this magic number and version; a packet is its two times, its two lengths and what is there.
fn pcap(big: bool, magic: u32, minor: u16, packets: &[([u32; 4], &[u8])]) -> Vec<u8> {
    let token = |value: u32| bytes_of(value.to_be_bytes(), big);
    let mut file = token(magic);
    file.extend(bytes_of(2_u16.to_be_bytes(), big));
    file.extend(bytes_of(minor.to_be_bytes(), big));
    file.extend([0, 0, 96, 101].into_iter().flat_map(token));
    for (fields, data) in packets {
        file.extend(fields.iter().copied().flat_map(token));
        file.extend(*data);
    }
    file
}

/// A block of pcapng.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = bytes_of((body.len() as u32 + 12).to_be_bytes(), big);
    [&bytes_of(kind.to_be_bytes(), big), &length, body, &length].concat()
}

/// A section header.
fn section(big: bool) -> Vec<u8> {
    let mut body = bytes_of(0x1a2b_3c4d_u32.to_be_bytes(), big);
    body.extend(bytes_of(1_u16.to_be_bytes(), big));
    body.extend([0; 2]);
    body.extend([0xff; 8]);
    block(big, 0x0a0d_0d0a, &body)
}

/// An option of pcapng, padded.
fn option(big: bool, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes_of(code.to_be_bytes(), big);
    bytes.extend(bytes_of((value.len() as u16).to_be_bytes(), big));
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An interface of raw IP with options.
fn interface(big: bool, snap_bytes: u32, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = bytes_of(101_u16.to_be_bytes(), big);
    body.extend([0; 2]);
    body.extend(bytes_of(snap_bytes.to_be_bytes(), big));
    body.extend(options.concat());
    block(big, 1, &body)
}

/// An enhanced packet of five bytes.
fn packet(big: bool, interface: u32, ticks: u64, options: &[Vec<u8>]) -> Vec<u8> {
    let fields = [interface, (ticks >> 32) as u32, ticks as u32, 5, 1500];
    let mut body: Vec<u8> = fields
        .into_iter()
        .flat_map(|field| bytes_of(field.to_be_bytes(), big))
        .collect();
    body.extend([1, 2, 3, 4, 5, 0, 0, 0]);
    body.extend(options.concat());
    block(big, 6, &body)
}

/// Times, interfaces, lengths and bytes of all records, the reason, and the interfaces' descriptions.
type Read = (
    Vec<(Option<i64>, u32, u32, Vec<u8>)>,
    Option<String>,
    Vec<Interface>,
);

fn read(file: &[u8]) -> Read {
    let mut actual = Vec::new();
    let mut records = match Records::new(file) {
        Ok(records) => records,
        Err(reason) => return (actual, Some(reason.to_string()), Vec::new()),
    };
    let reason = loop {
        match records.next_record() {
            Ok(Some(record)) => actual.push((
                record.time_ns,
                record.interface,
                record.frame_bytes,
                record.bytes.to_vec(),
            )),
            Ok(None) => break None,
            Err(reason) => break Some(reason.to_string()),
        }
    };
    assert!(
        records.next_record().unwrap().is_none(),
        "a reason is given once"
    );
    (actual, reason, records.interfaces().to_vec())
}

#[test]
fn pcap_is_read_in_both_orders_and_resolutions() {
    for (big, magic, time_ns) in iter::zip([false, true], [0xa1b2_c3d4, 0xa1b2_3c4d])
        .chain(iter::zip([true, false], [0xa1b2_c3d4, 0xa1b2_3c4d]))
        .map(|(big, magic)| {
            (
                big,
                magic,
                if magic == 0xa1b2_c3d4 {
                    7_000_002_000
                } else {
                    7_000_000_002
                },
            )
        })
    {
        let file = pcap(big, magic, 4, &[([7, 2, 3, 90], &[1, 2, 3])]);
        let (records, reason, interfaces) = read(&file);
        assert_eq!(records, [(Some(time_ns), 0, 90, vec![1, 2, 3])]);
        assert_eq!(reason, None);
        assert_eq!((interfaces[0].link, interfaces[0].snap_bytes), (101, 96));
    }
}

#[test]
fn old_versions_may_have_the_lengths_exchanged() {
    for minor in [2, 3] {
        let file = pcap(false, 0xa1b2_c3d4, minor, &[([0, 0, 90, 3], &[1, 2, 3])]);
        assert_eq!(read(&file).0, [(Some(0), 0, 90, vec![1, 2, 3])]);
    }
}

#[test]
fn longer_records_have_their_packet_further_on() {
    let file = pcap(
        true,
        0xa1b2_cd34,
        4,
        &[([0, 0, 3, 3], &[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3])],
    );
    assert_eq!(read(&file).0, [(Some(0), 0, 3, vec![1, 2, 3])]);
}

#[test]
fn a_packet_may_be_longer_than_the_snaplen_or_the_buffer() {
    let data = vec![9; 1_000_000];
    let file = pcap(
        false,
        0xa1b2_c3d4,
        4,
        &[([0, 0, 1_000_000, 1_000_000], &data), ([1, 0, 1, 1], &[7])],
    );
    let (records, reason, _) = read(&file);
    assert_eq!(
        (records[0].3.len(), &records[1].3[..], reason),
        (1_000_000, &[7][..], None)
    );
}

#[test]
fn a_truncated_file_gives_its_complete_records() {
    let file = pcap(
        false,
        0xa1b2_c3d4,
        4,
        &[([0, 0, 1, 1], &[7]), ([0, 0, 3, 3], &[1, 2, 3])],
    );
    let (records, reason, _) = read(&file[..file.len() - 1]);
    assert_eq!(records.len(), 1);
    assert_eq!(
        reason.unwrap(),
        "packet 2 breaks off: found 18 of its 19 bytes; what is before it is complete"
    );
    let (records, reason, _) = read(&file[..file.len() - 10]);
    assert_eq!(records.len(), 1);
    assert!(reason.unwrap().contains("found 9 of its 16 bytes"));
    assert!(read(&file[..10])
        .1
        .unwrap()
        .starts_with("header 1 breaks off"));
}

#[test]
fn absurd_lengths_are_rejected() {
    let file = pcap(
        false,
        0xa1b2_c3d4,
        4,
        &[([0, 0, 1, 1], &[7]), ([0, 0, 3_000_000_000, 60], &[])],
    );
    let (records, reason, _) = read(&file);
    assert_eq!(records.len(), 1);
    assert!(reason
        .unwrap()
        .starts_with("packet 2 has a length of 3000000000 bytes; expected at most 16777216"));
    for length in [0_u32, 11, 13, 0xffff_fffc] {
        let file = [
            &section(false),
            &6_u32.to_le_bytes()[..],
            &length.to_le_bytes(),
            &[0; 8],
        ]
        .concat();
        let reason = read(&file).1.unwrap();
        assert!(
            reason.starts_with(&format!("block 2 has a length of {length} bytes")),
            "{reason}"
        );
    }
}

#[test]
fn other_files_are_named() {
    assert_eq!(
        read(b"").1.unwrap(),
        "the file is empty; expected a capture (pcap or pcapng)"
    );
    assert!(read(b"snoop\0\0\0\0\0\0\x02")
        .1
        .unwrap()
        .contains("a snoop file"));
    assert!(read(b"#!")
        .1
        .unwrap()
        .contains("a file that begins with [23, 21]"));
    let mut old = pcap(false, 0xa1b2_c3d4, 4, &[]);
    old[4] = 1;
    assert_eq!(
        read(&old).1.unwrap(),
        "found pcap version 1.4; expected 2.4 or an earlier 2"
    );
}

#[test]
fn pcapng_is_read_in_both_orders_with_several_interfaces_and_sections() {
    let mut file = Vec::new();
    for big in [false, true] {
        file.extend(section(big));
        file.extend(interface(big, 0, &[]));
        file.extend(block(big, 0x0bad, &[0; 8]));
        file.extend(interface(
            big,
            0,
            &[option(big, 9, &[9]), option(big, 2, b"eth1")],
        ));
        file.extend(packet(big, 1, 7, &[]));
        file.extend(packet(big, 0, 7, &[]));
    }
    let (records, reason, interfaces) = read(&file);
    let layouts: Vec<_> = records
        .iter()
        .map(|record| (record.0.unwrap(), record.1))
        .collect();
    assert_eq!(layouts, [(7, 1), (7000, 0), (7, 3), (7000, 2)]);
    assert_eq!(records[0].2, 1500);
    assert_eq!(records[0].3, [1, 2, 3, 4, 5]);
    assert_eq!(reason, None);
    assert_eq!(interfaces[3].name.as_deref(), Some("eth1"));
}

#[test]
fn times_have_any_resolution_and_offset() {
    let of = |resolution: u8, offset_s: i64, ticks| {
        let options = [
            option(true, 9, &[resolution]),
            option(true, 14, &offset_s.to_be_bytes()),
        ];
        read(
            &[
                section(true),
                interface(true, 0, &options),
                packet(true, 0, ticks, &[]),
            ]
            .concat(),
        )
        .0[0]
            .0
    };
    assert_eq!(of(3, 0, 5), Some(5_000_000));
    assert_eq!(of(12, 0, 5_999), Some(5));
    assert_eq!(of(0x8a, 0, 512), Some(500_000_000));
    assert_eq!(of(6, 100, 5), Some(100_000_005_000));
    assert_eq!(of(6, -1, 0), Some(-1_000_000_000));
    assert_eq!(of(0, 0, u64::MAX), None, "beyond the year 2262");
    assert_eq!(of(127, 0, 5), None);
}

#[test]
fn losses_and_directions_are_read_in_both_orders() {
    for big in [false, true] {
        let seven = bytes_of(7_u64.to_be_bytes(), big);
        let flags = bytes_of(2_u32.to_be_bytes(), big);
        let packet = packet(big, 0, 1, &[option(big, 2, &flags), option(big, 4, &seven)]);
        let mut statistics = vec![0; 12];
        statistics.extend(option(big, 5, &seven));
        statistics.extend(option(big, 7, &seven));
        let file = [
            section(big),
            interface(big, 0, &[]),
            packet,
            block(big, 5, &statistics),
        ]
        .concat();
        let mut records = Records::new(&file[..]).unwrap();
        assert_eq!(records.next_record().unwrap().unwrap().outbound, Some(true));
        assert!(records.next_record().unwrap().is_none());
        let stored = &records.interfaces()[0];
        assert_eq!(
            (
                stored.dropped,
                stored.dropped_by_system,
                stored.dropped_between
            ),
            (Some(7), Some(7), 7)
        );
    }
}

#[test]
fn simple_packets_have_no_time_and_end_at_the_snaplen() {
    let body = [&90_u32.to_le_bytes()[..], &[1, 2, 3, 4]].concat();
    let file = [
        section(false),
        interface(false, 3, &[]),
        block(false, 3, &body),
    ]
    .concat();
    assert_eq!(read(&file).0, [(None, 0, 90, vec![1, 2, 3])]);
}

#[test]
fn contradictions_in_pcapng_are_named() {
    let reason = |blocks: &[Vec<u8>]| read(&blocks.concat()).1.unwrap();
    assert!(reason(&[section(false), packet(false, 0, 1, &[])]).contains("found interface 0 of 0"));
    let mut longer = packet(false, 0, 1, &[]);
    longer[20] = 9;
    assert!(reason(&[section(false), interface(false, 0, &[]), longer])
        .contains("9 bytes with room for 8"));
    let mut twice = section(false);
    let last = twice.len() - 4;
    twice[last] += 4;
    assert!(reason(&[twice]).contains("length 28 before and 32 behind it"));
    let mut order = section(false);
    order[8] = 0;
    assert!(reason(&[order]).contains("found byte order 0x1a2b3c00"));
}

/// Files that begin well, so that random bytes come further.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let begin = prop_oneof![
        Just(Vec::new()),
        Just(pcap(false, 0xa1b2_c3d4, 4, &[([0, 0, 1, 1], &[7])])),
        Just(pcap(true, 0xa1b2_3c4d, 3, &[])),
        Just(
            [
                section(false),
                interface(false, 0, &[]),
                packet(false, 0, 1, &[])
            ]
            .concat()
        ),
        Just([section(true), interface(true, 0, &[])].concat()),
    ];
    // Small numbers are lengths and kinds that lead on.
    let rest = prop::collection::vec(prop_oneof![Just(0), 0..40_u8, any::<u8>()], 0..200);
    (begin, rest, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(begin, rest, at, byte)| {
        let mut file = [begin, rest].concat();
        if !file.is_empty() {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file
    })
}

proptest! {
    #[test]
    fn any_bytes_give_records_or_a_reason(file in file()) {
        let (records, _, _) = read(&file);
        let captured: usize = records.iter().map(|record| record.3.len()).sum();
        prop_assert!(captured <= file.len());
        prop_assert!(records.len() <= file.len() / 16);
    }
}
