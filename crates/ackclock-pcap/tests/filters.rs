//! Filters select the packets that tcpdump selects: over the files in `data`, and over made frames of every layering.
//!
//! Needs tcpdump (`make debian-test` installs it); without it these tests say so and pass.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use ackclock_pcap::filter::Filter;
use ackclock_pcap::framing::Records;
use ackclock_pcap::source::Source;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Expressions, each with its own reading of the grammar or of a header.
const EXPRESSIONS: &str = include_str!("filters.txt");

/// A packet that was selected: its time and its bytes.
type Packet = (Option<i64>, Vec<u8>);

fn selected<R: Read>(source: R, filter: &Filter) -> Vec<Packet> {
    let mut records = Records::new(source).unwrap();
    let mut found = Vec::new();
    while let Ok(Some(record)) = records.next_record() {
        if filter.matches(&record) {
            found.push((record.time_ns.map(|ns| ns / 1000), record.bytes.to_vec()));
        }
    }
    found
}

/// The packets that tcpdump selects from a file, or its reason for none.
fn selected_by_tcpdump(path: &Path, expression: &str) -> Result<Vec<Packet>, String> {
    let output = Command::new("tcpdump")
        .args(["-r", path.to_str().unwrap(), "-w", "-", "--", expression])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.stdout.is_empty() {
        let reason = String::from_utf8_lossy(&output.stderr);
        let last = reason.lines().last().unwrap_or_default();
        return Err(last.to_owned());
    }
    Ok(selected(&*output.stdout, &Filter::default()))
}

fn has_tcpdump() -> bool {
    let output = Command::new("tcpdump").arg("--version").output();
    let found = output.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("tcpdump is missing: filters are not compared with it");
    }
    found
}

fn expressions() -> impl Iterator<Item = &'static str> {
    let lines = EXPRESSIONS.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Compare the selections over a file; return how many expressions selected some of its packets, but not all.
fn compare(path: &Path, faults: &mut String) -> usize {
    let all = selected(Source::open(path).unwrap(), &Filter::default()).len();
    let mut telling = 0;
    for expression in expressions() {
        let filter: Filter = expression
            .parse()
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        let ours = selected(Source::open(path).unwrap(), &filter);
        match selected_by_tcpdump(path, expression) {
            Ok(theirs) if theirs == ours => {
                telling += usize::from(!ours.is_empty() && ours.len() < all);
            }
            // Rejected for this link type, or because nothing can match.
            Err(reason) if is_for_the_link_type(&reason) => {}
            theirs => {
                let theirs = theirs.map(|packets| packets.len());
                writeln!(
                    faults,
                    "{}: {expression}: {} of {all}, tcpdump {theirs:?}",
                    path.display(),
                    ours.len()
                )
                .unwrap();
            }
        }
    }
    telling
}

fn is_for_the_link_type(reason: &str) -> bool {
    [
        "supported only on",
        "not a broadcast link",
        "no VLAN support",
        "no MPLS support",
        "rejects all packets",
        "not supported on",
        "not implemented",
    ]
    .iter()
    .any(|known| reason.contains(known))
}

/// Files of `data` with fragments, tags, labels, tunnels, IPv6 and link types other than Ethernet.
const FILES: [&str; 7] = [
    "pcapplusplus/GrePackets.cap",
    "pcapplusplus/VlanPackets.pcap",
    "pcapplusplus/http_req_frag.pcap",
    "pcapplusplus/null_loopback.pcap",
    "zeek/ipv6-http-atomic-frag.pcap",
    "zeek/linux_dlt_sll2.pcap",
    "zeek/mixed-vlan-mpls.pcap",
];

#[test]
fn filters_select_the_packets_of_files_that_tcpdump_selects() {
    if !has_tcpdump() {
        return;
    }
    let (mut faults, mut telling) = (String::new(), 0);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in FILES {
        telling += compare(&data.join(name), &mut faults);
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(
        telling > 200,
        "only {telling} comparisons can tell filters apart"
    );
}

/// A header, or what a header of another layer would be: some bytes are fixed, so that filters meet what they look for.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let ether_types = prop::sample::select(vec![
        0x0800_u16, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x8035, 0x8100, 0x8100, 0x88a8, 0x9100,
        0x8847, 0x8847, 4, 60, 1500, 0x8137, 0x809b, 0x6003,
    ]);
    let inner = prop::sample::select(vec![
        &[0x45_u8, 0][..],
        &[0x46, 0],
        &[0x60, 0],
        &[0, 100, 8, 0, 0x45],
        &[0, 5, 0x81, 0, 0, 6, 0x86, 0xdd, 0x60],
        &[0, 0, 0x71, 64, 0x45],
        &[0, 0, 0x70, 64, 0, 0, 0x91, 64, 0x60],
        &[0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0x37],
        &[0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b],
        &[0xaa, 0xaa, 3, 0, 0, 0, 0x80, 0xf3],
        &[0x42, 0x42],
        &[0xe0, 0xe0],
        &[0xf0, 0xf0],
        &[0xfe, 0xfe],
        &[0xff, 0xff],
        &[6, 6],
    ]);
    let byte = prop_oneof![
        4 => Just(0_u8),
        8 => prop::sample::select(vec![1_u8, 2, 6, 8, 9, 10, 17, 22, 44, 50, 51, 58, 80, 103, 112, 132, 187, 224, 255]),
        1 => any::<u8>(),
    ];
    let rest = prop::collection::vec(byte, 0..90);
    let destination = prop::sample::select(vec![
        [0xff; 6],
        [1, 0, 0x5e, 0, 0, 1],
        [2, 0, 0, 0, 0, 1],
        [0, 1, 2, 3, 4, 5],
    ]);
    (destination, ether_types, inner, rest).prop_map(|(destination, ether_type, inner, rest)| {
        let mut frame = destination.to_vec();
        frame.extend([0, 1, 2, 3, 4, 5]);
        frame.extend(ether_type.to_be_bytes());
        frame.extend(inner);
        frame.extend(rest);
        frame
    })
}

/// A capture file of frames (pcap-savefile(5)).
fn savefile(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for field in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, link] {
        file.extend(field.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        for field in [1, number as u32, frame.len() as u32, frame.len() as u32 + 3] {
            file.extend(field.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Link types, and what replaces Ethernet's header there: bytes before the `EtherType`, and behind it.
fn framed(link: u32, frame: &[u8]) -> Vec<u8> {
    let ether_type = &frame[12..14];
    let ppp: &[u8] = match ether_type {
        [8, 0] => &[0, 0x21],
        [0x86, 0xdd] => &[0, 0x57],
        [0x88, 0x47] => &[2, 0x81],
        other => other,
    };
    let family: &[u8] = if ether_type == [8, 0] {
        &[2, 0, 0, 0]
    } else {
        &[24, 0, 0, 0]
    };
    let (header, behind) = match link {
        0 => (family.to_vec(), 14),
        9 => ([&[0xff, 3], ppp].concat(), 14),
        101 => (Vec::new(), 14),
        104 => ([&[0x0f, 0], ether_type].concat(), 14),
        113 => ([&[0; 14], ether_type].concat(), 14),
        276 => ([ether_type, &[0; 18]].concat(), 14),
        _ => (Vec::new(), 0),
    };
    [&header, &frame[behind..]].concat()
}

#[test]
fn filters_select_the_made_frames_that_tcpdump_selects() {
    if !has_tcpdump() {
        return;
    }
    let mut runner = TestRunner::deterministic();
    let made = prop::collection::vec(frames(), 2000)
        .new_tree(&mut runner)
        .unwrap()
        .current();
    let (mut faults, mut telling) = (String::new(), BTreeMap::new());
    for link in [0, 1, 9, 101, 104, 113, 276] {
        let path = std::env::temp_dir().join(format!(
            "ackclock-filters-{}-{link}.pcap",
            std::process::id()
        ));
        let frames: Vec<_> = made.iter().map(|frame| framed(link, frame)).collect();
        fs::write(&path, savefile(link, &frames)).unwrap();
        telling.insert(link, compare(&path, &mut faults));
        fs::remove_file(&path).unwrap();
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(telling[&1] >= 100, "{telling:?}");
}
