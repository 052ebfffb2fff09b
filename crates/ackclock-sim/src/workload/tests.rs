use super::*;
use crate::packet::NO_PACKET;

fn workload(size_bytes: Option<u64>, rate_bytes_per_s: Option<f64>) -> Workload {
    let segments = segments_of(size_bytes, 1000);
    Workload {
        mss_bytes: 1000,
        size_bytes,
        segments,
        end: segments.saturating_add(1),
        messages: None,
        closes_in_data: false,
        buffer_segments: u64::MAX,
        is_greedy: rate_bytes_per_s.is_none(),
        period: rate_bytes_per_s.map(|rate| Time::from_seconds(1000.0 / rate)),
        started: Time::NEVER,
        stop: Time::NEVER,
    }
}

const fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

#[test]
fn the_last_segment_has_the_rest_and_the_fin_nothing() {
    let workload = workload(Some(2500), None);
    assert_eq!(workload.segments, 3);
    let payloads: Vec<u64> = (0..5)
        .map(|segment| workload.payload_bytes(segment))
        .collect();
    assert_eq!(payloads, [1000, 1000, 500, 0, 0]);
    let sums: Vec<u64> = (0..5)
        .map(|segments| workload.payload_before(segments))
        .collect();
    assert_eq!(sums, [0, 1000, 2000, 2500, 2500]);
    let kinds = [1, 2, 3].map(|segment| workload.kind(segment));
    assert_eq!(kinds, [Kind::Data, Kind::Data, Kind::Fin]);
    assert_eq!((workload.segments, workload.end), (3, 4));
}

#[test]
fn a_run_ends_before_the_last_segment_of_the_data() {
    for size_bytes in [2500, 3000] {
        for in_data in [false, true] {
            let mut workload = workload(Some(size_bytes), None);
            if in_data {
                workload.close_in_data();
            }
            for first in 0..4 {
                let (kind, payload_bytes, run) = workload.run(first);
                assert_eq!(run, (2_u64.saturating_sub(first)).max(1));
                for segment in first..first + run {
                    assert_eq!(kind, workload.kind(segment));
                    assert_eq!(u64::from(payload_bytes), workload.payload_bytes(segment));
                }
            }
        }
    }
    assert_eq!(workload(Some(0), None).run(0), (Kind::Fin, 0, 1));
}

#[test]
fn a_fin_in_the_last_segment_is_no_segment_more() {
    let mut workload = workload(Some(2500), None);
    workload.close_in_data();
    let kinds = [1, 2].map(|segment| workload.kind(segment));
    assert_eq!(kinds, [Kind::Data, Kind::DataFin]);
    assert_eq!((workload.end, workload.available(0, Time::ZERO)), (3, 3));
}

#[test]
fn the_receiver_learns_the_end_with_or_after_the_data() {
    for (kind, sequence, end) in [(Kind::Fin, 5, 6), (Kind::DataFin, 4, 5)] {
        let mut workload = workload(None, None);
        assert_eq!(workload.end, u64::MAX);
        workload.on_end(&Packet {
            sequence,
            kind,
            ..NO_PACKET
        });
        assert_eq!((workload.segments, workload.end), (5, end));
    }
}

#[test]
fn a_full_last_segment_is_not_followed_by_an_empty_one() {
    assert_eq!(workload(Some(3000), None).segments, 3);
    assert_eq!(workload(Some(3001), None).segments, 4);
    assert_eq!(workload(Some(1), None).segments, 1);
    assert_eq!(workload(Some(0), None).segments, 0);
}

#[test]
fn an_unlimited_application_has_written_all_and_the_fin() {
    assert_eq!(workload(Some(2500), None).available(0, Time::ZERO), 4);
    assert_eq!(workload(Some(0), None).available(0, Time::ZERO), 1);
    assert_eq!(workload(None, None).available(0, Time::ZERO), u64::MAX);
}

#[test]
fn a_slow_one_writes_a_segment_at_a_time_and_the_fin_with_the_last() {
    let mut workload = workload(Some(2500), Some(10_000.0));
    assert_eq!(
        workload.available(0, ms(5000)),
        0,
        "not before the connection is open"
    );
    workload.start(ms(1000));
    let written = [1000, 1099, 1100, 1199, 1200, 1300].map(|at| workload.available(0, ms(at)));
    assert_eq!(written, [1, 1, 2, 2, 4, 4]);
    let times = [0, 1, 2].map(|segment| workload.written_at(segment));
    assert_eq!(times, [ms(1000), ms(1100), ms(1200)]);
}

#[test]
fn each_segment_is_available_from_the_time_it_is_written_at() {
    let mut workload = workload(None, Some(123_456.7));
    workload.start(ms(7));
    for segment in 0..1000 {
        let written = workload.written_at(segment);
        let before = Time::from_picoseconds(written.picoseconds() - 1);
        assert_eq!(workload.available(0, written), segment + 1);
        assert_eq!(workload.available(0, before), segment);
    }
}

#[test]
fn an_endless_transfer_has_no_fin() {
    let workload = workload(None, None);
    assert_eq!(
        (workload.kind(1 << 60), workload.end),
        (Kind::Data, u64::MAX)
    );
    assert_eq!(workload.payload_bytes(1 << 60), 1000);
    assert_eq!(workload.payload_before(u64::MAX), u64::MAX);
}

/// A jitter may begin a flow after its stop; its timer must not be due before there is a flow.
#[test]
fn an_application_stops_no_earlier_than_its_flow_begins() {
    let stopping = |begin| {
        let mut workload = Workload {
            stop: ms(500),
            ..workload(None, None)
        };
        workload.begin(begin);
        workload.stop
    };
    assert_eq!(stopping(ms(1000)), ms(1000));
    assert_eq!(stopping(ms(100)), ms(500));
}

#[test]
fn a_buffer_of_a_given_size_holds_back_what_has_no_room() {
    let mut workload = workload(Some(9500), None);
    (workload.buffer_segments, workload.is_greedy) = (4, false);
    let available = [0, 3, 6, 10].map(|acknowledged| workload.available(acknowledged, Time::ZERO));
    assert_eq!(available, [4, 7, 10, 11]);
    assert_eq!(workload.available_without_buffer(Time::ZERO), 11);
}
