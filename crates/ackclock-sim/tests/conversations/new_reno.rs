//! RFC 5681 section 3.2 and RFC 6582: fast retransmit and fast recovery without SACK.
//!
//! The comments count as the RFC does: a window inflated by one segment per duplicate ACK. The sender
//! counts what is in flight instead, which comes to the same.

use ackclock_plan::{RttSampling, TcpPlan};
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, data, flow, ms, new_reno, nth, us, Conversation, Loss, Script};

fn conversation(losses: impl IntoIterator<Item = Loss>) -> Conversation {
    Conversation::new(&flow(new_reno()), ms(50))
        .spaced(ms(1))
        .losing(losses)
}

#[test]
fn the_third_duplicate_starts_recovery_and_a_full_ack_ends_it() {
    let mut tcp = conversation([data(0)]);
    assert_reads(
        &tcp.run(ms(303)).text(),
        "  0 > syn
         100 < syn/ack
         100 > ack
         100 > data 0..10      # 0 is lost
         201 < ack 0
         201 > data 10         # limited transmit (RFC 3042)
         202 < ack 0
         202 > data 11
         203 < ack 0
         203 ! recovery        # ssthresh 5, cwnd 5 + 3; 12 segments are outstanding
         203 > data 0 again
         204 < ack 0           # cwnd 9
         205 < ack 0           # 10
         206 < ack 0           # 11
         207 < ack 0           # 12
         208 < ack 0           # 13
         208 > data 12
         209 < ack 0           # 14
         209 > data 13
         301 < ack 0           # 15, for segment 10
         301 > data 14
         302 < ack 0           # 16
         302 > data 15
         303 < ack 12          # full: cwnd = ssthresh, 12..16 are outstanding
         303 > data 16",
    );
    assert_eq!((tcp.sender.cwnd(), tcp.sender.ssthresh()), (5.0, 5.0));
    assert_eq!(tcp.sender.counters.recoveries, 1);
}

#[test]
fn a_partial_ack_retransmits_the_next_hole_immediately() {
    let mut tcp = conversation([data(0), data(3)]);
    assert_reads(
        &tcp.run(ms(405)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10      # 0 and 3 are lost
         201 > data 10
         202 > data 11
         204 ! recovery        # the third duplicate is for segment 4; ssthresh 5, cwnd 8
         204 > data 0 again
         209 > data 12         # five duplicates more: cwnd 13
         301 > data 13
         302 > data 14         # cwnd 15
         304 > data 3 again    # ack 3 is partial: cwnd 15 − 3 + 1, 3..15 are outstanding
         304 > data 15
         309 > data 16         # for segment 12
         401 > data 17
         402 > data 18
         404 > data 19         # ack 15 is full: cwnd 5, 15..19 are outstanding
         405 > data 20",
    );
    assert_eq!(tcp.sender.counters.recoveries, 1);
}

#[test]
fn a_partial_ack_retransmits_the_next_hole_despite_a_full_window() {
    // RFC 6582 section 3.2, step 3: "retransmit the first unacknowledged segment", whatever the window.
    // Of 20 segments 4 arrive, 16 are missing: too many count as in flight for the window to open.
    let tcp = TcpPlan {
        initial_window: 20,
        limited_transmit: false,
        ..new_reno()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50))
        .spaced(ms(1))
        .losing((0..16).map(data));
    assert_reads(
        &tcp.run(ms(418)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..20
         218 ! recovery
         218 > data 0 again
         318 > data 1 again
         418 > data 2 again",
    );
}

/// RFC 6582 section 3.2, step 3, and section 4: 16 of 20 segments are lost and one is repaired in a round trip of 100 ms.
/// The first partial ACK, at 318 ms, starts the RTO of a second, which ends before the recovery would. A sender whose
/// timer each partial ACK restarts has no timeout.
#[test]
fn an_impatient_sender_times_out_in_a_long_recovery() {
    for impatient in [false, true] {
        let tcp = TcpPlan {
            initial_window: 20,
            impatient,
            ..new_reno()
        };
        let mut tcp = Conversation::new(&flow(tcp), ms(50))
            .spaced(ms(1))
            .losing((0..16).map(data));
        tcp.run(ms(1317));
        assert_eq!(tcp.sender.counters.timeouts, 0);
        tcp.run(ms(1318));
        assert_eq!(tcp.sender.counters.timeouts, u64::from(impatient));
        tcp.run(ms(2500));
        assert_eq!(tcp.sender.counters.timeouts, u64::from(impatient));
    }
}

/// RFC 6298 sections 2 and 3: one measurement at a time. The handshake and the first segment take 100 ms, so RTTVAR is 3/4
/// of 50 ms and the RTO 250 ms; all later segments are lost, and the last ACK arrives at 209 ms. With a sample for each ACK
/// RTTVAR has come down further by then. The smoothed RTT of the controllers is that of all ACKs in both.
#[test]
fn one_segment_at_a_time_is_timed() {
    let after = |rtt_sampling, until| {
        let tcp = TcpPlan {
            rtt_sampling,
            min_rto: ms(1),
            ..new_reno()
        };
        let mut tcp = Conversation::new(&flow(tcp), ms(50))
            .spaced(ms(1))
            .losing([nth(Kind::Data, 11).times(u32::MAX)]);
        tcp.run(ms(until));
        tcp.sender
    };
    let timeouts = |sampling, until| after(sampling, until).counters.timeouts;
    assert_eq!(timeouts(RttSampling::OneAtATime, 458), 0);
    assert_eq!(timeouts(RttSampling::OneAtATime, 459), 1);
    assert_eq!(timeouts(RttSampling::EachAck, 400), 1);
    let srtt = |sampling| after(sampling, 210).srtt();
    assert_eq!(srtt(RttSampling::OneAtATime), srtt(RttSampling::EachAck));
}

#[test]
fn without_limited_transmit_two_duplicates_release_nothing() {
    let tcp = TcpPlan {
        limited_transmit: false,
        ..new_reno()
    };
    let mut tcp = Conversation::new(&flow(tcp), ms(50))
        .spaced(ms(1))
        .losing([data(0)]);
    assert_reads(
        &tcp.run(ms(209)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         203 ! recovery        # ssthresh 5, cwnd 8, 10 are outstanding
         203 > data 0 again
         206 > data 10         # cwnd 11
         207 > data 11
         208 > data 12
         209 > data 13",
    );
}

#[test]
fn an_advance_resets_the_count_of_duplicates() {
    // RFC 5681 section 3.2: three duplicates of the same ACK.
    let mut tcp = Script::open(&flow(new_reno()), ms(100));
    tcp.ack(ms(200), 0).ack(ms(201), 0).ack(ms(202), 1);
    tcp.clear().ack(ms(203), 1).ack(ms(204), 1);
    assert_eq!(tcp.sender.counters.recoveries, 0);
    assert_reads(
        tcp.clear().ack(ms(205), 1).text().as_str(),
        "205 < ack 1
         205 ! recovery
         205 > data 1 again",
    );
}

#[test]
fn duplicates_after_a_timeout_start_no_recovery() {
    // RFC 6582 section 4, the careful variant: the ACK must cover more than `recover`.
    let mut tcp = Script::open(&flow(new_reno()), ms(100));
    tcp.wait(ms(1100));
    assert_reads(
        tcp.clear().ack(ms(1200), 10).sent().as_str(),
        "1200 > data 10..16    # 0..10 had arrived after all, cwnd 6",
    );
    for duplicate in 1..=5 {
        tcp.ack(ms(1200 + duplicate), 10);
    }
    assert_eq!(tcp.sender.counters.recoveries, 0);

    tcp.ack(ms(1300), 11);
    for duplicate in 1..=3 {
        tcp.ack(ms(1300 + duplicate), 11);
    }
    assert_eq!(tcp.sender.counters.recoveries, 1, "11 is more than 10");
}

#[test]
fn a_loss_in_the_window_after_recovery_is_a_new_episode() {
    // 16 is sent at the end of the first recovery, so it is beyond `recover`.
    let mut tcp = conversation([data(0), data(16)]);
    let text = tcp.run(ms(600)).sent();
    assert_eq!(tcp.sender.counters.recoveries, 2, "{text}");
    assert!(text.contains("> data 16 again"), "{text}");
    assert_eq!(tcp.sender.counters.timeouts, 0);
}

#[test]
fn a_segment_counted_by_a_duplicate_is_not_counted_twice() {
    // Ten segments out and in: nothing is in flight afterwards, however the ACKs came.
    let tcp = TcpPlan {
        receive_window_bytes: Some(10_000),
        ..new_reno()
    };
    let mut tcp = Script::open(&flow(tcp), ms(100));
    for duplicate in 1..=9 {
        tcp.ack(ms(200) + us(duplicate), 0);
    }
    tcp.clear().ack(ms(300), 10);
    assert_reads(&tcp.sent(), "300 > data 10..15");
    assert_eq!(tcp.sender.in_flight(), 5, "a window of ssthresh");
}
