//! Undo of spurious reductions: RFC 3522, 3708, 4015 and 5682, as in Linux; RFC 8985's reordering window.

use ackclock_plan::TcpPlan;

use crate::kit::{data, flow, linux, ms, transfer, Conversation, Script};

/// Ten segments out at 100 ms, and no probes.
fn ten_out(mut tcp: TcpPlan) -> Script {
    tcp.tail_loss_probe = false;
    let mut script = Script::open(&flow(tcp), ms(100));
    script.clear();
    script
}

/// The same, with the first marked lost at 200 ms and retransmitted.
fn first_repeated(tcp: TcpPlan) -> Script {
    let mut script = ten_out(tcp);
    script.sack(ms(200), 0, &[(1, 4)]);
    assert!(script.sent().contains("data 0 again"), "{}", script.sent());
    script.clear();
    script
}

/// The same, after the timeout; SRTT is 100 ms and its floor 200 ms above.
fn timed_out(tcp: TcpPlan) -> Script {
    let mut script = ten_out(tcp);
    script.wait(ms(449));
    assert!(script.sent().contains("! timeout"), "{}", script.sent());
    script.clear();
    script
}

fn without_timestamps() -> TcpPlan {
    TcpPlan {
        timestamps: false,
        ..linux()
    }
}

#[test]
fn an_ack_of_the_original_transmission_undoes_a_reduction() {
    let mut late = first_repeated(linux());
    late.ack_echoing(ms(203), 4, ms(100));
    assert!(late.sent().contains("203 ! undo"), "{}", late.sent());
    assert_eq!(late.sender.cwnd(), 11.0, "10, and one for the segment");
    assert_eq!(late.sender.ssthresh(), f64::INFINITY);

    let mut lost = first_repeated(linux());
    lost.ack_echoing(ms(300), 4, ms(200));
    assert!(!lost.sent().contains("undo"), "{}", lost.sent());
    assert_eq!(lost.sender.ssthresh(), 5.0);
}

#[test]
fn without_the_option_the_reduction_stays() {
    let mut kept = first_repeated(TcpPlan {
        undo_spurious: false,
        ..linux()
    });
    kept.ack_echoing(ms(203), 4, ms(100));
    assert!(!kept.sent().contains("undo"), "{}", kept.sent());
    assert_eq!(kept.sender.ssthresh(), 5.0);
}

#[test]
fn dsacks_of_all_retransmissions_undo_a_reduction() {
    let mut script = first_repeated(without_timestamps());
    script.ack(ms(203), 10);
    assert_eq!(script.sender.ssthresh(), 5.0);
    script.dsack_of(ms(300), 10, 0);
    let said = script.sent();
    assert!(said.contains("300 ! spurious_retransmission"), "{said}");
    assert!(said.contains("300 ! undo"), "{said}");
    assert_eq!(script.sender.ssthresh(), f64::INFINITY);
    assert!(script.sender.cwnd() >= 10.0);
}

#[test]
fn network_duplicates_undo_nothing() {
    let mut script = ten_out(without_timestamps());
    script.dsack_of(ms(200), 2, 0);
    assert!(!script.sent().contains("spurious"), "{}", script.sent());
}

#[test]
fn a_spurious_timeout_is_detected_by_new_segments_and_undone() {
    // RFC 5682 section 3.1: step 2b sends new segments, step 3b hears of what was sent once.
    let mut script = timed_out(without_timestamps());
    script.ack(ms(450), 1);
    let said = script.sent();
    assert!(said.contains("450 > data 10..12"), "{said}");
    script.ack(ms(451), 3);
    assert!(script.sent().contains("451 ! undo"), "{}", script.sent());
    assert!(script.sender.cwnd() >= 10.0, "{}", script.sender.cwnd());
    assert_eq!(script.sender.ssthresh(), f64::INFINITY);
    assert!(!script.sent().contains("data 1 again"));
}

#[test]
fn a_genuine_timeout_recovers_when_only_new_segments_arrive() {
    // Step 3a.
    let mut script = timed_out(without_timestamps());
    script.ack(ms(500), 1).clear();
    script.sack(ms(600), 1, &[(10, 11)]);
    let said = script.sent();
    assert!(said.contains("600 > data 1"), "{said}");
    assert!(!said.contains("undo"), "{said}");
}

#[test]
fn an_application_woken_during_frto_adds_only_new_segments() {
    // With a send buffer, and two segments of receive window: 47 and 48 are lost, and a timeout repeats the first.
    let tcp = TcpPlan {
        mss_bytes: 352,
        initial_window: 1,
        receive_window_bytes: Some(704),
        tail_loss_probe: false,
        tso_batching: true,
        ..without_timestamps()
    };
    let mut conversation =
        Conversation::new(&transfer(tcp, 64), ms(1)).losing([data(48), data(0), data(47)]);
    conversation.run(ms(10_000));
    let said = conversation.sent();
    assert_eq!(conversation.receiver.duplicates, 0, "{said}");
}

#[test]
fn without_frto_recovery_continues_immediately() {
    let mut script = timed_out(TcpPlan {
        frto: false,
        ..without_timestamps()
    });
    script.ack(ms(450), 1);
    let said = script.sent();
    assert!(said.contains("450 > data 1..3 again"), "{said}");
}

#[test]
fn a_timestamp_reveals_a_spurious_timeout_immediately() {
    let mut script = timed_out(linux());
    script.ack_echoing(ms(450), 1, ms(100));
    assert!(script.sent().contains("450 ! undo"), "{}", script.sent());
    assert!(script.sender.cwnd() >= 10.0);
}

/// True if the third SACK above a hole marks it lost, after reordering.
fn marks_lost_immediately(tcp: TcpPlan) -> bool {
    let mut script = ten_out(tcp);
    script.sack(ms(200), 0, &[(1, 3)]);
    script.ack(ms(201), 3);
    script.ack(ms(205), 10).clear();
    script.sack(ms(305), 10, &[(11, 15)]);
    let at_once = script.sent().contains("recovery");
    script.wait(ms(360));
    assert!(script.sent().contains("recovery"), "{}", script.sent());
    at_once
}

#[test]
fn a_reordering_path_widens_the_reordering_window() {
    assert!(!marks_lost_immediately(linux()));
    assert!(marks_lost_immediately(TcpPlan {
        adaptive_reordering: false,
        ..linux()
    }));
}
