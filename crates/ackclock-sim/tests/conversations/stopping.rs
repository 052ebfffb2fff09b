//! An application that stops: what it handed over until then is sent, then the connection closes.

use ackclock_core::Rate;
use ackclock_plan::FlowPlan;
use ackclock_sim::packet::Kind;

use crate::kit::{assert_reads, data, flow, linux, ms, nth, transfer, Conversation};

fn stopping(flow: FlowPlan, stop_ms: u64) -> Conversation {
    let stop = Some(ms(stop_ms));
    Conversation::new(&FlowPlan { stop, ..flow }, ms(50))
}

/// An application that writes a segment each 100 ms.
fn slow() -> FlowPlan {
    FlowPlan {
        application_rate: Some(Rate::from_bytes_per_second(10_000.0)),
        ..flow(linux())
    }
}

#[test]
fn an_endless_flow_ends_with_the_segments_in_flight() {
    let mut tcp = stopping(flow(linux()), 150);
    assert_reads(
        &tcp.run(ms(10_000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0..10
         200 > fin             # all of the window was in flight at 150
         200 ! finished
         300 > ack",
    );
    assert_eq!(tcp.receiver.delivered_bytes(), 10_000);
    assert_eq!(tcp.sender.finished, Some(ms(200)));
    assert!(tcp.next().is_never() && tcp.receiver.is_closed() && tcp.sender.is_done());
}

#[test]
fn lost_segments_are_retransmitted_after_the_stop() {
    let mut tcp = stopping(flow(linux()), 150).losing([data(3), nth(Kind::Fin, 1)]);
    tcp.run(ms(10_000));
    assert_eq!(tcp.receiver.delivered_bytes(), 10_000);
    // Six segments beyond the hole are SACKed at 200, so 3 is retransmitted then.
    assert_eq!(tcp.sender.finished, Some(ms(300)));
    assert!(tcp.receiver.is_closed());
}

#[test]
fn an_idle_flow_ends_immediately_at_the_stop() {
    // Written at 100, 200, 300 and 400; the last is acknowledged at 500.
    let mut tcp = stopping(slow(), 499);
    let text = tcp.run(ms(10_000)).sent();
    assert!(
        text.ends_with("400 > data 3\n499 > fin\n500 ! finished\n599 > ack\n"),
        "{text}"
    );
    let mut tcp = stopping(
        FlowPlan {
            application_rate: Some(Rate::from_bytes_per_second(1000.0)),
            ..flow(linux())
        },
        700,
    );
    assert_reads(
        &tcp.run(ms(10_000)).sent(),
        "  0 > syn
         100 > ack
         100 > data 0          # the next one would come at 1100
         700 ! finished        # all that there is was acknowledged before
         700 > fin
         800 > ack",
    );
    assert_eq!(tcp.receiver.delivered_bytes(), 1000);
}

#[test]
fn a_rate_limited_flow_sends_all_data_written_before_the_stop() {
    // A window of one segment: half of what is written by 1000 ms is still unsent.
    let mut tcp = linux();
    tcp.receive_window_bytes = Some(1000);
    let fast = FlowPlan {
        application_rate: Some(Rate::from_bytes_per_second(20_000.0)),
        ..flow(tcp)
    };
    let mut tcp = stopping(fast, 1000);
    tcp.run(ms(10_000));
    // Segment n is written at 100 + 50 n: n = 0 to 18.
    assert_eq!(tcp.receiver.delivered_bytes(), 19_000);
    assert_eq!(tcp.sender.finished, Some(ms(100 + 19 * 100)));
}

#[test]
fn a_transfer_that_ends_before_the_stop_is_unaffected() {
    let mut with = stopping(transfer(linux(), 3), 5000);
    let mut without = Conversation::new(&transfer(linux(), 3), ms(50));
    assert_eq!(with.run(ms(10_000)).text(), without.run(ms(10_000)).text());
}

#[test]
fn a_transfer_that_would_go_on_is_cut() {
    let mut tcp = stopping(transfer(linux(), 25), 150);
    tcp.run(ms(10_000));
    assert_eq!(tcp.receiver.delivered_bytes(), 10_000);
    // Cut in the second flight, all of which is in flight at 250.
    let mut tcp = stopping(transfer(linux(), 25), 250);
    tcp.run(ms(10_000));
    assert_eq!(tcp.receiver.delivered_bytes(), 25_000);
}

#[test]
fn a_stop_before_establishment_sends_no_data() {
    for stop_ms in [0, 40, 100] {
        let mut tcp = stopping(flow(linux()), stop_ms);
        let sent = tcp.run(ms(10_000)).sent();
        let delivered = tcp.receiver.delivered_bytes();
        // At 100 ms the SYN/ACK comes first.
        let expected = if stop_ms < 100 { 0 } else { 10_000 };
        assert_eq!(delivered, expected, "{sent}");
        assert_eq!(tcp.sender.finished, Some(ms(200)));
    }
}
