//! The arithmetic of RFC 6298 and of Linux, step by step.

use ackclock_plan::{DelayedAck, EcnMode, LossDetection, Reduction, RttSampling};

use super::*;
use proptest::prelude::*;

fn plan(min_rto: Time, rto_floor_on_variance: bool) -> TcpPlan {
    TcpPlan {
        mss_bytes: 1448,
        header_bytes: 40,
        sack: true,
        timestamps: true,
        delayed_ack: DelayedAck::Off,
        delayed_ack_timeout: Time::from_milliseconds(40),
        initial_window: 10,
        initial_rto: ms(1000),
        min_rto,
        max_rto: ms(120_000),
        rto_floor_on_variance,
        rto_slop: Time::ZERO,
        timer_tick: Time::ZERO,
        rtt_sampling: RttSampling::EachAck,
        rtt_tick: Time::ZERO,
        impatient: false,
        receive_window_bytes: None,
        send_buffer_bytes: None,
        loss_detection: LossDetection::Rack,
        tail_loss_probe: true,
        undo_spurious: false,
        frto: false,
        adaptive_reordering: false,
        limited_transmit: true,
        recovery_reduction: Reduction::Prr,
        pacing: false,
        tso_batching: false,
        window_validation: true,
        byte_counting: true,
        ecn: EcnMode::Off,
        processing: None,
    }
}

fn rfc() -> RttEstimator {
    RttEstimator::new(&plan(ms(1000), false))
}

fn linux() -> RttEstimator {
    RttEstimator::new(&plan(ms(200), true))
}

const fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

const fn us(microseconds: u64) -> Time {
    Time::from_microseconds(microseconds)
}

/// One sample per flight of ten segments, the whole flight acknowledged.
fn feed(estimator: &mut RttEstimator, samples: &[Time]) {
    for (round, rtt) in (1..).zip(samples) {
        estimator.sample(*rtt, 10 * round, 10 * (round - 1) + 1);
    }
}

#[test]
fn before_the_first_sample_the_timeout_is_the_initial_one() {
    let estimator = rfc();
    assert_eq!(estimator.rto(), ms(1000));
    assert_eq!(estimator.srtt(), Time::ZERO);
    assert_eq!(estimator.min_rtt(), Time::NEVER);
}

#[test]
fn the_first_sample_sets_srtt_and_half_of_it_as_rttvar() {
    let mut estimator = rfc();
    feed(&mut estimator, &[ms(800)]);
    assert_eq!(estimator.srtt(), ms(800));
    assert_eq!(estimator.rttvar(), ms(400));
    assert_eq!(estimator.rto(), ms(800 + 4 * 400));
}

#[test]
fn later_samples_enter_with_an_eighth_and_a_quarter() {
    let mut estimator = rfc();
    feed(&mut estimator, &[ms(800), ms(400)]);
    // RTTVAR = 3/4 × 400 + 1/4 × |800 − 400|, SRTT = 7/8 × 800 + 1/8 × 400
    assert_eq!(estimator.rttvar(), ms(400));
    assert_eq!(estimator.srtt(), ms(750));
    feed(&mut estimator, &[ms(1550)]);
    // RTTVAR = 3/4 × 400 + 1/4 × 800, SRTT = 7/8 × 750 + 1/8 × 1550
    assert_eq!(estimator.rttvar(), ms(500));
    assert_eq!(estimator.srtt(), ms(850));
    assert_eq!(estimator.rto(), ms(850 + 2000));
}

#[test]
fn the_rfc_floor_applies_to_the_timeout() {
    let mut estimator = rfc();
    feed(&mut estimator, &[ms(10), ms(10), ms(10)]);
    assert_eq!(estimator.rto(), ms(1000));
}

#[test]
fn backoff_doubles_up_to_the_ceiling_and_new_data_ends_it() {
    let mut estimator = rfc();
    feed(&mut estimator, &[ms(1000)]);
    for expected in [6, 12, 24, 48, 96, 120, 120] {
        estimator.backoff();
        assert_eq!(estimator.rto(), ms(expected * 1000));
    }
    estimator.reset_backoff();
    assert_eq!(estimator.rto(), ms(3000));
}

#[test]
fn a_sample_ends_the_backoff() {
    let mut estimator = linux();
    feed(&mut estimator, &[ms(50)]);
    estimator.backoff();
    assert_eq!(estimator.rto(), ms(500));
    feed(&mut estimator, &[ms(50)]);
    assert_eq!(estimator.rto(), ms(250));
}

#[test]
fn backoff_applies_before_the_first_sample_too() {
    let mut estimator = linux();
    estimator.backoff();
    estimator.backoff();
    assert_eq!(estimator.rto(), ms(4000));
    for _ in 0..100 {
        estimator.backoff();
    }
    assert_eq!(estimator.rto(), ms(120_000));
}

#[test]
fn linux_puts_the_floor_under_the_variance_term() {
    let mut estimator = linux();
    feed(&mut estimator, &[ms(50); 20]);
    assert_eq!(estimator.srtt(), ms(50));
    assert_eq!(estimator.rto(), ms(250));
}

#[test]
fn linux_follows_a_rising_rtt_immediately() {
    let mut estimator = linux();
    feed(&mut estimator, &[ms(200), ms(600)]);
    // mean deviation: 100 → 3/4 × 100 + 1/4 × 400 = 175
    assert_eq!(estimator.rttvar(), ms(175));
    assert_eq!(estimator.srtt(), ms(250));
    assert_eq!(estimator.rto(), ms(250 + 4 * 175));
}

#[test]
fn linux_hardly_lets_a_falling_rtt_raise_the_deviation() {
    let mut estimator = linux();
    feed(&mut estimator, &[ms(400), ms(100)]);
    // 200 + 1/32 × (300 − 200), where the RFC has 3/4 × 200 + 1/4 × 300
    assert_eq!(estimator.rttvar(), us(203_125));
}

#[test]
fn linux_lowers_the_variance_term_by_a_quarter_per_flight() {
    let mut estimator = linux();
    estimator.sample(ms(400), 10, 0);
    // In the first flight: the term stays at its maximum, 800 ms, while the deviation shrinks.
    for _ in 0..100 {
        estimator.sample(ms(400), 10, 5);
    }
    assert_eq!(estimator.rto(), ms(400 + 800));
    // The first flight's own maximum is 800 ms: nothing to come down to yet.
    estimator.sample(ms(400), 20, 11);
    assert_eq!(estimator.rto(), ms(400 + 800));
    // The second flight's is the floor of 200 ms: a quarter of the way from 800 ms to it.
    estimator.sample(ms(400), 30, 21);
    assert_eq!(estimator.rto(), ms(400 + 650));
    estimator.sample(ms(400), 30, 25);
    assert_eq!(estimator.rto(), ms(400 + 650));
}

#[test]
fn the_smallest_rtt_is_forgotten_after_its_window() {
    let mut estimator = linux();
    estimator.observe_minimum(ms(0), ms(10));
    estimator.observe_minimum(ms(224_000), ms(50));
    assert_eq!(estimator.min_rtt(), ms(10));
    estimator.observe_minimum(ms(301_000), ms(40));
    assert_eq!(estimator.min_rtt(), ms(40));
    estimator.observe_minimum(ms(3_000_000), ms(60));
    assert_eq!(estimator.min_rtt(), ms(60));
}

#[test]
fn slop_is_added_to_the_sampled_and_not_to_the_initial_timeout() {
    let mut freebsd = RttEstimator::new(&TcpPlan {
        rto_slop: ms(200),
        ..plan(ms(30), false)
    });
    assert_eq!(freebsd.rto(), ms(1000));
    freebsd.sample(ms(100), 0, 0);
    assert_eq!(freebsd.rto(), ms(100 + 4 * 50 + 200));
}

proptest! {
    /// Against the RFC's formulas in floating point.
    #[test]
    fn agrees_with_the_formulas_of_the_rfc(
        samples in proptest::collection::vec(1_u64..1_000_000_000, 1..100),
    ) {
        let mut estimator = rfc();
        let (mut srtt, mut rttvar) = (0.0, 0.0);
        for (index, rtt_ns) in samples.iter().enumerate() {
            estimator.sample(Time::from_picoseconds(rtt_ns * 1000), 0, 0);
            let rtt = *rtt_ns as f64 * 1e-9;
            if index == 0 {
                (srtt, rttvar) = (rtt, rtt / 2.0);
            } else {
                rttvar = 0.75 * rttvar + 0.25 * f64::abs(srtt - rtt);
                srtt = 0.875 * srtt + 0.125 * rtt;
            }
            prop_assert!((estimator.srtt().seconds() - srtt).abs() < 1e-9);
            prop_assert!((estimator.rttvar().seconds() - rttvar).abs() < 1e-9);
            let rto = f64::max(srtt + 4.0 * rttvar, 1.0);
            prop_assert!((estimator.rto().seconds() - rto).abs() < 1e-8);
        }
    }

    /// Whatever the samples, Linux's timeout is at least `min_rto` above SRTT and never beyond
    /// the ceiling.
    #[test]
    fn bounds_of_the_timeout_of_linux(
        samples in proptest::collection::vec((1_u64..2_000_000_000, any::<bool>()), 1..100),
    ) {
        let mut estimator = linux();
        let mut segment = 0;
        for (rtt_ns, ends_flight) in samples {
            segment += if ends_flight { 20 } else { 1 };
            estimator.sample(Time::from_picoseconds(rtt_ns * 1000), segment + 10, segment);
            prop_assert!(estimator.rto() >= estimator.srtt() + ms(200));
            prop_assert!(estimator.rto() <= ms(120_000));
        }
    }
}

/// RFC 6298 section 2.3: RTO = SRTT + max(G, 4 RTTVAR). 517 ms are 52 ticks of 10 ms; the deviation vanishes.
#[test]
fn samples_are_rounded_to_ticks_and_the_timeout_is_a_tick_longer() {
    let mut ticking = RttEstimator::new(&TcpPlan {
        rtt_tick: ms(10),
        ..plan(ms(200), false)
    });
    feed(&mut ticking, &[ms(517); 200]);
    assert_eq!(ticking.srtt(), ms(520));
    assert_eq!(ticking.rto(), ms(530));
    let mut short = RttEstimator::new(&TcpPlan {
        rtt_tick: ms(10),
        ..plan(ms(1), false)
    });
    feed(&mut short, &[ms(3); 200]);
    assert_eq!(short.rto(), ms(20));
}

#[test]
fn a_timed_segment_gives_one_sample_unless_something_is_retransmitted() {
    let mut timed = TimedSegment::default();
    timed.start(5, ms(10));
    timed.start(6, ms(11));
    assert_eq!(timed.take(5, ms(50)), None);
    assert_eq!(timed.take(7, ms(60)), Some(ms(50)));
    assert_eq!(timed.take(8, ms(61)), None);
    timed.start(9, ms(70));
    timed.cancel();
    assert_eq!(timed.take(10, ms(90)), None);
}

#[test]
fn convergence_is_the_limit_of_equal_samples() {
    let mut converged = linux();
    let mut sampled = linux();
    for estimator in [&mut converged, &mut sampled] {
        estimator.observe_minimum(ms(100), ms(100));
        estimator.sample(ms(100), 10, 0);
    }
    converged.converge_to(ms(150));
    for flight in 1..400 {
        sampled.sample(ms(150), 10 * (flight + 1), 10 * flight);
    }
    assert_eq!(converged.srtt(), ms(150));
    assert_eq!(converged.rto(), ms(350));
    assert!(converged.rto() <= sampled.rto() && sampled.rto() < ms(351));
    assert_eq!(converged.min_rtt(), ms(100));
}
