//! Invariants for arbitrary input, checked with random bytes in the tests and by the fuzzers in `fuzz/`.

use std::fs;

use ackclock_analysis::analysis::{analyse, Analysis};
use ackclock_analysis::output::Options;
use ackclock_analysis::path;
use ackclock_analysis::tables::Flows;
use ackclock_pcap::packet::{Address, Checksum, Endpoint, Flags, Options as TcpOptions, Segment};

/// Bytes that describe one segment.
const SEGMENT_BYTES: usize = 16;

/// The analysis with all that it can give.
fn check_invariants() -> Options {
    Options {
        segments: true,
        ..Options::default()
    }
}

/// Bytes as a file: it is read as far as it goes, and counted.
pub fn as_a_file(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("ackclock-anything-{}", std::process::id()));
    fs::write(&path, bytes).expect("there is room");
    let (tables, mut reading) = analyse(&[&path], check_invariants());
    let files = reading.files();
    assert_eq!(files.len(), 1);
    assert!(files[0].note.is_some() || !files[0].is_unreadable);
    assert!(reading.analysis.duration_s().is_finite());
    let outcome = reading.path();
    assert!(outcome
        .and_then(|path| path.rate_bps)
        .is_none_or(|rate| rate.value.is_finite()));
    assert!(tables
        .flows
        .goodput_bps
        .iter()
        .all(|rate| *rate >= 0.0 || rate.is_nan()));
    limits_are_times(&tables.flows);
}

/// No limit has less than no time.
fn limits_are_times(flows: &Flows) {
    for limited_s in [
        &flows.limited_application_s,
        &flows.limited_receiver_s,
        &flows.limited_cwnd_s,
        &flows.limited_slow_start_s,
        &flows.limited_bottleneck_s,
        &flows.limited_shared_bottleneck_s,
        &flows.limited_send_buffer_s,
        &flows.limited_unknown_window_s,
        &flows.limited_unknown_s,
    ] {
        assert!(
            limited_s
                .iter()
                .all(|spent_s| spent_s.is_nan() || *spent_s > -1e-9),
            "{limited_s:?}"
        );
    }
}

/// Bytes as segments of at most four connections: each byte of payload has one fate.
pub fn as_segments(bytes: &[u8]) {
    let mut analysis = Analysis::new(check_invariants());
    let (mut now_ns, mut payload_bytes) = (0, 0);
    for outcome in bytes.chunks_exact(SEGMENT_BYTES) {
        let segment = segment(outcome, &mut now_ns);
        payload_bytes += u64::from(segment.payload_bytes);
        analysis.take(&segment);
    }
    analysis.finish();
    let series = &analysis.output.series;
    for path in 0..analysis.output.paths() as u16 {
        let series = series.of(path);
        path::limiter(&series.arrivals, &series.rtts);
    }
    let rows = &analysis.output.tables.segments;
    let outcome: u64 = (0..rows.flow.len())
        .filter(|&row| rows.seen[row])
        .map(|row| u64::from(rows.payload_bytes[row]))
        .sum();
    assert_eq!(outcome, payload_bytes);
    let flows = &analysis.output.tables.flows;
    assert_eq!(flows.payload_bytes.iter().sum::<u64>(), payload_bytes);
    limits_are_times(flows);
}

/// A segment: numbers are near each other and sometimes far, and so are times.
fn segment(outcome: &[u8], now_ns: &mut i64) -> Segment {
    let number = |low: u8, high: u8| match high {
        0xff => u32::from(low) << 24,
        _ => (u32::from(low) + (u32::from(high & 7) << 8)).wrapping_mul(250),
    };
    let step_ns = i64::from(outcome[1]) << (outcome[2] & 31);
    *now_ns += if outcome[2] & 0x60 == 0x60 {
        -step_ns
    } else {
        step_ns
    };
    let client = Endpoint {
        address: Address(0xffff_0a00_0001),
        port: 40_000 + u16::from(outcome[0] & 3),
    };
    let server = Endpoint {
        address: Address(0xffff_0a00_0002),
        port: 80,
    };
    let (source, destination) = if outcome[0] & 4 == 0 {
        (client, server)
    } else {
        (server, client)
    };
    let mut options = TcpOptions {
        timestamps: (outcome[0] & 8 != 0).then(|| (u32::from(outcome[9]), u32::from(outcome[10]))),
        sack_permitted: outcome[0] & 16 != 0,
        mss: (outcome[0] & 32 != 0).then_some(u16::from(outcome[15]) << 8),
        window_scale: (outcome[0] & 64 != 0).then_some(outcome[15] & 15),
        ..TcpOptions::default()
    };
    for block in outcome[11..15].chunks_exact(2).filter(|block| block[1] > 0) {
        let start = number(block[0], 0);
        options.sack[usize::from(options.sack_blocks)] = (start, start + 250 * u32::from(block[1]));
        options.sack_blocks += 1;
    }
    Segment {
        time_ns: (outcome[2] != 0xff).then_some(*now_ns),
        file: 0,
        interface: 0,
        place: 0,
        outbound: None,
        source,
        destination,
        sequence: number(outcome[3], outcome[4]),
        acknowledgement: number(outcome[5], outcome[6]),
        flags: Flags(u16::from(outcome[7])),
        window: u16::from(outcome[8]) << 4,
        payload_bytes: u32::from(outcome[15]) * 25,
        options,
        identification: (outcome[0] & 128 != 0).then_some(u32::from(outcome[9])),
        hops: 64,
        ecn: outcome[8] & 3,
        packet_bytes: 52 + u32::from(outcome[15]) * 25,
        frame_bytes: 66 + u32::from(outcome[15]) * 25,
        checksum_field: None,
        checksum: Checksum::default(),
        encapsulations: 0,
        super_segment: false,
        fragmented: false,
        duplicate: false,
    }
}
