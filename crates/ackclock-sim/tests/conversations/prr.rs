//! RFC 6937: how the window comes down in fast recovery, besides RFC 6675's way.
//!
//! The cases are those of the RFC's section 3.1: 20 segments, ssthresh 10, limited transmit. The reduction
//! is measured against the window of 20, as Linux does it, and not against the 22 segments that limited
//! transmit has made outstanding. In the RFC's figures a retransmission counts as in flight one ACK
//! later than here.

use ackclock_plan::{Reduction, TcpPlan};

use crate::kit::{assert_reads, data, flow, linux, ms, sack_tcp, Conversation, Script};

fn conversation(reduction: Reduction, lost: u64) -> Conversation {
    let tcp = TcpPlan {
        initial_window: 20,
        recovery_reduction: reduction,
        ..sack_tcp()
    };
    Conversation::new(&flow(tcp), ms(50))
        .spaced(ms(1))
        .losing((0..lost).map(data))
}

#[test]
fn a_single_loss_sends_one_segment_for_two_delivered() {
    let mut tcp = conversation(Reduction::Prr, 1);
    assert_reads(
        &tcp.run(ms(303)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..20      # 0 is lost
         201 > data 20
         202 > data 21
         203 ! recovery
         203 > data 0 again    # 1 delivered in recovery: ⌈10/20⌉
         205 > data 22         # 3 delivered: 2
         207 > data 23
         209 > data 24
         211 > data 25
         213 > data 26
         215 > data 27
         217 > data 28         # 15 delivered: 8
         301 > data 29         # in flight has come down to 10, and stays there
         302 > data 30
         303 > data 31         # ack 22: the end",
    );
    assert_eq!(tcp.sender.in_flight(), 10);
    assert_eq!(tcp.sender.cwnd(), 10.0);
}

#[test]
fn a_single_loss_by_rfc_6675_pauses_for_half_a_window() {
    let mut tcp = conversation(Reduction::Immediate, 1);
    assert_reads(
        &tcp.run(ms(219)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..20
         201 > data 20
         202 > data 21
         203 ! recovery
         203 > data 0 again    # pipe 19
         213 > data 22         # pipe 9 before
         214 > data 23
         215 > data 24
         216 > data 25
         217 > data 26
         218 > data 27
         219 > data 28",
    );
}

#[test]
fn heavy_loss_sends_one_for_one_and_twice_as_fast_with_progress() {
    let mut tcp = conversation(Reduction::Prr, 15);
    assert_reads(
        &tcp.run(ms(417)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..20      # 0..15 are lost
         215 > data 20
         216 > data 21
         217 ! recovery        # pipe 22 − 3 − 15, below ssthresh
         217 > data 0 again    # the conservative bound: as many as delivered
         218 > data 1 again
         219 > data 2 again
         315 > data 3 again    # SACK of 20
         316 > data 4 again
         317 > data 5..7 again # ack 1 is progress: one more than delivered, as in slow start
         318 > data 7..9 again
         319 > data 9..11 again
         415 > data 11..13 again
         416 > data 13..15 again
         417 > data 22         # pipe 9 before: up to ssthresh, not beyond",
    );
    assert_eq!(tcp.sender.in_flight(), 10);
}

#[test]
fn an_ack_that_reports_another_loss_is_no_progress() {
    let tcp = TcpPlan {
        initial_window: 20,
        ..linux()
    };
    let mut tcp = Script::open(&flow(tcp), ms(100));
    tcp.sack(ms(200), 0, &[(15, 20)]); // 0..15 are lost; as many are sent as delivered
    tcp.sack(ms(300), 1, &[(2, 3), (15, 20)]); // 0 and 2 arrived, so 1 is lost again
    assert_reads(
        &tcp.sent(),
        "  0 > syn
         100 > ack
         100 > data 0..20
         200 ! recovery
         200 > data 0..5 again
         300 > data 1 again    # two for two
         300 > data 5 again",
    );
}

#[test]
fn heavy_loss_by_rfc_6675_sends_a_burst() {
    let mut tcp = conversation(Reduction::Immediate, 15);
    assert_reads(
        &tcp.run(ms(219)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..20
         215 > data 20
         216 > data 21
         217 ! recovery
         217 > data 0..6 again # pipe 4 before, window 10
         218 > data 6 again
         219 > data 7 again",
    );
}

#[test]
fn a_reduction_ends_at_ssthresh_for_any_loss() {
    // Limited transmit keeps the ACKs coming: the third SACK comes even when one segment of 20 arrives.
    for lost in 1..20 {
        let mut tcp = conversation(Reduction::Prr, lost);
        tcp.run(ms(100));
        while tcp.sender.acknowledged_bytes() < 22_000 {
            tcp.step();
        }
        assert_eq!(tcp.sender.cwnd(), 10.0, "{lost} lost");
        let counters = tcp.sender.counters;
        assert_eq!(
            (counters.recoveries, counters.timeouts),
            (1, 0),
            "{lost} lost"
        );
        assert_eq!(counters.retransmissions, lost, "{lost} lost");
    }
}
