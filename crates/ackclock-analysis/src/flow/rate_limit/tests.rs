use super::*;
use crate::flow::capacity::Progress;

fn rises(pipes: impl IntoIterator<Item = u64>) -> bool {
    let mut pipe_growth = PipeGrowth::default();
    pipes.into_iter().for_each(|bytes| pipe_growth.round(bytes));
    pipe_growth.is_rising()
}

/// Segments of 1000 bytes each millisecond, of which some may follow sooner.
fn is_link_filled(soon: u64, total_retransmissions: u32, has_delay_samples: bool) -> bool {
    let mut limits = LimitClassifier {
        total_retransmissions,
        has_delay_samples,
        ..LimitClassifier::for_flow(0)
    };
    let mut now_ns = 0;
    for number in 1..20 {
        now_ns += if number <= soon { 250_000 } else { 1_000_000 };
        limits.on_in_order(now_ns, 1000);
        limits.on_send(now_ns, 1000 * number, 5000, false);
    }
    let round = Round {
        end_ns: now_ns,
        spent_ns: 10_000_000,
        bps: 8e6,
        ..Round::default()
    };
    limits.fills_link(&round, &mut SharedBottleneck::default())
}

#[test]
fn a_constant_rate_is_the_links_if_no_spacing_was_shorter() {
    assert!(is_link_filled(0, MIN_RETRANSMISSIONS, false));
    assert!(
        is_link_filled(1, MIN_RETRANSMISSIONS, false),
        "one may be an error"
    );
    assert!(
        !is_link_filled(4, MIN_RETRANSMISSIONS, false),
        "the link is faster"
    );
    assert!(!is_link_filled(0, 1, false), "hardly anything came between");
    assert!(
        !is_link_filled(0, MIN_RETRANSMISSIONS, true),
        "no packet is known to wait"
    );
}

#[test]
fn flows_that_share_a_link_fill_it_jointly() {
    let mut shared = SharedBottleneck::default();
    let mut fills_link = [false; 4];
    for (number, fills_link) in fills_link.iter_mut().enumerate() {
        let mut limits = LimitClassifier {
            total_retransmissions: MIN_RETRANSMISSIONS,
            ..LimitClassifier::for_flow(2 * number as u32)
        };
        for packet in 1..9 {
            limits.on_in_order(1_000_000 * packet, 1000);
            limits.on_send(1_000_000 * packet, 1000 * packet as u64, 5000, false);
        }
        let round = Round {
            flow: 2 * number as u32,
            end_ns: 8_000_000,
            spent_ns: 10_000_000,
            bps: 2e6,
            ..Round::default()
        };
        *fills_link = limits.fills_link(&round, &mut shared);
    }
    assert_eq!(fills_link, [false, false, false, true]);
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

/// A round in which so much is in flight at most, from the end of the one before on.
fn round(
    limits: &mut LimitClassifier,
    pipe: u64,
    meanwhile: impl FnOnce(&mut LimitClassifier),
) -> u8 {
    let now_ns = limits.start_ns + ROUND_NS;
    limits.on_send(now_ns, limits.start_delivered + pipe, pipe, false);
    limits.on_ack(ROUND_NS, false, false);
    meanwhile(limits);
    let delivered = limits.start_delivered + pipe;
    limits.end(
        now_ns,
        delivered,
        ROUND_NS,
        &mut SharedBottleneck::default(),
    );
    limits.latest
}

fn begun() -> LimitClassifier {
    let mut limits = LimitClassifier::for_flow(0);
    limits.begin(1, 0);
    limits
}

/// Return the limits of the rounds after a loss with 16 segments in flight.
fn after_a_loss(pipes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut limits = begun();
    round(&mut limits, 16_000, |limits| limits.on_loss(MSS));
    pipes
        .into_iter()
        .map(|pipe| round(&mut limits, pipe, |_| ()))
        .collect()
}

#[test]
fn a_restarted_window_is_in_slow_start_up_to_half_the_lost_flight() {
    let anew = after_a_loss([2000, 4000, 7000, 9000]);
    assert_eq!(anew[..3], [Limit::SlowStart as u8; 3]);
    assert_eq!(anew[3], Limit::Cwnd as u8);
    let halved = after_a_loss([8000, 9000, 10_000]);
    assert_eq!(halved, [Limit::Cwnd as u8; 3]);
}

#[test]
fn a_timeout_in_recovery_keeps_the_threshold() {
    let threshold = |in_recovery| {
        let mut limits = begun();
        round(&mut limits, 16_000, |limits| limits.on_loss(MSS));
        for _ in 0..2 {
            round(&mut limits, 1000, |_| ());
        }
        limits.on_timeout(MSS, in_recovery);
        limits.ssthresh_bytes
    };
    assert_eq!(threshold(true), 8000);
    assert_eq!(threshold(false), 2000, "RFC 5681 equation 4");
}

#[test]
fn a_rate_that_stays_while_packets_wait_is_no_sign_of_an_application() {
    let steady = |is_queued| {
        let mut send_rate = SendRate::default();
        for number in 1..=200 {
            send_rate.on_send(1_000_000 * number, 1000 * number as u64, false);
            if number % 5 == 0 {
                send_rate.round(is_queued);
            }
        }
        (send_rate.steady >= STEADY_REMOTE, send_rate.own_bps > 0.0)
    };
    assert_eq!(steady(false), (true, true));
    assert_eq!(steady(true), (false, false));
}

/// A segment that was sent so long after the acknowledgement before it.
fn respond_after(limits: &LimitClassifier, number: i64, after_ns: i64) -> SendEvent {
    SendEvent {
        now_ns: limits.start_ns + number * ROUND_NS / 10,
        next: limits.start_delivered + u64::from(MSS) * number as u64,
        after_ns,
        first: true,
        ..SendEvent::default()
    }
}

#[test]
fn a_receivers_window_limits_who_uses_it_when_it_opens() {
    let limit = |after_ns: i64| {
        let mut limits = begun();
        for _ in 0..4 {
            round(&mut limits, 10_000, |limits| {
                for number in 1..10 {
                    limits.on_ack(ROUND_NS / 10, false, true);
                    limits.ack_clocked(&respond_after(limits, number, after_ns));
                }
            });
        }
        limits.latest
    };
    assert_eq!(limit(0), Limit::Receiver as u8);
    assert_ne!(limit(2 * ACK_BATCH_NS), Limit::Receiver as u8);
}

#[test]
fn a_receivers_window_limits_a_paced_sender_that_spreads_what_it_opens_for() {
    let limit = |first_after_ns: i64| {
        let mut limits = begun();
        for _ in 0..4 {
            round(&mut limits, 10_000, |limits| {
                for number in 1..10 {
                    limits.on_ack(ROUND_NS / 10, false, true);
                    for after_ns in [first_after_ns, 2 * ACK_BATCH_NS, 3 * ACK_BATCH_NS] {
                        limits.ack_clocked(&respond_after(limits, number, after_ns));
                    }
                }
            });
        }
        assert!(limits.is_paced());
        limits.latest
    };
    assert_eq!(limit(0), Limit::Receiver as u8);
    assert_ne!(limit(ACK_BATCH_NS + 1), Limit::Receiver as u8);
}

#[test]
fn a_receive_window_does_not_limit_retransmissions() {
    let limit = |is_retransmission: bool| {
        let mut limits = begun();
        for _ in 0..4 {
            round(&mut limits, 10_000, |limits| {
                for number in 1..10 {
                    limits.on_ack(ROUND_NS / 10, false, true);
                    limits.on_send(limits.start_ns + number, 0, 10_000, is_retransmission);
                }
            });
        }
        limits.latest
    };
    assert_eq!(limit(false), Limit::Receiver as u8);
    assert_ne!(limit(true), Limit::Receiver as u8);
}

#[test]
fn who_does_not_wait_for_acknowledgements_and_sends_no_more_than_before_is_not_in_slow_start() {
    let second = |after_ns: i64| {
        let mut limits = begun();
        for _ in 0..2 {
            round(&mut limits, 10_000, |limits| {
                for number in 1..10 {
                    limits.ack_clocked(&respond_after(limits, number, after_ns));
                }
            });
        }
        limits.latest
    };
    assert_eq!(second(2 * ACK_BATCH_NS), Limit::Application as u8);
    assert_eq!(second(0), Limit::SlowStart as u8);
}

#[test]
fn a_capacity_below_the_flows_rate_is_not_its_link() {
    // Acknowledgements whose round trips grow, of 8 Mbit/s.
    let limit = |pipe: u64| {
        let mut limits = begun();
        for number in 1..40 {
            let captured_sacks = Progress {
                now_ns: 2_000_000 * number,
                bytes: 2 * u64::from(MSS) * number as u64,
                rtt_ns: ROUND_NS + 1_000_000 * number,
            };
            limits
                .capacity
                .acknowledged(captured_sacks, (ROUND_NS, ROUND_NS), MSS);
        }
        for _ in 0..8 {
            round(&mut limits, pipe, |limits| {
                for number in 1..10 {
                    limits.ack_clocked(&respond_after(limits, number, 2 * ACK_BATCH_NS));
                }
            });
        }
        limits.latest
    };
    assert_eq!(limit(10_000), Limit::Bottleneck as u8);
    assert_eq!(limit(12_000), Limit::Application as u8);
}

#[test]
fn reordered_data_does_not_shorten_the_minimum_spacing() {
    let link_bps = |is_retransmission: bool| {
        let mut send_rate = SendRate::default();
        for number in 1..20 {
            let now_ns = 1_000_000 * number;
            send_rate.on_in_order(now_ns, MSS);
            send_rate.on_send(now_ns, u64::from(MSS) * number as u64, false);
            send_rate.on_send(now_ns + 900_000, 0, is_retransmission); // and the next one follows it closely
        }
        send_rate.link_bps()
    };
    assert!((link_bps(false) / 8e6 - 1.0).abs() < 1e-6, "it is late");
    assert!(link_bps(true) > 7e7, "it was sent again");
}

#[test]
fn unclocked_segments_wait_for_a_full_link_or_the_application() {
    // Segments that are 1 ms apart, with nothing sent between acknowledgements.
    let limit = |segments: u64| {
        let mut limits = LimitClassifier {
            total_retransmissions: MIN_RETRANSMISSIONS,
            ..begun()
        };
        round(&mut limits, 1000 * segments, |limits| {
            let start_ns = limits.start_ns;
            for number in 0..segments {
                let now_ns = start_ns + 1_000_000 * number as i64;
                limits.on_in_order(now_ns, MSS);
                limits.on_send(
                    now_ns,
                    1000 * (segments + number + 1),
                    1000 * segments,
                    false,
                );
                limits.on_ack(2 * ACK_BATCH_NS, true, false);
            }
        })
    };
    assert_ne!(limit(10), Limit::Application as u8, "the link is full");
    assert_eq!(limit(5), Limit::Application as u8, "it is not");
}

#[test]
fn no_limit_takes_time_from_another() {
    let mut limits = begun();
    let mut shared = SharedBottleneck::default();
    for (since_ns, now_ns, shut) in [
        (10_000_000, 10_200_000, false),
        (10_500_000, 1_000_000_000, true),
    ] {
        let event = respond_after(&limits, 1, 0);
        limits.ack_clocked(&event);
        limits.on_send(since_ns, 1000, 1000, false);
        limits.on_ack(1_000, false, false);
        limits.on_idle((since_ns, now_ns), shut, 1000, 300_000, &mut shared);
    }
    assert!(limits.limited_s.iter().all(|&seconds| seconds >= 0.0));
}
