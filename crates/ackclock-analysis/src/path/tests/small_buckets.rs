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

#[test]
fn round_trips_that_grow_without_a_delay_at_losses_show_no_queue() {
    let steep = Estimate {
        value: 3.0,
        low: 1.6,
        high: 4.2,
    };
    let lossy = |delayed: f64| Evidence {
        losses: 36,
        explained: Some(0.97),
        slope: Some(steep),
        slope_when_full: Some(steep),
        delayed: Some(delayed),
        episodes: 20,
        in_use: Some(0.5),
        ..Evidence::default()
    };
    assert_eq!(lossy(0.9).limiter(), Limiter::Queue);
    assert_eq!(lossy(0.0).limiter(), Limiter::Undecided);
}

#[test]
fn behind_a_limiter_an_imprecise_rate_has_no_interval() {
    let rate = |low: f64| Estimate {
        value: 1e6,
        low,
        high: 1.01e6,
    };
    let depth = 40.0 * f64::from(PACKET);
    let known = describe(&mut Bucket::new(2e6, depth, 0.0), &[40]);
    for (low, behind, is_stated) in [
        (0.99e6, true, true),
        (0.5e6, true, false),
        (0.5e6, false, true),
    ] {
        let path = Path {
            rate_bps: Some(rate(low)),
            evidence: Evidence {
                behind,
                ..known.evidence
            },
            ..known
        };
        assert_eq!(path.stated_rate_bps().is_some(), is_stated);
    }
}
