//! RFC 9406 section 4, requirement by requirement. The expectations are computed by hand from its rules.

use super::super::slow_start::SlowStart;
use super::super::window::testing::{ack, LOSS};
use super::super::{make, Controller};
use super::*;
use serde_json::json;

const fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

/// A sender with ten segments in flight, each acknowledged with an RTT of its own. A round ends with the ACK beyond what
/// was sent when it began, so it has eleven ACKs; the first round has those numbered 1 to 11.
struct Rounds {
    detector: HyStartPlusPlus,
    unacknowledged: u64,
    next: u64,
}

impl Rounds {
    fn new() -> Rounds {
        Rounds {
            detector: HyStartPlusPlus::default(),
            unacknowledged: 0,
            next: 10,
        }
    }

    /// Acknowledge a round with these RTTs; return the instructions, each with the index of its ACK.
    fn round(&mut self, rtts_us: &[u64]) -> Vec<(usize, Steer)> {
        let view = View {
            cwnd: 100.0,
            ssthresh: f64::INFINITY,
        };
        let mut steers = Vec::new();
        for (index, rtt_us) in rtts_us.iter().enumerate() {
            self.unacknowledged += 1;
            self.next += 1;
            let ack = Ack {
                rtt: Some(Time::from_microseconds(*rtt_us)),
                unacknowledged: self.unacknowledged,
                next: self.next,
                ..ack(ms(0), 1)
            };
            steers.extend(self.detector.on_ack(&ack, view).map(|steer| (index, steer)));
        }
        steers
    }
}

const SLOW_START: Steer = Steer::Grow(Growth::new(8, 1));
const CSS: Steer = Steer::Grow(Growth::new(8, 4));

#[test]
fn rtt_thresh_is_an_eighth_of_the_last_rounds_minimum_within_4_and_16_ms() {
    for (last_ms, expected_us) in [
        (8, 4_000),
        (32, 4_000),
        (40, 5_000),
        (100, 12_500),
        (128, 16_000),
        (600, 16_000),
    ] {
        assert_eq!(
            rtt_thresh(ms(last_ms)),
            Time::from_microseconds(expected_us)
        );
    }
}

#[test]
fn the_eighth_sample_at_the_threshold_enters_css() {
    // The threshold is 40 ms + 5 ms. The eleventh ACK still belongs to the first round.
    let mut rounds = Rounds::new();
    rounds.round(&[40_000; 10]);
    assert_eq!(rounds.round(&[45_000; 11]), [(7 + 1, CSS)]);
    let mut rounds = Rounds::new();
    rounds.round(&[40_000; 10]);
    assert_eq!(rounds.round(&[44_999; 11]), []);
}

#[test]
fn fewer_than_eight_samples_decide_nothing() {
    let mut rounds = Rounds::new();
    rounds.round(&[40_000; 10]);
    assert_eq!(rounds.round(&[80_000; 8]), []);
}

#[test]
fn the_first_round_has_no_round_to_compare_with() {
    let mut rounds = Rounds::new();
    assert_eq!(
        rounds.round(&[40_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000]),
        [(0, SLOW_START)]
    );
}

#[test]
fn one_low_sample_keeps_slow_start() {
    let mut rounds = Rounds::new();
    rounds.round(&[40_000; 12]);
    let steers = rounds.round(&[90_000; 10]);
    assert_eq!(steers, [], "the twelfth ACK began this round");
}

/// A sender in CSS with a baseline of 45 ms; two more ACKs belong to the round.
fn in_css() -> Rounds {
    let mut rounds = Rounds::new();
    rounds.round(&[40_000; 10]);
    assert_eq!(rounds.round(&[45_000; 10]), [(8, CSS)]);
    rounds
}

#[test]
fn css_lasts_five_rounds_with_the_partial_first() {
    let mut rounds = in_css();
    let mut exit = None;
    for index in 0..100 {
        if let Some((_, steer)) = rounds.round(&[45_000]).first() {
            exit = Some((index, *steer));
            break;
        }
    }
    // Two more ACKs of the partial round, four whole rounds of eleven, and the ACK that ends the last.
    assert_eq!(exit, Some((2 + 44, Steer::Exit(100.0))));
}

#[test]
fn an_rtt_below_the_baseline_resumes_slow_start() {
    let mut rounds = in_css();
    assert_eq!(rounds.round(&[44_999]), [(0, SLOW_START)]);
    assert!(rounds.detector.css.is_none());
}

#[test]
fn an_rtt_at_the_baseline_does_not_resume_slow_start() {
    let mut rounds = in_css();
    assert_eq!(rounds.round(&[45_000]), []);
}

#[test]
fn css_may_follow_a_spurious_exit() {
    let mut rounds = in_css();
    rounds.round(&[44_999]);
    let steers: Vec<Steer> = rounds
        .round(&[60_000; 30])
        .into_iter()
        .map(|(_, steer)| steer)
        .collect();
    assert_eq!(steers, [CSS]);
}

#[test]
fn a_paced_sender_has_no_limit_per_ack() {
    assert_eq!(growth(true, false), Steer::Grow(Growth::FULL));
    assert_eq!(growth(true, true), Steer::Grow(Growth::new(u32::MAX, 4)));
}

#[test]
fn after_a_loss_it_watches_no_more() {
    let mut detector = HyStartPlusPlus::default();
    let view = View {
        cwnd: 10.0,
        ssthresh: 20.0,
    };
    let sample = Ack {
        rtt: Some(ms(40)),
        ..ack(ms(0), 1)
    };
    assert_eq!(detector.on_ack(&sample, view), None);
    assert!(detector.round.is_none());
}

fn reno() -> Box<dyn Controller> {
    make("reno", &json!({ "slow_start": "hystart++" }), 10).expect("the spec's parameters")
}

#[test]
#[allow(clippy::float_cmp)] // windows are whole segments
fn an_ack_adds_no_more_than_eight_segments() {
    let mut reno = reno();
    reno.on_ack(&ack(ms(0), 1));
    for (acked, expected) in [(3, 14.0), (8, 22.0), (20, 30.0)] {
        reno.on_ack(&ack(ms(0), acked));
        assert_eq!(reno.cwnd(), expected);
    }
}

#[test]
#[allow(clippy::float_cmp)] // windows are whole segments
fn a_loss_ends_it_as_it_ends_slow_start() {
    let mut reno = reno();
    reno.on_ack(&ack(ms(0), 6));
    reno.on_loss(&LOSS);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (8.0, 8.0));
    reno.on_timeout(ms(0), 8);
    reno.on_ack(&Ack {
        rtt: Some(ms(40)),
        ..ack(ms(0), 20)
    });
    assert!(
        reno.cwnd() >= 4.0,
        "the limit of eight is for the first slow start"
    );
}

#[test]
fn the_parameter_has_four_values() {
    for (name, slow_start) in [
        ("standard", SlowStart::Standard),
        ("hystart", SlowStart::HyStart),
        ("hystart++", SlowStart::HyStartPlusPlus),
        ("search", SlowStart::Search),
    ] {
        let read: SlowStart = serde_json::from_value(json!(name)).expect("a known name");
        assert_eq!(read, slow_start);
    }
    assert!(make("reno", &json!({ "slow_start": "rapid" }), 10).is_err());
    assert!(make("reno", &json!({}), 10).is_err());
}
