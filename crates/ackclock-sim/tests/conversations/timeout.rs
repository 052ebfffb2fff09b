//! RFC 6298: the retransmission timeout. RFC 5681 section 3.1: what the window does then.

use ackclock_plan::{FlowPlan, TcpPlan};
use ackclock_sim::packet::Kind;

use crate::kit::cards::congestion_controls;
use crate::kit::{
    assert_reads, data, flow, linux, ms, new_reno, nth, sack_tcp, Conversation, Script,
};

/// Linux without probes, which would come before the timeout, and without the question whether it came too early.
fn patient() -> TcpPlan {
    TcpPlan {
        tail_loss_probe: false,
        frto: false,
        ..linux()
    }
}

/// Times of the timeouts when nothing ever arrives, in ms.
fn timeouts(tcp: TcpPlan, until_s: u64) -> Vec<u64> {
    let mut tcp =
        Conversation::new(&flow(tcp), ms(50)).losing([nth(Kind::Data, 1).times(u32::MAX)]);
    tcp.run(ms(1000 * until_s));
    tcp.sent()
        .lines()
        .filter_map(|line| line.strip_suffix(" ! timeout"))
        .map(|time| time.parse().expect("whole milliseconds"))
        .collect()
}

#[test]
fn the_rfc_timeout_has_a_floor_of_a_second_and_doubles_to_two_minutes() {
    let waits = [1, 2, 4, 8, 16, 32, 64, 120, 120, 120];
    let expected = waits.iter().scan(100, |time, wait| {
        *time += 1000 * wait;
        Some(*time)
    });
    assert_eq!(timeouts(sack_tcp(), 500), expected.collect::<Vec<_>>());
}

#[test]
fn jiffies_lengthen_each_timeout_by_a_jiffy() {
    let ticking = TcpPlan {
        timer_tick: ms(10),
        ..patient()
    };
    assert_eq!(timeouts(ticking, 3), [410, 410 + 610, 1020 + 1210]);
}

#[test]
fn the_linux_floor_applies_to_the_variance() {
    // The handshake's RTT of 100 ms: 100 + max(4 × 50, 200).
    assert_eq!(
        timeouts(patient(), 20),
        [
            400,
            400 + 600,
            1000 + 1200,
            2200 + 2400,
            4600 + 4800,
            9400 + 9600
        ]
    );
}

#[test]
fn a_variable_rtt_lengthens_it() {
    // RFC 6298 section 2: 100 then 900 ms: RTTVAR = 3/4 × 50 + 1/4 × 800, SRTT = 200.
    let tcp = TcpPlan {
        initial_window: 1,
        ..sack_tcp()
    };
    let mut tcp = Script::open(&flow(tcp), ms(100));
    tcp.ack(ms(1000), 1);
    assert_eq!(tcp.sender.srtt(), Some(ms(200)));
    assert_reads(
        &tcp.clear().wait(ms(2150)).sent(),
        "2150 ! timeout        # 1000 + 200 + 4 × 237.5
         2150 > data 1 again",
    );
}

#[test]
fn an_ack_of_new_data_starts_it_anew_and_new_data_do_not() {
    // RFC 6298, 5.1 and 5.3.
    let tcp = TcpPlan {
        initial_window: 2,
        ..sack_tcp()
    };
    let mut tcp = Script::open(&flow(tcp), ms(100));
    tcp.ack(ms(200), 1);
    assert_reads(
        &tcp.wait(ms(1200)).sent(),
        "   0 > syn
          100 > ack
          100 > data 0..2
          200 > data 2..4
         1200 ! timeout
         1200 > data 1 again",
    );
}

#[test]
fn everything_acknowledged_stops_it() {
    // RFC 6298, 5.2.
    let mut tcp = Conversation::new(&crate::kit::transfer(sack_tcp(), 3), ms(50));
    tcp.run(ms(1000));
    assert!(tcp.next().is_never(), "nothing is pending");
}

#[test]
fn a_timeout_restarts_from_one_segment() {
    let mut tcp = Conversation::new(&flow(patient()), ms(50)).losing((0..10).map(data));
    assert_reads(
        &tcp.run(ms(700)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10
         400 ! timeout         # ssthresh 5, window 1
         400 > data 0 again
         500 < ack 1
         500 > data 1..3 again # window 2
         600 < ack 2
         600 > data 3..5 again # 3
         600 < ack 3
         600 > data 5..7 again # 4
         700 < ack 4
         700 > data 7..9 again # 5 = ssthresh
         700 < ack 5
         700 > data 9 again
         700 < ack 6
         700 > data 10
         700 < ack 7
         700 > data 11",
    );
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (5.0, 5.0));
    let counters = tcp.sender.counters;
    assert_eq!((counters.timeouts, counters.retransmissions), (1, 10));
}

#[test]
fn a_repeated_timeout_keeps_ssthresh() {
    // RFC 5681 section 3.1: the segment was retransmitted by the timer before.
    let mut tcp =
        Conversation::new(&flow(patient()), ms(50)).losing((0..10).map(data).chain([data(0)]));
    tcp.run(ms(1000));
    assert_eq!(tcp.sender.counters.timeouts, 2);
    assert_eq!(tcp.sender.ssthresh(), 5.0);
}

#[test]
fn every_timeout_restarts_from_one_segment() {
    // The repair after the first one has grown the window to 2 and is lost in turn. Segment 1 was not
    // resent by the timer before, so ssthresh comes down as well.
    let lost = (0..10).map(data).chain([data(1), data(2)]);
    let mut tcp = Conversation::new(&flow(patient()), ms(50)).losing(lost);
    assert_reads(
        &tcp.run(ms(899)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         400 ! timeout
         400 > data 0 again
         500 > data 1..3 again
         800 ! timeout
         800 > data 1 again",
    );
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (1.0, 2.0));
}

#[test]
fn a_repeated_timeout_after_progress_restarts_from_one_segment() {
    for control in congestion_controls() {
        let kind = control.kind.clone();
        let flow = FlowPlan {
            congestion: control.into(),
            ..flow(new_reno())
        };
        let mut script = Script::open(&flow, ms(100));
        script.wait(ms(1200)).clear();
        script.ack(ms(1250), 0).ack(ms(1260), 0).clear();
        script.wait(ms(3400));
        let said = script.sent();
        assert!(said.contains("! timeout"), "{kind}: {said}");
        assert_eq!(said.matches("again").count(), 1, "{kind}: {said}");
        assert!(said.contains("data 0 again"), "{kind}: {said}");
    }
}

#[test]
fn sacked_segments_are_not_retransmitted() {
    let mut tcp = Script::open(&flow(patient()), ms(100));
    tcp.sack(ms(200), 0, &[(4, 6)]);
    let text = tcp.wait(ms(600)).ack(ms(700), 4).ack(ms(800), 10).sent();
    assert!(
        !text.contains("data 4 again") && !text.contains("data 5 again"),
        "{text}"
    );
}

#[test]
fn without_a_sample_the_backoff_stays() {
    // Karn's algorithm (RFC 6298 sections 3 and 5.7): the ACK of a repeated segment tells nothing
    // without timestamps, so segment 1 inherits the timeout that segment 0 has doubled twice.
    let tcp = TcpPlan {
        initial_window: 1,
        ..new_reno()
    };
    let mut tcp =
        Conversation::new(&flow(tcp), ms(50)).losing([data(0).times(2), data(1), data(2)]);
    assert_reads(
        &tcp.run(ms(7300)).sent(),
        "   0 > syn
          100 > ack
          100 > data 0
         1100 ! timeout
         1100 > data 0 again
         3100 ! timeout
         3100 > data 0 again
         3200 > data 1..3
         7200 ! timeout        # 3200 + 4000
         7200 > data 1 again
         7300 > data 2 again
         7300 > data 3",
    );
}

#[test]
fn an_ack_of_repeated_and_other_segments_gives_no_sample() {
    // Karn's algorithm: ACK 12 covers the repeated segment 0 and with it 1..12, which waited for it.
    let mut tcp = Conversation::new(&flow(new_reno()), ms(50))
        .spaced(ms(1))
        .losing([data(0)]);
    let text = tcp.run(ms(303)).text();
    assert!(text.contains("303 < ack 12\n"), "{text}");
    assert_eq!(tcp.sender.srtt(), Some(ms(100)));
}

#[test]
fn timestamps_end_the_backoff_immediately() {
    // RFC 7323 section 4: the echo tells which sending arrived.
    let tcp = TcpPlan {
        initial_window: 1,
        timestamps: true,
        ..new_reno()
    };
    let mut tcp =
        Conversation::new(&flow(tcp), ms(50)).losing([data(0).times(2), data(1), data(2)]);
    let text = tcp.run(ms(4300)).sent();
    assert!(text.contains("4200 ! timeout\n"), "3200 + 1000: {text}");
}

#[test]
fn a_timeout_during_recovery_ends_it() {
    // The retransmission and all that could report its loss are lost.
    let lost = [data(0).times(2), nth(Kind::Data, 12).times(6)];
    let mut tcp = Conversation::new(&flow(patient()), ms(50))
        .spaced(ms(1))
        .losing(lost);
    let text = tcp.run(ms(800)).sent();
    let counters = tcp.sender.counters;
    assert_eq!((counters.recoveries, counters.timeouts), (1, 1), "{text}");
    assert_eq!(tcp.sender.ssthresh(), 5.0, "the same loss: one reduction");
}
