//! Whatever comes, the analysis ends and counts: any segments, any bytes, any damage to a capture.

use std::fs;

use ackclock_analysis::analysis::Analysis;
use ackclock_analysis::output::Options;
use ackclock_pcap::packet::{Flags, Segment};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::kit::{self, invariants};

/// Segments of one connection whose numbers are near each other, and sometimes far.
fn any_segment() -> impl Strategy<Value = Segment> {
    let number = prop_oneof![8 => 0..40_u32, 1 => Just(u32::MAX - 3), 1 => any::<u32>()];
    let flags = prop_oneof![
        16 => Just(Flags::ACK),
        1 => Just(Flags::SYN),
        1 => Just(Flags::SYN | Flags::ACK),
        1 => Just(Flags::ACK | Flags::FIN),
        1 => Just(Flags::RST),
        4 => any::<u16>().prop_map(|ace| Flags::ACK | ace & Flags::ACE),
    ];
    let payload = prop_oneof![4 => Just(1000_u32), 2 => Just(0), 1 => 1..5000_u32];
    (
        (any::<bool>(), 0..50_i64, any::<bool>()),
        (number.clone(), number.clone(), flags, payload),
        (vec((number.clone(), number), 0..4), any::<u16>()),
        (proptest::option::of((0..100_u32, 0..100_u32)), 0..8_u32),
    )
        .prop_map(
            |((client, gap_ms, far), numbers, (sack, window), (stamps, id))| {
                let (sequence, acknowledgement, flags, payload_bytes) = numbers;
                let mut made = kit::segment(if far { gap_ms * 40 } else { gap_ms / 10 }, client);
                made.sequence = sequence.wrapping_mul(500);
                made.acknowledgement = acknowledgement.wrapping_mul(500);
                made.flags = Flags(flags);
                made.payload_bytes = payload_bytes;
                made.window = window;
                made.identification = Some(id);
                made.options.timestamps = stamps;
                for (slot, (start, end)) in sack.iter().enumerate() {
                    made.options.sack[slot] = (start.wrapping_mul(500), end.wrapping_mul(500));
                    made.options.sack_blocks += 1;
                }
                made
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn each_captured_byte_has_one_fate(segments in vec(any_segment(), 1..200)) {
        let mut analysis = Analysis::new(Options { segments: true, ..Options::default() });
        let (mut now_ns, mut bytes) = (0, 0);
        for mut segment in segments {
            now_ns += segment.time_ns.unwrap_or(0);
            segment.time_ns = Some(now_ns);
            bytes += u64::from(segment.payload_bytes);
            analysis.take(&segment);
        }
        analysis.finish();
        let rows = &analysis.output.tables.segments;
        let outcome: u64 = (0..rows.flow.len())
            .filter(|&row| rows.seen[row])
            .map(|row| u64::from(rows.payload_bytes[row]))
            .sum();
        prop_assert_eq!(outcome, bytes);
        let flows = &analysis.output.tables.flows;
        prop_assert_eq!(flows.payload_bytes.iter().sum::<u64>(), bytes);
    }

    #[test]
    fn any_bytes_are_segments(bytes in vec(any::<u8>(), 0..1600)) {
        invariants::as_segments(&bytes);
    }

    #[test]
    fn arbitrary_timestamps_are_accepted(times in vec(any::<Option<i64>>(), 1..50)) {
        let mut analysis = Analysis::new(Options::default());
        for (number, time_ns) in times.into_iter().enumerate() {
            let mut made = kit::segment(0, number % 3 > 0);
            made.time_ns = time_ns;
            made.sequence = number as u32 * 700;
            made.acknowledgement = number as u32 * 500;
            made.payload_bytes = 900;
            analysis.take(&made);
        }
        analysis.finish();
        prop_assert!(analysis.duration_s().is_finite());
    }

    #[test]
    fn a_damaged_capture_ends(place in 0..4_000_usize, byte in any::<u8>(), cut in 0..6_000_usize) {
        let whole = fs::read(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../ackclock-pcap/tests/data/pcapplusplus/one_http_stream_rst.pcap"
        )).expect("it is in the repository");
        let mut bytes = whole[..whole.len().min(cut.max(40))].to_vec();
        let place = place % bytes.len();
        bytes[place] = byte;
        invariants::as_a_file(&bytes);
    }
}
