//! Rounds, the queue estimated from them, and their interruptions.

#![allow(clippy::float_cmp)] // windows are whole segments

use super::super::window::testing::{ack, recovering, LOSS};
use super::*;
use serde_json::json;

const BASE_MS: u64 = 100;

fn vegas(initial_window: f64) -> Box<dyn Controller> {
    let card = json!({ "alpha": 2, "beta": 4, "gamma": 1 });
    make(&card, initial_window).expect("the card's parameters")
}

/// A sender that numbers its segments, on a path whose RTT the test sets.
struct Flow {
    vegas: Box<dyn Controller>,
    unacknowledged: u64,
    next: u64,
    /// The round ends when a segment beyond this one is acknowledged.
    end: u64,
}

impl Flow {
    fn new(initial_window: f64) -> Flow {
        Flow {
            vegas: vegas(initial_window),
            unacknowledged: 0,
            next: initial_window as u64,
            end: 0,
        }
    }

    /// One ACK for `acked` segments, then whatever the window allows is sent.
    fn ack(&mut self, acked: u32, rtt_ms: u64) {
        self.unacknowledged += u64::from(acked);
        self.vegas.on_ack(&Ack {
            rtt: Some(Time::from_milliseconds(rtt_ms)),
            unacknowledged: self.unacknowledged,
            next: self.next,
            ..ack(Time::ZERO, acked)
        });
        if self.unacknowledged > self.end {
            self.end = self.next;
        }
        let sent = self.unacknowledged + self.vegas.cwnd() as u64;
        self.next = self.next.max(sent);
    }

    /// The rest of a round, an ACK for each segment.
    fn round(&mut self, rtt_ms: u64) {
        let end = self.end;
        while self.unacknowledged <= end {
            self.ack(1, rtt_ms);
        }
    }

    /// Out of slow start, at `cwnd`, with the smallest RTT known.
    fn steady(cwnd: u32) -> Flow {
        let mut flow = Flow::new(f64::from(2 * cwnd));
        flow.ack(1, BASE_MS);
        flow.vegas.on_loss(&LOSS);
        flow.vegas.on_ack(&Ack {
            next: flow.next,
            unacknowledged: flow.unacknowledged,
            ..ack(Time::ZERO, 1)
        });
        flow.end = flow.next;
        assert_eq!(flow.vegas.cwnd(), f64::from(cwnd));
        flow
    }
}

#[test]
fn the_arithmetic_of_a_round() {
    let ms = Time::from_milliseconds;
    // 50 · 7 ms / 100 ms = 3.5 packets' worth; 50 · 100 / 107 = 46.7 fit without queue.
    assert_eq!(diff(50, ms(107), ms(100)), 3);
    assert_eq!(without_queue(50, ms(107), ms(100)), 46);
    assert_eq!(diff(50, ms(100), ms(100)), 0);
    assert_eq!(without_queue(50, ms(100), ms(100)), 50);
}

#[test]
fn the_window_moves_by_one_a_round_until_the_queue_is_between_alpha_and_beta() {
    // At 50 segments each 2 ms of queueing are one packet: 1, 2 and 4 stay within or below, 5 is above.
    for (rtt_ms, expected) in [
        (102, 51.0),
        (103, 51.0),
        (104, 50.0),
        (109, 50.0),
        (110, 49.0),
    ] {
        let mut flow = Flow::steady(50);
        flow.round(rtt_ms);
        assert_eq!(flow.vegas.cwnd(), expected, "RTT {rtt_ms} ms");
    }
}

#[test]
fn the_smallest_rtt_of_a_round_counts() {
    let mut flow = Flow::steady(50);
    flow.ack(1, 100);
    flow.round(150);
    assert_eq!(flow.vegas.cwnd(), 51.0);
    flow.round(150);
    assert_eq!(flow.vegas.cwnd(), 50.0);
}

#[test]
fn slow_start_doubles_until_the_backlog_exceeds_gamma_and_drops_to_the_bdp() {
    let mut flow = Flow::new(10.0);
    flow.ack(1, 100);
    assert_eq!(
        flow.vegas.cwnd(),
        11.0,
        "the first ACK ends a round of one sample"
    );
    flow.round(100);
    assert_eq!(flow.vegas.cwnd(), 21.0, "ten ACKs more");
    assert_eq!(flow.vegas.ssthresh(), f64::INFINITY);
    flow.round(125);
    // Of twenty ACKs more the last looks at the queue: 40 · 100 / 125 fit, and one.
    assert_eq!((flow.vegas.cwnd(), flow.vegas.ssthresh()), (33.0, 33.0));
}

#[test]
fn a_shorter_window_takes_the_threshold_down_and_a_longer_one_three_quarters_up() {
    let mut flow = Flow::steady(50);
    flow.round(120);
    assert_eq!((flow.vegas.cwnd(), flow.vegas.ssthresh()), (49.0, 49.0));
    for _ in 0..31 {
        flow.round(100);
    }
    assert_eq!((flow.vegas.cwnd(), flow.vegas.ssthresh()), (80.0, 60.0));
}

#[test]
fn with_two_samples_a_round_grows_like_reno() {
    let mut flow = Flow::steady(4);
    let last = 4;
    flow.ack((flow.end + 1 - flow.unacknowledged) as u32 - last, 500);
    assert_eq!(flow.vegas.cwnd(), 4.0);
    flow.ack(last, 500);
    assert_eq!(flow.vegas.cwnd(), 5.0, "four segments acknowledged");
}

#[test]
fn a_loss_halves_and_measuring_waits_for_the_end_of_recovery() {
    let mut flow = Flow::steady(50);
    flow.vegas.on_loss(&LOSS);
    assert_eq!(flow.vegas.cwnd(), 25.0);
    for _ in 0..200 {
        flow.vegas.on_ack(&Ack {
            rtt: Some(Time::from_milliseconds(100)),
            next: 1000,
            unacknowledged: 990,
            ..recovering(Time::ZERO, 1)
        });
    }
    assert_eq!(flow.vegas.cwnd(), 25.0);
}

#[test]
fn a_round_begins_when_loss_recovery_ends() {
    let mut flow = Flow::steady(50);
    flow.vegas.on_timeout(Time::ZERO, 50);
    let acked = |unacknowledged: u64, in_loss: bool| Ack {
        rtt: Some(Time::from_milliseconds(BASE_MS)),
        in_loss,
        unacknowledged,
        next: 300,
        ..ack(Time::ZERO, 1)
    };
    for segment in 201..231 {
        flow.vegas.on_ack(&acked(segment, true));
    }
    assert_eq!(flow.vegas.cwnd(), 25.0, "up to the threshold");
    for segment in 231..=400 {
        flow.vegas.on_ack(&Ack {
            next: 400,
            ..acked(segment, false)
        });
    }
    assert_eq!(flow.vegas.cwnd(), 25.0, "400, and not 300, ends the round");
    flow.vegas.on_ack(&acked(401, false));
    assert_eq!(flow.vegas.cwnd(), 26.0);
}

#[test]
fn a_timeout_forgets_the_base_rtt() {
    let mut flow = Flow::steady(50);
    flow.vegas.on_timeout(Time::ZERO, 50);
    assert_eq!((flow.vegas.cwnd(), flow.vegas.ssthresh()), (1.0, 25.0));
    while flow.vegas.cwnd() < 25.0 {
        flow.ack(1, 200);
    }
    flow.round(200);
    flow.round(200);
    assert!(
        flow.vegas.cwnd() > 25.0,
        "200 ms are the path's own RTT now"
    );
}

#[test]
fn the_minimum_window_is_two() {
    let mut flow = Flow::new(10.0);
    flow.ack(1, 1);
    flow.round(100);
    // One in a hundred of the window fits, that is none, and one.
    assert_eq!((flow.vegas.cwnd(), flow.vegas.ssthresh()), (2.0, 2.0));
}

#[test]
fn invalid_parameters_are_rejected() {
    for (alpha, beta) in [(0, 4), (5, 4)] {
        let parameters = json!({ "alpha": alpha, "beta": beta, "gamma": 1 });
        assert!(make(&parameters, 10.0).is_err());
    }
    assert!(make(&json!({}), 10.0).is_err());
}
