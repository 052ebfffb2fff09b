use super::*;

fn at(milliseconds: u64) -> Sending {
    Sending {
        now: Time::from_milliseconds(milliseconds),
        flight_start: Time::ZERO,
        delivered_at: Time::ZERO,
        delivered: 0,
        application_limited: false,
    }
}

/// A board with so many segments sent, one each millisecond.
fn sent(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for number in 0..segments {
        board.reserve(1);
        board.send_next(&at(number));
    }
    board
}

#[test]
fn a_new_block_counts_only_new_segments() {
    let mut board = sent(20);
    let mut delivered = |block| {
        let mut delivery = Delivery::default();
        board.sack(block, &mut delivery);
        (
            delivery.segments,
            delivery.latest.map(|latest| latest.sequence),
        )
    };
    assert_eq!(delivered((5, 8)), (3, Some(7)));
    assert_eq!(delivered((5, 8)), (0, None));
    assert_eq!(delivered((5, 10)), (2, Some(9)));
    assert_eq!(delivered((3, 12)), (4, Some(11)));
    assert_eq!(
        delivered((15, 40)),
        (5, Some(19)),
        "no further than what was sent"
    );
}

#[test]
fn a_probe_in_flight_does_not_hide_losses() {
    let mut board = sent(3);
    board.retransmit(2, &at(10));
    board.mark_all_lost(|sent| sent == at(10).now);
    assert_eq!(board.next_lost(), Some(0));
    assert_eq!(
        (board.lost, board.retrans_out, board.in_flight()),
        (2, 1, 2)
    );
}

#[test]
fn segments_spared_by_a_timeout_can_be_lost_later() {
    let mut board = sent(4);
    board.mark_all_lost(|sent| sent >= at(3).now);
    for sequence in 0..3 {
        assert_eq!(board.next_lost(), Some(sequence));
        board.retransmit(sequence, &at(100 + sequence));
    }
    assert_eq!(board.next_lost(), None);
    let rack = Rack {
        sent: at(100).now,
        sequence: 0,
        rtt: at(50).now,
    };
    let losses = board.detect_by_time(&rack, Time::ZERO, at(150).now);
    assert_eq!(losses.lost, 1);
    assert_eq!(board.next_lost(), Some(3));
}

#[test]
fn duplicates_without_sack_leave_the_hole_in_flight_or_lost() {
    let mut board = sent(4);
    for _ in 0..9 {
        board.count_duplicate();
    }
    assert_eq!((board.sacked, board.in_flight()), (3, 1));
    assert_eq!(board.mark_head_lost().lost, 1);
    assert_eq!(board.in_flight(), 0);
    assert_eq!(board.mark_head_lost().lost, 0, "it is lost already");
    board.retransmit(0, &at(9));
    let mut delivery = Delivery::default();
    board.acknowledge(4, &mut delivery);
    board.forget_duplicates(4);
    assert!(delivery.retransmitted);
    assert_eq!(
        (board.sacked, board.in_flight(), board.outstanding()),
        (0, 0, 0)
    );
}

#[test]
fn the_cost_of_an_ack_is_independent_of_the_window() {
    // 300,000 segments behind a hole, SACKed one by one, with loss detection and a search for retransmissions at each
    // ACK: were it linear in the window, this would be 10^11 steps.
    let segments = 300_000;
    let started = std::time::Instant::now();
    let mut board = sent(segments);
    let mut rack = Rack::default();
    for sequence in (1..segments).filter(|sequence| sequence % 100 != 0) {
        let mut delivery = Delivery::default();
        let start = sequence / 100 * 100 + 1;
        board.sack((start, sequence + 1), &mut delivery);
        (rack.sent, rack.sequence) = (at(sequence).now, sequence);
        rack.rtt = at(segments).now;
        board.detect_by_time(&rack, Time::ZERO, at(segments + sequence).now);
        if let Some(lost) = board.next_lost() {
            board.retransmit(lost, &at(segments + sequence));
        }
    }
    assert_eq!(board.retrans_out, (segments / 100) as u32);
    board.acknowledge(segments, &mut Delivery::default());
    assert_eq!((board.sacked, board.lost, board.retrans_out), (0, 0, 0));
    assert!(
        started.elapsed().as_secs_f64() < 5.0,
        "{:?}",
        started.elapsed()
    );
}
