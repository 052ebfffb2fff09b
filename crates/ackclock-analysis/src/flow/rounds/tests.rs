use super::*;
use crate::flow::capacity::Passed;

fn rises(pipes: impl IntoIterator<Item = u64>) -> bool {
    let mut rise = Rise::default();
    pipes.into_iter().for_each(|bytes| rise.round(bytes));
    rise.goes_on()
}

/// Segments of 1000 bytes each millisecond, of which some may follow sooner.
fn fills(soon: u64, repaired: u32, knows_waits: bool) -> bool {
    let mut rounds = Rounds {
        repaired,
        knows_waits,
        ..Rounds::of(0)
    };
    let mut now_ns = 0;
    for number in 1..20 {
        now_ns += if number <= soon { 250_000 } else { 1_000_000 };
        rounds.follows(now_ns, 1000);
        rounds.sent(now_ns, 1000 * number, 5000, false);
    }
    let round = Round {
        end_ns: now_ns,
        spent_ns: 10_000_000,
        bps: 8e6,
        ..Round::default()
    };
    rounds.fills_link(&round, &mut Beside::default())
}

#[test]
fn a_rate_is_the_links_if_nothing_was_faster_where_it_would_have_been() {
    assert!(fills(0, REPAIRED, false));
    assert!(fills(1, REPAIRED, false), "one may be an error");
    assert!(!fills(4, REPAIRED, false), "the link is faster");
    assert!(!fills(0, 1, false), "hardly anything came between");
    assert!(!fills(0, REPAIRED, true), "no packet is known to wait");
}

#[test]
fn what_others_send_through_the_same_link_fills_it_too() {
    let mut beside = Beside::default();
    let mut filled = [false; 4];
    for (number, filled) in filled.iter_mut().enumerate() {
        let mut rounds = Rounds {
            repaired: REPAIRED,
            ..Rounds::of(2 * number as u32)
        };
        for packet in 1..9 {
            rounds.follows(1_000_000 * packet, 1000);
            rounds.sent(1_000_000 * packet, 1000 * packet as u64, 5000, false);
        }
        let round = Round {
            flow: 2 * number as u32,
            end_ns: 8_000_000,
            spent_ns: 10_000_000,
            bps: 2e6,
            ..Round::default()
        };
        *filled = rounds.fills_link(&round, &mut beside);
    }
    assert_eq!(filled, [false, false, false, true]);
}

#[test]
fn a_window_that_grows_by_a_segment_a_round_rises_and_a_rate_does_not() {
    assert!(rises(10..26));
    assert!(!rises((0..40).map(|round| 10 + round % 2)));
    assert!(!rises((0..40).map(|round| 10 + round * 7 % 11)));
    assert!(!rises((10..26).chain([12; 4])));
}

const MSS: u32 = 1000;
const ROUND_NS: i64 = 10_000_000;

/// A round in which so much is under way at most, from the end of the one before on.
fn round(rounds: &mut Rounds, pipe: u64, meanwhile: impl FnOnce(&mut Rounds)) -> u8 {
    let now_ns = rounds.start_ns + ROUND_NS;
    rounds.sent(now_ns, rounds.start_delivered + pipe, pipe, false);
    rounds.acked(ROUND_NS, false, false);
    meanwhile(rounds);
    let delivered = rounds.start_delivered + pipe;
    rounds.end(now_ns, delivered, ROUND_NS, &mut Beside::default());
    rounds.latest
}

fn begun() -> Rounds {
    let mut rounds = Rounds::of(0);
    rounds.begin(1, 0);
    rounds
}

/// What holds the sender back in the rounds after a loss with 16 segments under way.
fn after_a_loss(pipes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut rounds = begun();
    round(&mut rounds, 16_000, |rounds| rounds.loss(MSS));
    pipes
        .into_iter()
        .map(|pipe| round(&mut rounds, pipe, |_| ()))
        .collect()
}

#[test]
fn a_window_that_begins_anew_is_in_slow_start_up_to_half_of_what_was_lost() {
    let anew = after_a_loss([2000, 4000, 7000, 9000]);
    assert_eq!(anew[..3], [Limit::SlowStart as u8; 3]);
    assert_eq!(anew[3], Limit::Control as u8);
    let halved = after_a_loss([8000, 9000, 10_000]);
    assert_eq!(halved, [Limit::Control as u8; 3]);
}

#[test]
fn a_timeout_in_a_repair_leaves_the_threshold_where_it_is() {
    let threshold = |repairing| {
        let mut rounds = begun();
        round(&mut rounds, 16_000, |rounds| rounds.loss(MSS));
        for _ in 0..2 {
            round(&mut rounds, 1000, |_| ());
        }
        rounds.timeout(MSS, repairing);
        rounds.ssthresh_bytes
    };
    assert_eq!(threshold(true), 8000);
    assert_eq!(threshold(false), 2000, "RFC 5681 equation 4");
}

#[test]
fn a_rate_that_stays_while_packets_wait_is_no_sign_of_an_application() {
    let steady = |queued| {
        let mut pace = Pace::default();
        for number in 1..=200 {
            pace.sent(1_000_000 * number, 1000 * number as u64, false);
            if number % 5 == 0 {
                pace.round(queued);
            }
        }
        (pace.steady >= STEADY_ELSEWHERE, pace.own_bps > 0.0)
    };
    assert_eq!(steady(false), (true, true));
    assert_eq!(steady(true), (false, false));
}

/// A segment that was sent so long after the acknowledgement before it.
fn answer(rounds: &Rounds, number: i64, after_ns: i64) -> Sent {
    Sent {
        now_ns: rounds.start_ns + number * ROUND_NS / 10,
        next: rounds.start_delivered + u64::from(MSS) * number as u64,
        after_ns,
        first: true,
        ..Sent::default()
    }
}

#[test]
fn a_receivers_window_limits_who_uses_it_when_it_opens() {
    let limit = |after_ns: i64| {
        let mut rounds = begun();
        for _ in 0..4 {
            round(&mut rounds, 10_000, |rounds| {
                for number in 1..10 {
                    rounds.acked(ROUND_NS / 10, false, true);
                    rounds.prompted(&answer(rounds, number, after_ns));
                }
            });
        }
        rounds.latest
    };
    assert_eq!(limit(0), Limit::Receiver as u8);
    assert_ne!(limit(2 * TOGETHER_NS), Limit::Receiver as u8);
}

#[test]
fn a_receivers_window_does_not_hold_back_repairs() {
    let limit = |again: bool| {
        let mut rounds = begun();
        for _ in 0..4 {
            round(&mut rounds, 10_000, |rounds| {
                for number in 1..10 {
                    rounds.acked(ROUND_NS / 10, false, true);
                    rounds.sent(rounds.start_ns + number, 0, 10_000, again);
                }
            });
        }
        rounds.latest
    };
    assert_eq!(limit(false), Limit::Receiver as u8);
    assert_ne!(limit(true), Limit::Receiver as u8);
}

#[test]
fn who_does_not_wait_for_acknowledgements_and_sends_no_more_than_before_is_not_in_slow_start() {
    let second = |after_ns: i64| {
        let mut rounds = begun();
        for _ in 0..2 {
            round(&mut rounds, 10_000, |rounds| {
                for number in 1..10 {
                    rounds.prompted(&answer(rounds, number, after_ns));
                }
            });
        }
        rounds.latest
    };
    assert_eq!(second(2 * TOGETHER_NS), Limit::Application as u8);
    assert_eq!(second(0), Limit::SlowStart as u8);
}

#[test]
fn what_is_slower_than_the_flow_is_not_its_link() {
    // Acknowledgements whose round trips grow, of 8 Mbit/s.
    let limit = |pipe: u64| {
        let mut rounds = begun();
        for number in 1..40 {
            let passed = Passed {
                now_ns: 2_000_000 * number,
                bytes: 2 * u64::from(MSS) * number as u64,
                rtt_ns: ROUND_NS + 1_000_000 * number,
            };
            rounds
                .capacity
                .acknowledged(passed, (ROUND_NS, ROUND_NS), MSS);
        }
        for _ in 0..8 {
            round(&mut rounds, pipe, |rounds| {
                for number in 1..10 {
                    rounds.prompted(&answer(rounds, number, 2 * TOGETHER_NS));
                }
            });
        }
        rounds.latest
    };
    assert_eq!(limit(10_000), Limit::Bottleneck as u8);
    assert_eq!(limit(12_000), Limit::Application as u8);
}

#[test]
fn what_comes_late_comes_no_closer_than_the_link_lets_it() {
    let link_bps = |again: bool| {
        let mut pace = Pace::default();
        for number in 1..20 {
            let now_ns = 1_000_000 * number;
            pace.follows(now_ns, MSS);
            pace.sent(now_ns, u64::from(MSS) * number as u64, false);
            pace.sent(now_ns + 900_000, 0, again); // and the next one follows it closely
        }
        pace.link_bps()
    };
    assert!((link_bps(false) / 8e6 - 1.0).abs() < 1e-6, "it is late");
    assert!(link_bps(true) > 7e7, "it was sent again");
}

#[test]
fn what_is_not_answered_at_once_waits_for_a_full_link_or_was_never_sent() {
    // Segments that are 1 ms apart, with nothing sent between acknowledgements.
    let limit = |segments: u64| {
        let mut rounds = Rounds {
            repaired: REPAIRED,
            ..begun()
        };
        round(&mut rounds, 1000 * segments, |rounds| {
            let start_ns = rounds.start_ns;
            for number in 0..segments {
                let now_ns = start_ns + 1_000_000 * number as i64;
                rounds.follows(now_ns, MSS);
                rounds.sent(
                    now_ns,
                    1000 * (segments + number + 1),
                    1000 * segments,
                    false,
                );
                rounds.acked(2 * TOGETHER_NS, true, false);
            }
        })
    };
    assert_ne!(limit(10), Limit::Application as u8, "the link is full");
    assert_eq!(limit(5), Limit::Application as u8, "it is not");
}
