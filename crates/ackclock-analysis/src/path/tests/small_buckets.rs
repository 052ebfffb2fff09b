//! Policers of few packets, and buckets in use when a capture begins.

use super::*;

#[test]
fn a_policer_of_few_packets_may_have_room_for_one() {
    for (rate_bps, packets, rtts_ms) in [
        (2e6, 10.0, &[20][..]),
        (4e6, 12.0, &[40]),
        (8e6, 10.0, &[60, 20]),
    ] {
        let depth = packets * f64::from(PACKET);
        let path = describe(
            &mut Bucket::new(rate_bps, depth, f64::from(PACKET)),
            rtts_ms,
        );
        assert_eq!(path.limiter, Limiter::Policer, "{path:?}");
    }
}

#[test]
fn a_policer_behind_jitter_is_one_and_its_depth_is_unknown() {
    let depth = 6.0 * f64::from(PACKET);
    let (mut arrivals, samples) = sent(&mut Bucket::new(5e6, depth, 0.0), &[20, 30, 50], 60);
    let mut noise = Chance(7);
    let mut late_ns = 0;
    for arrival in &mut arrivals {
        if noise.below(8) == 0 {
            late_ns = noise.below(12_000_000) as i64;
        }
        arrival.time_ns += late_ns;
    }
    let path = limiter(&arrivals, &samples);
    assert!(!path.evidence.is_explained(), "{:?}", path.evidence);
    assert_eq!(
        (path.limiter, path.depth_bytes),
        (Limiter::Policer, None),
        "{path:?}"
    );
}

#[test]
fn a_trace_can_begin_where_the_bucket_was_fullest() {
    let at = |time_ns: i64| Arrival {
        time_ns,
        bytes: PACKET,
        path: 0,
        lost: false,
    };
    let busy =
        |from_s: i64| (0..50).map(move |number| at(from_s * 1_000_000_000 + number * 100_000_000));
    let arrivals: Vec<Arrival> = busy(0).chain(busy(10)).collect();
    let trace = Trace::from_arrivals(&arrivals).since_lowest();
    assert_eq!((trace.start_ns, trace.len()), (10_000_000_000, 50));
    assert_eq!(trace.time_s[0], 0.0);
}

#[test]
fn a_bucket_rarely_in_use_leaves_the_limiter_undecided() {
    let flat = Estimate {
        value: 0.0,
        low: -0.1,
        high: 0.1,
    };
    let used = |in_use: f64| Evidence {
        losses: 100,
        explained: Some(0.9),
        gain: Some(2.0 * CERTAIN),
        slope: Some(flat),
        slope_when_full: Some(flat),
        delayed: Some(0.0),
        episodes: 100,
        in_use: Some(in_use),
        ..Evidence::default()
    };
    assert_eq!(used(2.0 * MIN_IN_USE).limiter(), Limiter::Policer);
    for behind in [false, true] {
        let evidence = Evidence {
            behind,
            ..used(0.5 * MIN_IN_USE)
        };
        assert_eq!(evidence.limiter(), Limiter::Undecided);
    }
}

#[test]
fn pauses_are_no_use_of_a_bucket() {
    let at = |time_ms: i64, lost: bool| Arrival {
        time_ns: 1_000_000 * time_ms,
        bytes: PACKET,
        path: 0,
        lost,
    };
    let trace = Trace::from_arrivals(&[at(0, false), at(100, true), at(5100, false)]);
    assert_eq!(trace.passed_bytes(), 2.0 * f64::from(PACKET));
    assert!((trace.active_s() - 0.3).abs() < 1e-9);
}
