//! Every file of a folder of captures is read, or rejected with a reason, within bounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ackclock_pcap::files::Capture;

/// The time limit for one file; all of them are small.
const LONGEST: Duration = Duration::from_secs(10);

/// The files under a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut actual = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            actual.extend(files(&path));
        } else if path.extension().is_none_or(|end| end != "md") {
            actual.push(path);
        }
    }
    actual.sort();
    actual
}

/// Read a file; return its segments and packets, and its reason.
fn read(path: &Path) -> (u64, u64, Option<String>, bool) {
    let start = Instant::now();
    let mut capture = Capture::open(&[path]);
    let segments = capture.by_ref().count() as u64;
    assert!(
        start.elapsed() < LONGEST,
        "{} took too long",
        path.display()
    );
    let file = &capture.files()[0];
    assert_eq!(segments, file.counts().segments);
    let reason = file.reason().map(ToString::to_string);
    (
        segments,
        file.counts().packets,
        reason,
        file.is_unreadable(),
    )
}

/// Packets and segments of the files in `data`. tcpdump counts the same packets, and the same segments where it looks
/// into what they are wrapped in.
const DATA: [(&str, u64, u64); 37] = [
    ("pcapng/test002.pcapng", 0, 0),
    ("pcapng/test005.pcapng", 4, 0),
    ("pcapng/test006.pcapng", 5, 0),
    ("pcapng/test017.pcapng", 0, 0),
    ("pcapng/test201.pcapng", 4, 0),
    ("pcapng/test202.pcapng", 8, 0),
    ("pcapplusplus/GrePackets.cap", 28, 9),
    ("pcapplusplus/IPv4Frag.pcap", 3, 0),
    ("pcapplusplus/PPPoESession.pcap", 2, 0),
    ("pcapplusplus/QinQ_802.1_AD.pcapng", 1, 0),
    ("pcapplusplus/Sll2Packet.pcap", 1, 1),
    ("pcapplusplus/VlanPackets.pcap", 26, 0),
    ("pcapplusplus/http_req_frag.pcap", 12, 1),
    ("pcapplusplus/linktype_ipv6.pcap", 1, 1),
    ("pcapplusplus/nanosecs_big_endian.pcap", 10, 10),
    ("pcapplusplus/null_loopback.pcap", 3, 1),
    ("pcapplusplus/one_http_stream_rst.pcap", 10, 10),
    ("pcapplusplus/pcapng-example.pcapng.zst", 159, 159),
    ("pcapplusplus/tcp-malformed.pcap", 2, 0),
    ("tcpdump/bigtcp-ipv4-geneve-ipv4.pcap", 1, 1),
    ("tcpdump/bigtcp-ipv6.pcap", 1, 1),
    ("tcpdump/erspan-type-i-1.pcap", 2, 0),
    ("tcpdump/erspan-type-ii-2.pcap", 16, 0),
    ("tcpdump/erspan-type-iii-ft-7.pcap", 58, 0),
    ("tcpdump/geneve.pcap", 39, 33),
    ("tcpdump/gso-ipv4-vxlan-ipv4.pcap", 1, 1),
    ("zeek/4in6.pcap", 1, 1),
    ("zeek/erspanIII.pcap", 2, 0),
    ("zeek/fuzz-1011.pcap", 6, 5),
    ("zeek/http-qinq-0.pcap", 14, 14),
    ("zeek/ip6-hoa-tcp-good-chksum.pcap", 1, 1),
    ("zeek/ip6-route0-tcp-bad-chksum.pcap", 1, 1),
    ("zeek/ipv6-http-atomic-frag.pcap", 38, 36),
    ("zeek/linux_dlt_sll2.pcap", 6, 0),
    ("zeek/mixed-vlan-mpls.pcap", 47, 47),
    ("zeek/snap-tcp.pcap", 8, 8),
    ("zeek/truncated-header.pcap", 24, 24),
];

#[test]
fn captures_of_other_projects_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let actual: Vec<_> = files(&folder)
        .iter()
        .map(|path| {
            let (segments, packets, reason, _) = read(path);
            assert_eq!(reason, None, "{}", path.display());
            (
                path.strip_prefix(&folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
                packets,
                segments,
            )
        })
        .collect();
    let expected: Vec<_> = DATA
        .iter()
        .map(|&(name, packets, segments)| (name.to_owned(), packets, segments))
        .collect();
    assert_eq!(actual, expected);
}

/// All that the project was ever handed, where it is there: `cargo test -p ackclock-pcap --test formats -- --ignored
/// --nocapture` prints what is rejected or breaks off, and why.
#[test]
#[ignore = "reads captures that are beside the repository"]
fn every_capture_is_read_or_rejected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let folder = std::env::var_os("ACKCLOCK_CAPTURES").map_or(folder, PathBuf::from);
    if !folder.exists() {
        return;
    }
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut whole, mut in_part, mut is_unreadable) = (0, 0, 0);
    for path in files(&folder) {
        let (segments, packets, reason, nothing) = read(&path);
        let Some(reason) = reason else {
            whole += 1;
            continue;
        };
        *if nothing {
            &mut is_unreadable
        } else {
            &mut in_part
        } += 1;
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let line = format!("{name}: {packets} packets, {segments} segments");
        reasons.entry(reason).or_default().push(line);
    }
    for (reason, names) in &reasons {
        println!("{reason}\n  {}", names.join("\n  "));
    }
    println!("{whole} read, {in_part} in part, {is_unreadable} refused");
}
