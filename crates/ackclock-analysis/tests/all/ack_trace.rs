//! Traces of windows, one sample for each acknowledgement, on hand-made captures.

use crate::kit::{Trace, MSS};
use ackclock_analysis::ack_trace::{AckTrace, CaState, Signal};
use ackclock_analysis::analysis::Analysis;
use ackclock_analysis::output::Options;
use ackclock_pcap::packet::Flags;

const MS: i64 = 1_000_000;

fn flows(trace: &Trace, options: Options) -> Vec<AckTrace> {
    let mut analysis = Analysis::new(options);
    for segment in &trace.segments {
        analysis.take(segment);
    }
    analysis.finish();
    std::mem::take(&mut analysis.output.ack_traces.flows)
}

/// Six segments, of which the second is lost; the acknowledgement of the fifth lets its retransmission go.
fn one_loss(to_client_ms: i64, to_server_ms: i64) -> Trace {
    let mut trace = Trace::after_handshake(to_client_ms, to_server_ms);
    for number in 0..6 {
        trace.data(100, number);
    }
    trace.ack(200, 1, &[]);
    trace.data(200, 6);
    trace.ack(201, 1, &[(2, 3)]);
    trace.ack(202, 1, &[(2, 4)]);
    trace.ack(203, 1, &[(2, 5)]);
    trace.data(203, 1);
    trace.ack(303, 7, &[]);
    trace.data(303, 7);
    trace
}

#[test]
fn a_sample_is_an_acknowledgement_and_the_segments_it_clocks_out() {
    let found = flows(&one_loss(0, 100), Options::default());
    let [flow] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((flow.initial_window, flow.mss_bytes), (Some(6), MSS));
    assert_eq!(flow.handshake_ns, Some(100 * MS + 1));
    let outcome = |sample: usize| {
        let sample = &flow.samples[sample];
        [
            sample.delivered_bytes,
            sample.advanced_bytes,
            sample.in_flight_bytes,
            sample.window_bytes,
        ]
        .map(|bytes| bytes / MSS)
    };
    assert_eq!(outcome(0), [1, 1, 5, 6]);
    assert_eq!(outcome(1), [1, 0, 5, 5]);
    assert_eq!(outcome(3), [1, 0, 2, 3]); // the second is marked lost, and is retransmitted
    assert_eq!(outcome(4), [3, 6, 0, 1]); // three were sacked before
    assert_eq!(flow.samples[0].rtt_ns, Some(100 * MS as u32));
    assert_eq!(flow.samples[4].rtt_ns, None); // Karn's rule
}

#[test]
fn the_sample_before_a_retransmission_has_the_loss_signal() {
    let found = flows(&one_loss(0, 100), Options::default());
    let signals: Vec<_> = found[0]
        .samples
        .iter()
        .map(|sample| sample.signal)
        .collect();
    assert_eq!(signals, [None, None, None, Some(Signal::Loss), None]);
    let phases: Vec<_> = found[0]
        .samples
        .iter()
        .map(|sample| sample.ca_state)
        .collect();
    assert_eq!(phases[3..], [CaState::Recovery, CaState::Open]);
}

#[test]
fn a_report_of_marks_is_one_reaction_a_round() {
    let mut trace = Trace::after_handshake(0, 100);
    for number in 0..4 {
        trace.data(100, number);
    }
    for number in 1..=4 {
        trace.ack(200, number, &[]).flags = Flags(Flags::ACK | Flags::ECE);
    }
    let found = flows(&trace, Options::default());
    let signals: Vec<_> = found[0]
        .samples
        .iter()
        .map(|sample| sample.signal)
        .collect();
    assert_eq!(signals, [Some(Signal::Mark), None, None, None]);
}

#[test]
fn without_a_loss_or_memory_no_trace_is_kept() {
    let mut trace = Trace::after_handshake(0, 100);
    trace.data(100, 0);
    trace.ack(200, 1, &[]);
    assert!(flows(&trace, Options::default()).is_empty());
    let none = Options {
        max_samples: 0,
        ..Options::default()
    };
    assert!(flows(&one_loss(0, 100), none).is_empty());
}

#[test]
fn above_the_memory_limit_the_first_samples_are_kept() {
    let options = Options {
        max_samples: 4,
        ..Options::default()
    };
    let found = flows(&one_loss(0, 100), options);
    assert_eq!(found[0].samples.len(), 4);
    assert_eq!(found[0].samples[3].window_bytes, 3 * MSS);
}

#[test]
fn in_the_middle_an_acknowledgement_has_its_way_to_the_sender_before_it() {
    // The same as its sender has it, seen 30 ms from there and back.
    let mut trace = Trace::after_handshake(30, 70);
    for number in 0..6 {
        trace.data(100, number);
    }
    trace.ack(170, 1, &[]);
    trace.data(200, 6);
    let sent = [(171, 3), (172, 4), (173, 5)];
    for (at_ms, end) in sent {
        trace.ack(at_ms, 1, &[(2, end)]);
    }
    trace.data(203, 1);
    trace.ack(273, 7, &[]);
    trace.data(303, 7);
    trace.segments.sort_by_key(|segment| segment.time_ns);
    let [middle] = flows(&trace, Options::default())
        .try_into()
        .expect("a flow");
    let [sender] = flows(&one_loss(0, 100), Options::default())
        .try_into()
        .expect("a flow");
    let windows = |flow: &AckTrace| -> Vec<_> {
        let each = |sample: &ackclock_analysis::ack_trace::AckSample| {
            (sample.window_bytes, sample.rtt_ns, sample.signal)
        };
        flow.samples.iter().map(each).collect()
    };
    assert_eq!(windows(&middle), windows(&sender));
}

/// A packet with a number of its own, as its sender counts them.
fn counted(trace: &mut Trace, at_ms: i64, number: u32, identification: u32) {
    trace.data(at_ms, number).identification = Some(identification);
}

#[test]
fn losses_before_a_receiver_and_before_the_retransmission_are_one_epoch() {
    let mut trace = Trace::after_handshake(100, 0);
    for number in [0, 1, 2, 4, 6, 7, 8, 9] {
        counted(&mut trace, 100, number, number + 1);
    }
    for number in 1..=3 {
        trace.ack(100, number, &[]);
    }
    trace.ack(101, 3, &[(6, 10), (4, 5)]);
    for number in 10..15 {
        counted(&mut trace, 200, number, number + 1);
    }
    trace.ack(200, 3, &[(6, 15), (4, 5)]);
    // The sixteenth was lost too, as the identifications tell: it was sent before the first retransmission.
    counted(&mut trace, 202, 3, 17);
    trace.ack(202, 5, &[(6, 15)]);
    counted(&mut trace, 203, 16, 18);
    trace.ack(203, 5, &[(16, 17), (6, 15)]);
    counted(&mut trace, 250, 5, 19);
    trace.ack(250, 15, &[(16, 17)]);
    counted(&mut trace, 305, 15, 20);
    trace.ack(305, 17, &[]);
    counted(&mut trace, 406, 17, 21);
    trace.ack(406, 18, &[]);
    counted(&mut trace, 507, 18, 22);
    let found = flows(&trace, Options::default());
    let signals = found[0].samples.iter().filter_map(|sample| sample.signal);
    assert_eq!(signals.collect::<Vec<_>>(), [Signal::Loss]);
}

/// Seen at the receiver: the third and the fifth of ten segments are lost, and the eleventh, which is seen to miss at
/// `at_ms`; it is retransmitted last. Fast recovery begins at 200 ms.
fn loss_after_recovery_began(at_ms: i64) -> Vec<Signal> {
    let mut trace = Trace::after_handshake(100, 0);
    for number in [0, 1, 3, 5, 6, 7, 8, 9] {
        trace.data(100, number);
    }
    trace.ack(100, 2, &[(5, 10), (3, 4)]);
    trace.data(200, 2);
    trace.ack(200, 4, &[(5, 10)]);
    trace.data(at_ms, 11);
    trace.ack(at_ms, 4, &[(11, 12), (5, 10)]);
    trace.data(at_ms + 100, 4);
    trace.ack(at_ms + 100, 10, &[(11, 12)]);
    trace.data(at_ms + 101, 10);
    trace.ack(at_ms + 101, 12, &[]);
    for number in 12..14 {
        trace.data(at_ms + 300, number);
    }
    let found = flows(&trace, Options::default());
    let signals = found[0].samples.iter().filter_map(|sample| sample.signal);
    signals.collect()
}

#[test]
fn at_a_receiver_losses_right_after_recovery_began_belong_to_it() {
    assert_eq!(loss_after_recovery_began(201), [Signal::Loss]);
    assert_eq!(loss_after_recovery_began(250), [Signal::Loss; 2]);
}

/// Seen at the receiver: ten segments, of which the first is marked, and the eleventh, which passes at `at_ms` and is
/// marked too. The sender hears of the first at 200 ms.
fn marked_after_a_reaction_began(at_ms: i64) -> Vec<Signal> {
    let mut trace = Trace::after_handshake(100, 0);
    for number in 0..10 {
        trace.data(100, number);
    }
    trace.ack(100, 1, &[]).flags = Flags(Flags::ACK | Flags::ECE);
    for number in 2..=10 {
        trace.ack(100, number, &[]);
    }
    trace.data(at_ms, 10);
    trace.ack(at_ms, 11, &[]).flags = Flags(Flags::ACK | Flags::ECE);
    trace.data(at_ms + 100, 11);
    let found = flows(&trace, Options::default());
    let signals = found[0].samples.iter().filter_map(|sample| sample.signal);
    signals.collect()
}

#[test]
fn at_a_receiver_marks_right_after_a_reaction_began_belong_to_it() {
    assert_eq!(marked_after_a_reaction_began(201), [Signal::Mark]);
    assert_eq!(marked_after_a_reaction_began(250), [Signal::Mark; 2]);
}

#[test]
fn the_rest_of_an_opening_that_was_lost_before_a_receiver_is_part_of_it() {
    let mut trace = Trace::after_handshake(100, 0);
    for number in 0..8 {
        trace.data(100, number);
    }
    trace.ack(100, 8, &[]);
    trace.data(200, 10); // the ninth and the tenth were lost
    trace.ack(200, 8, &[(10, 11)]);
    trace.data(301, 8);
    let found = flows(&trace, Options::default());
    assert_eq!(found[0].initial_window, Some(10));
}

#[test]
fn segments_of_a_burst_wait_longer_the_later_they_arrive() {
    let mut trace = Trace::after_handshake(100, 0);
    for (number, at_ms) in [(0, 100), (1, 110), (2, 120), (3, 130)] {
        trace.data(at_ms, number).options.timestamps = Some((1000, 1));
        let ack = trace.ack(at_ms, number + 1, &[]);
        ack.options.timestamps = Some((5000 + at_ms as u32, 1000));
    }
    for (number, at_ms) in [(4, 201), (6, 211)] {
        let echo = 4899 + at_ms as u32;
        trace.data(at_ms, number).options.timestamps = Some((1100, echo));
    }
    let ack = trace.ack(212, 5, &[(6, 7)]);
    ack.options.timestamps = Some((5212, 1100));
    trace.data(313, 5).options.timestamps = Some((1212, 5212));
    let found = flows(&trace, Options::default());
    let rtts = found[0].samples[..4].iter().map(|sample| sample.rtt_ns);
    let ms = [100, 110, 120, 130].map(|ms| Some(ms * MS as u32));
    assert_eq!(rtts.collect::<Vec<_>>(), ms);
}

#[test]
fn the_end_of_a_burst_that_was_lost_before_a_receiver_belongs_to_the_window_of_the_burst() {
    let mut trace = Trace::after_handshake(100, 0);
    let mut echoing = |at_ms: i64, number: u32, echo: u32| {
        trace.data(at_ms, number).options.timestamps = Some((at_ms as u32, echo));
        let last = if number == 8 { 6 } else { number + 1 };
        let blocks: &[(u32, u32)] = if number == 8 { &[(8, 9)] } else { &[] };
        let ack = trace.ack(at_ms, last, blocks);
        ack.options.timestamps = Some((1000 + at_ms as u32, at_ms as u32));
    };
    echoing(100, 0, 1);
    echoing(110, 1, 1);
    // Answers to the first: three, of which two were lost. Then one to the second.
    for number in 2..6 {
        echoing(200 + i64::from(number), number, 1100);
    }
    echoing(211, 8, 1110);
    trace.data(330, 6);
    let found = flows(&trace, Options::default());
    let windows = found[0].samples[..2]
        .iter()
        .map(|sample| sample.window_bytes);
    // After the first: the second, four that were seen and the two that were lost.
    assert_eq!(windows.collect::<Vec<_>>(), [7 * MSS, 7 * MSS]);
}

#[test]
fn segments_lost_before_a_receiver_are_attributed_to_apparent_reductions() {
    let mut trace = Trace::after_handshake(100, 0);
    for number in 0..12 {
        let at_ms = 100 + 100 * i64::from(number / 4) + 10 * i64::from(number % 4);
        if [9, 10].contains(&number) {
            continue; // what the sixth and the seventh acknowledgement let go is lost
        }
        trace.data(at_ms, number);
        if number < 9 {
            trace.ack(at_ms, number + 1, &[]);
        } else {
            trace.ack(at_ms, 9, &[(11, 12)]);
        }
    }
    trace.data(440, 9);
    let found = flows(&trace, Options::default());
    let samples = &found[0].samples[..8];
    let windows: Vec<u32> = samples
        .iter()
        .map(|sample| sample.window_bytes / MSS)
        .collect();
    assert_eq!(windows, [4; 8]);
}

#[test]
fn after_a_lost_opening_the_first_arrival_waited_for_the_timer() {
    let mut trace = Trace::after_handshake(0, 0);
    trace.segments.truncate(2); // the client's acknowledgement is lost, and so are ten segments
    trace.segments[1].options.timestamps = Some((1, 0));
    let mut echoing = |at_ms: i64, number: u32, echo: u32| {
        trace.data(at_ms, number).options.timestamps = Some((at_ms as u32, echo));
        let until = if number == 10 { 0 } else { number + 1 };
        let ack = trace.ack(at_ms, until, &[(10, 11)]);
        ack.options.timestamps = Some((1000 + at_ms as u32, at_ms as u32));
    };
    echoing(500, 10, 1);
    for number in 0..4 {
        echoing(600 + 100 * i64::from(number), number, 1500 + 100 * number);
    }
    let found = flows(&trace, Options::default());
    assert_eq!(found[0].handshake_ns, None);
    let rtts: Vec<u32> = found[0]
        .samples
        .iter()
        .filter_map(|sample| sample.rtt_ns)
        .collect();
    assert_eq!(rtts, [100 * MS as u32]);
}

#[test]
fn an_opening_was_sent_with_the_acknowledgement_that_ends_the_handshake() {
    let mut trace = Trace::after_handshake(100, 0);
    trace.segments[2].options.timestamps = Some((1000, 1));
    for (number, at_ms) in [(0, 110), (1, 120)] {
        trace.data(at_ms, number).options.timestamps = Some((1000, 1));
        let ack = trace.ack(at_ms, number + 1, &[]);
        ack.options.timestamps = Some((5000 + at_ms as u32, 1000));
    }
    for (number, at_ms) in [(3, 220), (4, 230)] {
        trace.data(at_ms, number).options.timestamps = Some((1100, 4890 + at_ms as u32));
    }
    let ack = trace.ack(231, 2, &[(3, 5)]);
    ack.options.timestamps = Some((5231, 1100));
    trace.data(332, 2).options.timestamps = Some((1212, 5231));
    let found = flows(&trace, Options::default());
    let rtts = found[0].samples[..2].iter().map(|sample| sample.rtt_ns);
    assert!(rtts.eq([110, 120].map(|ms| Some(ms * MS as u32))));
}
