//! Sizes against the closed forms of their laws.

use proptest::prelude::*;

use super::*;
use crate::random::{stream, Purpose};

const SAMPLES: usize = 200_000;

fn sorted(size: &Size) -> Vec<u64> {
    let sampler = size.sampler().expect("a distribution");
    let mut random = stream(1, 0, Purpose::Sizes);
    let mut samples: Vec<u64> = (0..SAMPLES).map(|_| sampler.draw(&mut random)).collect();
    samples.sort_unstable();
    samples
}

fn mean(samples: &[u64]) -> f64 {
    samples.iter().map(|&bytes| bytes as f64).sum::<f64>() / samples.len() as f64
}

/// The share of draws above `bytes`.
fn share_above(samples: &[u64], bytes: u64) -> f64 {
    (samples.len() - samples.partition_point(|&drawn| drawn <= bytes)) as f64 / samples.len() as f64
}

/// Asserts a share of draws within four standard deviations.
fn assert_share(found: f64, expected: f64) {
    let deviation = (expected * (1.0 - expected) / SAMPLES as f64).sqrt();
    assert!(
        (found - expected).abs() <= 4.0 * deviation,
        "{found} for {expected}"
    );
}

fn assert_mean(samples: &[u64], expected: f64, deviation: f64) {
    let tolerance = 4.0 * deviation / (samples.len() as f64).sqrt();
    let found = mean(samples);
    assert!(
        (found - expected).abs() <= tolerance,
        "{found} for {expected} ± {tolerance}"
    );
}

fn exponential(truncation: Option<Truncation>) -> Size {
    Size::Exponential {
        mean_bytes: 1e6,
        truncation,
    }
}

fn lognormal(truncation: Option<Truncation>) -> Size {
    Size::Lognormal {
        median_bytes: 1e6,
        sigma: 1.5,
        truncation,
    }
}

fn pareto(truncation: Option<Truncation>) -> Size {
    Size::Pareto {
        shape: 1.5,
        least_bytes: 1e6,
        truncation,
    }
}

#[test]
fn exponential_has_its_mean_and_its_tail() {
    let samples = sorted(&exponential(None));
    assert_mean(&samples, 1e6, 1e6);
    assert_share(share_above(&samples, 3_000_000), (-3.0_f64).exp());
}

#[test]
fn lognormal_has_its_median_its_spread_and_its_mean() {
    let samples = sorted(&lognormal(None));
    assert_share(share_above(&samples, 1_000_000), 0.5);
    // One sigma above the median: 1 − Φ(1).
    assert_share(
        share_above(&samples, (1e6 * 1.5_f64.exp()) as u64),
        0.158_655,
    );
    let variance = 1.5_f64.powi(2);
    let expected = 1e6 * (variance / 2.0).exp();
    assert_mean(&samples, expected, expected * variance.exp_m1().sqrt());
}

#[test]
fn pareto_has_its_minimum_and_tail() {
    let samples = sorted(&pareto(None));
    assert!(samples[0] >= 1_000_000);
    assert_share(share_above(&samples, 4_000_000), 0.125);
    assert_share(share_above(&samples, 100_000_000), 0.001);
}

/// E min(X, c) = least (shape − (least/c)^(shape − 1)) / (shape − 1).
#[test]
fn a_clipped_pareto_has_the_clipped_mean() {
    let most_bytes = 100_000_000;
    let samples = sorted(&pareto(Some(Truncation::Clip { most_bytes })));
    assert_eq!(samples[SAMPLES - 1], most_bytes);
    assert_share(share_above(&samples, most_bytes - 1), 0.001);
    let expected = 1e6 * (1.5 - 0.01_f64.sqrt()) / 0.5;
    // E min(X, c)² = least² (2 (c/least)^(1/2) / (1/2) − 3), from ∫ 2x P(X > x) dx.
    let square = 1e12 * (1.0 + 2.0 * (100.0_f64.sqrt() - 1.0) / 0.5);
    assert_mean(&samples, expected, (square - expected * expected).sqrt());
}

#[test]
fn redrawing_is_the_law_given_that_it_is_small_enough() {
    let most_bytes = 2_000_000;
    let samples = sorted(&exponential(Some(Truncation::Redraw { most_bytes })));
    assert!(samples[SAMPLES - 1] <= most_bytes);
    let kept = -(-2.0_f64).exp_m1();
    assert_share(
        share_above(&samples, 1_000_000),
        1.0 + (-1.0_f64).exp_m1() / kept,
    );
    // Nothing heaps up at the bound.
    assert!(share_above(&samples, most_bytes - 1) < 1e-4);
}

#[test]
fn zipf_has_the_probabilities_of_its_law() {
    let zipf = Size::Zipf {
        exponent: 1.7,
        most: 50,
        unit_bytes: 1000,
    };
    let samples = sorted(&zipf);
    let sum: f64 = (1..=50).map(|k| f64::from(k).powf(-1.7)).sum();
    for units in [1_u64, 2, 3, 10] {
        let found = share_above(&samples, units * 1000 - 1) - share_above(&samples, units * 1000);
        assert_share(found, (units as f64).powf(-1.7) / sum);
    }
    assert!(samples.iter().all(|bytes| bytes % 1000 == 0));
    assert_eq!(samples[SAMPLES - 1], 50_000);
}

#[test]
fn empirical_goes_straight_from_point_to_point() {
    let points = vec![(1000, 0.2), (2000, 0.6), (2000, 0.7), (10_000, 1.0)];
    let samples = sorted(&Size::Empirical { points });
    assert_eq!(samples[0], 1000);
    assert_share(share_above(&samples, 1000), 0.8);
    assert_share(share_above(&samples, 1500), 0.6);
    assert_share(share_above(&samples, 1999), 0.4);
    assert_share(share_above(&samples, 2000), 0.3);
    assert_share(share_above(&samples, 6000), 0.15);
    assert!(samples[SAMPLES - 1] <= 10_000);
}

#[test]
fn invalid_parameters_are_rejected() {
    let refused = [
        r#"{"kind": "fixed", "bytes": 0}"#,
        r#"{"kind": "fixed", "bytes": 9007199254740994}"#,
        r#"{"kind": "exponential", "mean_bytes": 0, "truncation": null}"#,
        r#"{"kind": "exponential", "mean_bytes": 100, "truncation": {"kind": "clip", "most_bytes": 0}}"#,
        r#"{"kind": "exponential", "mean_bytes": 100, "truncation": {"kind": "redraw", "most_bytes": 69}}"#,
        r#"{"kind": "lognormal", "median_bytes": 100, "sigma": -1, "truncation": null}"#,
        r#"{"kind": "lognormal", "median_bytes": 100, "sigma": 1, "truncation": {"kind": "redraw", "most_bytes": 99}}"#,
        r#"{"kind": "pareto", "shape": 0, "least_bytes": 100, "truncation": null}"#,
        r#"{"kind": "pareto", "shape": 1, "least_bytes": 100, "truncation": {"kind": "redraw", "most_bytes": 199}}"#,
        r#"{"kind": "zipf", "exponent": -1, "most": 10, "unit_bytes": 1}"#,
        r#"{"kind": "zipf", "exponent": 1, "most": 0, "unit_bytes": 1}"#,
        r#"{"kind": "zipf", "exponent": 1, "most": 9007199254740992, "unit_bytes": 2}"#,
        r#"{"kind": "empirical", "points": []}"#,
        r#"{"kind": "empirical", "points": [[0, 0], [100, 1]]}"#,
        r#"{"kind": "empirical", "points": [[100, 0], [10, 1]]}"#,
        r#"{"kind": "empirical", "points": [[10, 0.5], [100, 0.4], [1000, 1]]}"#,
        r#"{"kind": "empirical", "points": [[10, 0], [100, 0.9]]}"#,
    ];
    for json in refused {
        let size: Size = serde_json::from_str(json).expect(json);
        assert!(size.sampler().is_err(), "{json}");
    }
    let kept = r#"{"kind": "exponential", "mean_bytes": 100, "truncation": {"kind": "redraw", "most_bytes": 70}}"#;
    let size: Size = serde_json::from_str(kept).expect("a size");
    assert!(size.sampler().is_ok());
}

#[test]
fn each_field_is_required_and_unknown_fields_are_rejected() {
    for json in [
        r#"{"kind": "exponential", "mean_bytes": 100}"#,
        r#"{"kind": "exponential", "mean_bytes": 100, "truncation": null, "most": 3}"#,
        r#"{"kind": "uniform", "bytes": 100}"#,
    ] {
        assert!(serde_json::from_str::<Size>(json).is_err(), "{json}");
    }
}

fn truncations() -> impl Strategy<Value = Truncation> {
    (any::<bool>(), 1_u64..1_000_000_000).prop_map(|(clip, most_bytes)| {
        if clip {
            Truncation::Clip { most_bytes }
        } else {
            Truncation::Redraw { most_bytes }
        }
    })
}

fn sizes() -> impl Strategy<Value = (Size, u64)> {
    let positive = || 1e-3..1e12_f64;
    let laws = (
        0..4,
        positive(),
        1e-3..20.0_f64,
        truncations(),
        1_u64..1 << 40,
    );
    laws.prop_map(|(law, scale, spread, truncation, units)| {
        let (Truncation::Redraw { most_bytes } | Truncation::Clip { most_bytes }) = truncation;
        let truncation = Some(truncation);
        match law {
            0 => (
                Size::Exponential {
                    mean_bytes: scale,
                    truncation,
                },
                most_bytes,
            ),
            1 => {
                let size = Size::Lognormal {
                    median_bytes: scale,
                    sigma: spread,
                    truncation,
                };
                (size, most_bytes)
            }
            2 => {
                let size = Size::Pareto {
                    shape: spread,
                    least_bytes: scale,
                    truncation,
                };
                (size, most_bytes)
            }
            _ => {
                let size = Size::Zipf {
                    exponent: spread,
                    most: units,
                    unit_bytes: 100,
                };
                (size, units * 100)
            }
        }
    })
}

proptest! {
    #[test]
    fn no_size_exceeds_its_truncation((size, most) in sizes(), seed: u64) {
        let Ok(sampler) = size.sampler() else { return Ok(()) };
        let mut random = stream(seed, 0, Purpose::Sizes);
        for _ in 0..50 {
            let bytes = sampler.draw(&mut random);
            prop_assert!((1..=most).contains(&bytes), "{bytes}");
        }
    }
}
