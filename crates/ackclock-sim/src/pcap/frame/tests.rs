use super::super::parser;
use super::*;
use crate::packet::{Kind, NO_PACKET};
use proptest::prelude::*;

fn segment(payload_bytes: u32, options: Options) -> Segment {
    Segment {
        flow: 0,
        forward: true,
        flags: ACK,
        sequence: 1,
        acknowledgement: 1,
        window: 501,
        payload_bytes,
        identification: 7,
        options,
    }
}

fn written(segment: &Segment) -> parser::Frame {
    frame_behind(segment, Ecn::NotEct, 0)
}

/// The frame of a segment behind some routers.
fn frame_behind(segment: &Segment, ecn: Ecn, routers: u8) -> parser::Frame {
    let mut frame = Frame::default();
    frame.set_segment(segment);
    (0..routers).for_each(|_| frame.pass_router());
    let mut file = ackclock_pcap::savefile::header();
    let time = Time::from_picoseconds(3_000_000_007_999);
    frame.append_to(&mut file, time, ecn);
    parser::frames(&file).remove(0)
}

/// The header's words of the test by hand in `pcap/tests.rs`, and three bytes of payload instead of 1000: each of the two
/// lengths is 03e5 less, and the words c102 and 0300 are more. effc - 2 * 03e5 + c102 + 0300 = 1_ac34, with the carry
/// ac35.
#[test]
fn the_content_of_a_datagram_is_captured_and_in_its_checksum() {
    let packet = Packet {
        flow: 0,
        kind: Kind::Datagram,
        wire_bytes: 31,
        ..NO_PACKET
    };
    let mut frame = Frame::default();
    frame.set_datagram(&packet, &[0xc1, 2, 3, 4]);
    let mut record = Vec::new();
    frame.append_to(&mut record, Time::ZERO, Ecn::NotEct);
    let udp = &record[16 + ETHERNET_BYTES + IP_BYTES..];
    assert_eq!(udp[4..6], [0, 11]);
    assert_eq!(udp[6..8], (!0xac35_u16).to_be_bytes());
    assert_eq!(udp[8..], [0xc1, 2, 3]);
}

#[test]
fn a_full_segment_with_timestamps_has_1514_bytes_and_is_cut_at_the_snap_length() {
    let options = Options {
        timestamps: Some((7, 9)),
        ..Options::default()
    };
    let frame = written(&segment(1448, options));
    assert_eq!((frame.wire_bytes, frame.payload_bytes), (1514, 1448));
    assert_eq!(frame.timestamps, Some((7, 9)));
    assert_eq!(frame.nanoseconds, 3_000_000_007);
    assert_eq!(frame.source, "10.0.0.1:49152");
    assert_eq!(frame.destination, "10.128.0.1:5001");
}

#[test]
fn a_syn_of_linux_has_20_bytes_of_options() {
    let options = Options {
        mss: Some(1460),
        sack_permitted: true,
        window_shift: Some(7),
        timestamps: Some((1, 0)),
        ..Options::default()
    };
    let frame = written(&segment(0, options));
    assert_eq!(frame.option_bytes, 20);
    assert_eq!((frame.mss, frame.window_shift), (Some(1460), Some(7)));
    assert!(frame.sack_permitted);
}

#[test]
fn excess_sack_blocks_are_left_out() {
    let blocks = [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)];
    let with = |timestamps| {
        let options = Options {
            timestamps,
            sack: &blocks,
            ..Options::default()
        };
        written(&segment(0, options)).sack
    };
    assert_eq!(with(None), blocks[..4]);
    assert_eq!(with(Some((1, 1))), blocks[..3]);
}

proptest! {
    /// Any segment can be read back, with valid checksums.
    #[test]
    fn frames_round_trip(
        fields in any::<(u32, bool, u32, u32, u16)>(),
        payload_bytes in 0_u32..9000,
        mss in any::<Option<u16>>(),
        flags in any::<[bool; 2]>(),
        shift in proptest::option::of(0_u8..15),
        timestamps in any::<Option<(u32, u32)>>(),
        sack in proptest::collection::vec(any::<(u32, u32)>(), 0..5),
        min_bytes in 0_usize..60,
        (identification, routers) in (any::<u16>(), 0_u8..60),
    ) {
        let (flow, forward, sequence, acknowledgement, window) = fields;
        let [sack_permitted, marked] = flags;
        let sack = &sack[..];
        let window_shift = shift;
        let options = Options { mss, sack_permitted, window_shift, timestamps, sack, min_bytes };
        let ecn = if marked { Ecn::Ce } else { Ecn::Ect0 };
        let segment = Segment {
            flow, forward, sequence, acknowledgement, window, identification,
            ..segment(payload_bytes, options)
        };
        let frame = frame_behind(&segment, ecn, routers);
        prop_assert_eq!((frame.identification, frame.time_to_live), (identification, 64 - routers));
        prop_assert_eq!((frame.sequence, frame.acknowledgement), (sequence, acknowledgement));
        prop_assert_eq!((frame.window, frame.payload_bytes), (window, payload_bytes as usize));
        prop_assert_eq!((frame.mss, frame.window_shift), (mss, shift));
        prop_assert_eq!((frame.timestamps, frame.sack_permitted), (timestamps, sack_permitted));
        prop_assert_eq!(&frame.sack[..], &sack[..frame.sack.len()]);
        prop_assert_eq!(frame.tos, if marked { 3 } else { 2 });
        prop_assert!(frame.option_bytes >= min_bytes.min(40));
    }
}
