//! The two ends of a media flow, without a network between them.

use ackclock_core::tables::Tables;
use ackclock_core::{Rate, Time};
use ackclock_plan::{
    CongestionPlan, DatagramPlan, EcnMode, FeedbackTrigger, MediaPlan, PathPlan, SourcePlan,
};
use serde_json::json;

use super::{MediaReceiver, MediaSender};
use crate::endpoint::{Endpoint, Outgoing, Payload};
use crate::packet::{Ecn, Flags, Kind, Packet};
use crate::rtp::Report;

const fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

/// 20 frames a second at 1 Mbit/s, 6250 bytes with headers: 6026 of payload in six packets.
pub fn media_plan() -> MediaPlan {
    let parameters = json!({
        "burst_time_s": 0.005, "state_noise": 1e-3, "initial_error": 0.1, "chi": 0.01, "threshold_s": 0.0125,
        "min_threshold_s": 0.006, "max_threshold_s": 0.6, "overuse_time_s": 0.010, "k_u": 0.01, "k_d": 0.00018,
        "max_deltas": 60, "rate_window_s": 0.5, "beta": 0.85, "eta": 1.08, "pacing_factor": 2.5,
    });
    MediaPlan {
        congestion: CongestionPlan {
            kind: "gcc".to_owned(),
            parameters,
        },
        min_rate: Rate::from_bits_per_second(100e3),
        start_rate: Rate::from_bits_per_second(1e6),
        max_rate: Rate::from_bits_per_second(2e6),
        frames_per_s: 30.0,
        size_variation: 0.15,
        reaction: ms(200),
        feedback_interval: ms(100),
        feedback: FeedbackTrigger::Interval,
        circuit_breaker: false,
        ecn: EcnMode::Off,
    }
}

fn plan(media: &MediaPlan) -> DatagramPlan {
    let path = PathPlan {
        hops: vec![],
        delay: Time::ZERO,
    };
    DatagramPlan {
        group: 0,
        start: Time::ZERO,
        stop: Some(ms(1000)),
        priority: 0,
        ends: None,
        forward: path.clone(),
        reverse: path,
        payload_bytes: 1200,
        header_bytes: 40,
        source: SourcePlan::Media(media.clone()),
    }
}

fn sender(media: &MediaPlan) -> MediaSender {
    MediaSender::new(&plan(media), media, Time::ZERO, 1, 0).expect("the plan is sound")
}

/// A video without variation: at 1 Mbit/s and 20 frames a second 6250 · 1200/1240 = 6048 bytes a frame.
fn even() -> MediaPlan {
    MediaPlan {
        frames_per_s: 20.0,
        size_variation: 0.0,
        ..media_plan()
    }
}

/// All packets of a sender, with the times at which they leave.
fn run(sender: &mut MediaSender) -> Vec<(Time, Outgoing)> {
    let mut sent = Vec::new();
    while !sender.wake().is_never() {
        let now = sender.wake();
        sent.extend(sender.poll(now).map(|packet| (now, packet)));
    }
    sent
}

fn deliver(receiver: &mut MediaReceiver, outgoing: &Outgoing, at: Time, ecn: Ecn) {
    let packet = Packet {
        flags: Flags::of(ecn),
        ..outgoing.packet(0, Kind::Datagram, at)
    };
    receiver.on_packet(&packet, outgoing.payload.clone(), at);
}

#[test]
fn frames_are_split_into_packets_that_leave_at_the_pacing_rate() {
    let sent = run(&mut sender(&even()));
    assert_eq!(sent.len(), 20 * 6, "a second of six packets a frame");
    let first: Vec<_> = sent.iter().take(6).collect();
    let bytes: u32 = first.iter().map(|(_, packet)| packet.wire_bytes).sum();
    assert_eq!(bytes, 6048 + 6 * 40);
    assert!(first.iter().all(|(_, packet)| packet.wire_bytes == 1048));
    // 1048 bytes at 2.5 Mbit/s take 3.3536 ms.
    assert_eq!(first[1].0, Time::from_picoseconds(3_353_600_000));
    assert_eq!(sent[6].0, ms(50));
    let numbers: Vec<u64> = sent.iter().map(|(_, packet)| packet.sequence).collect();
    assert_eq!(numbers, (0..120).collect::<Vec<_>>());
}

#[test]
fn a_frame_is_displayed_when_its_last_packet_has_arrived_and_not_after_a_later_one() {
    let sent = run(&mut sender(&even()));
    let mut receiver = MediaReceiver::new(&even());
    // Frame 0 lacks its last packet until frame 1 is displayed; one packet comes twice.
    let order = [0, 1, 2, 3, 4, 6, 7, 8, 8, 9, 10, 11, 5];
    for (position, &number) in order.iter().enumerate() {
        let at = ms(100 + position as u64);
        deliver(&mut receiver, &sent[number].1, at, Ecn::NotEct);
    }
    let mut tables = Tables::default();
    receiver.write_rows(3, ms(500), &mut tables);
    let frames = &tables.frames;
    assert_eq!((&frames.frame[..], &frames.flow[..]), (&[1][..], &[3][..]));
    assert_eq!(frames.bytes, [6048]);
    // Captured at 50 ms, complete at 111 ms.
    assert!((frames.delay_s[0] - 0.061).abs() < 1e-12 && (frames.time_s[0] - 0.111).abs() < 1e-12);
    assert_eq!(receiver.delivered_bytes(), 12 * 1008, "one came twice");
}

#[test]
fn frames_displayed_after_the_end_of_the_run_are_not_recorded() {
    let sent = run(&mut sender(&even()));
    let mut receiver = MediaReceiver::new(&even());
    for (_, packet) in &sent[..6] {
        deliver(&mut receiver, packet, ms(100), Ecn::NotEct);
    }
    let mut tables = Tables::default();
    receiver.write_rows(0, ms(99), &mut tables);
    assert!(tables.frames.frame.is_empty());
}

fn report_of(outgoing: Option<Outgoing>) -> (u32, Report) {
    let outgoing = outgoing.expect("a report");
    match outgoing.payload {
        Some(Payload::Report(report)) => (outgoing.wire_bytes, *report),
        other => panic!("expected a report, found {other:?}"),
    }
}

#[test]
fn reports_have_arrivals_losses_and_marks_and_are_sent_at_the_interval() {
    let sent = run(&mut sender(&even()));
    let mut receiver = MediaReceiver::new(&even());
    assert!(receiver.wake().is_never());
    deliver(&mut receiver, &sent[0].1, ms(40), Ecn::NotEct);
    deliver(&mut receiver, &sent[3].1, ms(60), Ecn::Ce);
    assert_eq!(receiver.wake(), ms(140));
    assert!(receiver.poll(ms(139)).is_none());
    let (bytes, report) = report_of(receiver.poll(ms(140)));
    // 28 + 20 and four packets of two bytes.
    assert_eq!(bytes, 56);
    assert_eq!(
        (report.first, report.arrivals.len(), report.sent),
        (0, 4, ms(140))
    );
    let arrivals: Vec<_> = report
        .arrivals
        .iter()
        .map(|arrival| arrival.map(|arrival| (arrival.time, arrival.marked)))
        .collect();
    assert_eq!(
        arrivals,
        [Some((ms(40), false)), None, None, Some((ms(60), true))]
    );
    // Too late: it was reported as lost. The next one is reported an interval after the last report.
    deliver(&mut receiver, &sent[2].1, ms(150), Ecn::NotEct);
    assert!(receiver.wake().is_never());
    deliver(&mut receiver, &sent[4].1, ms(160), Ecn::NotEct);
    assert_eq!(receiver.wake(), ms(240));
    let (bytes, report) = report_of(receiver.poll(ms(240)));
    assert_eq!((bytes, report.first, report.arrivals.len()), (52, 4, 1));
    // After a pause at once.
    deliver(&mut receiver, &sent[5].1, ms(900), Ecn::NotEct);
    assert_eq!(receiver.wake(), ms(900));
}

#[test]
fn feedback_by_the_frame_reports_each_last_packet_and_each_sixteenth() {
    let media = MediaPlan {
        feedback: FeedbackTrigger::Frame,
        ..even()
    };
    let sent = run(&mut sender(&media));
    let mut receiver = MediaReceiver::new(&media);
    for packet in &sent[..5] {
        deliver(&mut receiver, &packet.1, ms(40), Ecn::NotEct);
        assert_eq!(receiver.wake(), ms(140), "the frame has six packets");
    }
    deliver(&mut receiver, &sent[5].1, ms(50), Ecn::NotEct);
    assert_eq!(receiver.wake(), ms(50));
    let (_, report) = report_of(receiver.poll(ms(50)));
    assert_eq!(report.arrivals.len(), 6);
    let middle: Vec<_> = (0..100).filter(|n| n % 6 != 5).skip(5).take(16).collect();
    for &number in &middle[..15] {
        deliver(&mut receiver, &sent[number].1, ms(60), Ecn::NotEct);
        assert_eq!(receiver.wake(), ms(150));
    }
    deliver(&mut receiver, &sent[middle[15]].1, ms(70), Ecn::NotEct);
    assert_eq!(receiver.wake(), ms(70));
}

#[test]
fn with_a_circuit_breaker_an_empty_report_follows_5_s_after_the_last() {
    let media = MediaPlan {
        circuit_breaker: true,
        ..even()
    };
    let sent = run(&mut sender(&media));
    let mut receiver = MediaReceiver::new(&media);
    deliver(&mut receiver, &sent[0].1, ms(40), Ecn::NotEct);
    assert!(receiver.poll(ms(140)).is_some());
    assert_eq!(receiver.wake(), ms(5140));
    let (bytes, report) = report_of(receiver.poll(ms(5140)));
    assert_eq!((bytes, report.first, report.arrivals.len()), (48, 1, 0));
    assert_eq!(receiver.wake(), ms(10_140));
}

/// A UDP datagram of 65,507 bytes has room for 20 bytes and, in words of two, 32,742 packets.
#[test]
fn a_full_report_does_not_wait_for_its_interval_and_fits_a_datagram() {
    let mut receiver = MediaReceiver::new(&even());
    let mut packet = sender(&even()).poll(Time::ZERO).expect("a packet");
    deliver(&mut receiver, &packet, ms(40), Ecn::NotEct);
    packet.sequence = 32_740;
    deliver(&mut receiver, &packet, ms(50), Ecn::NotEct);
    assert_eq!(receiver.wake(), ms(140));
    packet.sequence = 40_000;
    deliver(&mut receiver, &packet, ms(60), Ecn::NotEct);
    assert_eq!(receiver.wake(), ms(60));
    let (bytes, report) = report_of(receiver.poll(ms(60)));
    assert_eq!((report.first, report.arrivals.len()), (7_259, 32_742));
    assert_eq!(bytes, 28 + 65_504);
}

/// The report of 140 ms reaches the sender at 190 ms: the packet of 40 ms was sent at 0 and waited 100 ms: 90 ms.
#[test]
fn the_rtt_is_without_the_time_that_the_report_waited() {
    let (mut media, mut receiver) = (sender(&even()), MediaReceiver::new(&even()));
    let first = media.poll(Time::ZERO).expect("a packet");
    deliver(&mut receiver, &first, ms(40), Ecn::NotEct);
    let report = receiver.poll(ms(140)).expect("a report");
    let packet = report.packet(0, Kind::Echo, ms(140));
    media.on_packet(&packet, report.payload.clone(), ms(190));
    assert_eq!(media.rtt(), Some(ms(90)));
    // The same report again has nothing new.
    media.on_packet(&packet, report.payload, ms(300));
    assert_eq!(media.rtt(), Some(ms(90)));
}

#[test]
fn the_same_seed_gives_the_same_frames_and_another_one_others() {
    let sizes = |seed| {
        let media = media_plan();
        let mut sender =
            MediaSender::new(&plan(&media), &media, Time::ZERO, seed, 0).expect("sound");
        let sent = run(&mut sender);
        sent.iter()
            .map(|(_, packet)| packet.wire_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(1), sizes(1));
    assert_ne!(sizes(1), sizes(2));
}

#[test]
fn ecn_bits_are_those_of_the_plan() {
    for (ecn, bits) in [
        (EcnMode::Off, Ecn::NotEct),
        (EcnMode::Classic, Ecn::Ect0),
        (EcnMode::L4s, Ecn::Ect1),
    ] {
        let media = MediaPlan { ecn, ..even() };
        let packet = sender(&media).poll(Time::ZERO).expect("a packet");
        assert_eq!(packet.flags.ecn(), bits);
    }
}
