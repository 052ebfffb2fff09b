//! Paths that are known, with windows that grow by a packet each round trip and halve when something is lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

mod outages;
mod small_buckets;

/// Bytes of a packet.
const PACKET: u32 = 1518;
/// Between the packets of a burst, in nanoseconds: 100 Mb/s.
const SPACING_NS: i64 = 121_440;

/// A limiter: what passes waits for this long; what is lost does not.
trait Limits {
    fn arrives(&mut self, time_ns: i64) -> Option<i64>;
}

/// A token bucket and the queue behind it.
struct Bucket {
    bytes_per_ns: f64,
    burst: f64,
    queue: f64,
    level: f64,
    then_ns: i64,
}

impl Bucket {
    fn new(rate_bps: f64, burst: f64, queue: f64) -> Self {
        Self {
            bytes_per_ns: rate_bps / 8e9,
            burst,
            queue,
            level: 0.0,
            then_ns: 0,
        }
    }
}

impl Limits for Bucket {
    fn arrives(&mut self, time_ns: i64) -> Option<i64> {
        self.level = (self.level - self.bytes_per_ns * (time_ns - self.then_ns) as f64).max(0.0);
        self.then_ns = time_ns;
        let level = self.level + f64::from(PACKET);
        (level <= self.burst + self.queue).then(|| {
            self.level = level;
            ((level - self.burst).max(0.0) / self.bytes_per_ns) as i64
        })
    }
}

/// Each so many-th of a sequence of pseudo-random numbers (Knuth's multiplier).
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

impl Limits for Chance {
    fn arrives(&mut self, _time_ns: i64) -> Option<i64> {
        (self.below(50) > 0).then_some(0)
    }
}

/// Return the packets and RTT samples of flows with these round trips, with up to .3 ms of noise.
fn sent(
    limits: &mut (impl Limits + ?Sized),
    rtts_ms: &[i64],
    seconds: i64,
) -> (Vec<Arrival>, Vec<RttSample>) {
    let mut noise = Chance(1);
    let (mut arrivals, mut samples) = (Vec::new(), Vec::new());
    let mut windows = vec![(10_u32, false); rtts_ms.len()];
    let mut arrivals_at: BinaryHeap<Reverse<(i64, usize, u32, i64)>> = (0..rtts_ms.len())
        .map(|flow| Reverse((flow as i64 * 50_000_000, flow, 10, 0)))
        .collect();
    while let Some(Reverse((time_ns, flow, left, waited_ns))) = arrivals_at.pop() {
        if time_ns > seconds * 1_000_000_000 {
            break;
        }
        let waits = limits.arrives(time_ns);
        let (number, rtt_ns) = (flow as u32, rtts_ms[flow] * 1_000_000);
        arrivals.push(Arrival {
            time_ns,
            bytes: PACKET,
            path: 0,
            lost: waits.is_none(),
        });
        let waited_ns = waits.unwrap_or(waited_ns);
        match waits {
            Some(waits) => samples.push(RttSample {
                time_ns,
                rtt_ns: rtt_ns + waits + noise.below(300_000) as i64,
                flow: number,
                path: 0,
                behind: false,
            }),
            None => windows[flow].1 = true,
        }
        if left > 1 {
            arrivals_at.push(Reverse((time_ns + SPACING_NS, flow, left - 1, waited_ns)));
            continue;
        }
        let (window, lost) = windows[flow];
        let window = if lost {
            (window / 2).max(2)
        } else {
            window + 1
        };
        windows[flow] = (window, false);
        arrivals_at.push(Reverse((
            time_ns + rtt_ns + waited_ns,
            flow,
            window,
            waited_ns,
        )));
    }
    (arrivals, samples)
}

fn describe(limits: &mut impl Limits, rtts_ms: &[i64]) -> Path {
    let (arrivals, samples) = sent(limits, rtts_ms, 60);
    limiter(&arrivals, &samples)
}

fn holds(estimate: Option<Estimate>, truth: f64, within: f64) {
    let estimate = estimate.expect("an estimate");
    assert!(
        (estimate.value / truth - 1.0).abs() < within,
        "{estimate:?} is not {truth}"
    );
    assert!(
        estimate.low <= truth && truth <= estimate.high,
        "{estimate:?} leaves out {truth}"
    );
}

#[test]
fn a_policer_is_detected_with_rate_and_depth() {
    for (rate_bps, depth, rtts_ms) in [
        (1e6, 3e4, &[100][..]),
        (3e6, 1e5, &[100]),
        (3e6, 1e5, &[20, 100]),
        (1e7, 1e6, &[50, 70, 30]),
        (5e7, 3e5, &[10, 10]),
    ] {
        let path = describe(&mut Bucket::new(rate_bps, depth, 0.0), rtts_ms);
        assert_eq!(path.limiter, Limiter::Policer, "{path:?}");
        holds(path.rate_bps, rate_bps, 0.01);
        holds(path.depth_bytes, depth, 0.05);
        assert_eq!(path.burst_bytes, None);
    }
}

#[test]
fn a_queue_is_not_a_policer() {
    for (rate_bps, limit, rtts_ms) in [
        (3e6, 1e5, &[100, 60, 80][..]),
        (1e7, 3e4, &[20, 50]),
        (2e7, 1e5, &[10, 20, 20]),
    ] {
        let path = describe(&mut Bucket::new(rate_bps, 0.0, limit), rtts_ms);
        assert_eq!(path.limiter, Limiter::Queue, "{path:?}");
        let rate = path.rate_bps.expect("a rate").value;
        assert!(
            (rate / rate_bps - 1.0).abs() < 0.02,
            "{rate} is not {rate_bps}"
        );
        let depth = path
            .depth_bytes
            .unwrap_or_else(|| panic!("no depth: {path:?}"))
            .value;
        assert!((depth / limit - 1.0).abs() < 0.1, "{depth} is not {limit}");
    }
}

#[test]
fn a_queue_behind_a_bucket_is_a_shaper() {
    let path = describe(&mut Bucket::new(3e6, 3e4, 1e5), &[100]);
    assert_eq!(path.limiter, Limiter::Shaper, "{path:?}");
    let burst = path.burst_bytes.expect("a burst").value;
    assert!((burst / 3e4 - 1.0).abs() < 0.1, "{burst}");
    let rate = path.rate_bps.expect("a rate").value;
    assert!((rate / 3e6 - 1.0).abs() < 0.02, "{rate}");
}

/// Return the path measured behind a limiter that releases `at_once` packets at a time.
fn behind(limits: &mut impl Limits, rtts_ms: &[i64], at_once: usize) -> Path {
    let (arrivals, samples) = sent(limits, rtts_ms, 60);
    let base_ns = |flow: u32| rtts_ms[flow as usize] * 1_000_000;
    let left_ns = |sample: &RttSample| sample.time_ns + sample.rtt_ns - base_ns(sample.flow);
    let mut left: Vec<i64> = samples.iter().map(left_ns).collect();
    left.sort_unstable();
    let times_ns: Vec<i64> = left
        .chunks(at_once)
        .flat_map(|lump| vec![*lump.last().expect("one"); lump.len()])
        .collect();
    let arrival = |&time_ns: &i64| Arrival {
        time_ns,
        ..arrivals[0]
    };
    let arrivals: Vec<Arrival> = times_ns.iter().map(arrival).collect();
    let sample = |one: &RttSample| RttSample {
        time_ns: times_ns[left.partition_point(|&before| before < left_ns(one))],
        behind: true,
        ..*one
    };
    let samples: Vec<RttSample> = samples.iter().map(sample).collect();
    limiter(&arrivals, &samples)
}

#[test]
fn behind_a_shaper_the_burst_precedes_the_queue() {
    for (rate_bps, burst, queue, rtts_ms) in [
        (3e6, 3e4, 1e5, &[100][..]),
        (8e6, 5e4, 1e5, &[40, 40]),
        (2e7, 1e5, 2e5, &[30, 60, 20]),
    ] {
        let path = behind(&mut Bucket::new(rate_bps, burst, queue), rtts_ms, 1);
        assert_eq!(path.limiter, Limiter::Shaper, "{path:?}");
        let describe = path.burst_bytes.expect("a burst").value;
        assert!(
            (describe / burst - 1.0).abs() < 0.1,
            "{describe} is not {burst}"
        );
        let queue = behind(&mut Bucket::new(rate_bps, 0.0, queue), rtts_ms, 1);
        assert_eq!(queue.limiter, Limiter::Queue, "{queue:?}");
    }
}

#[test]
fn a_queue_that_releases_batches_is_no_shaper() {
    for at_once in [4, 16] {
        let path = behind(&mut Bucket::new(8e6, 0.0, 1e5), &[40, 40], at_once);
        assert_eq!(path.limiter, Limiter::Queue, "{path:?}");
    }
}

#[test]
fn a_full_queue_shows_in_the_round_trips() {
    let path = describe(&mut Bucket::new(3e6, 0.0, 3e5), &[50, 50, 50, 50]);
    let delay = path.delay.expect("round trips");
    assert!((delay.rtt_min_s - 0.054).abs() < 0.002, "{delay:?}");
    // The queue is full at 800 ms, and half a window is left after a loss.
    assert!(delay.rtt_p95_s > 0.7 && delay.rtt_p95_s < 0.86, "{delay:?}");
    assert!(
        delay.min_queue_s > 0.2 && delay.min_queue_s < delay.rtt_median_s,
        "{delay:?}"
    );
}

#[test]
fn random_losses_show_no_limiter() {
    let path = describe(&mut Chance(7), &[100, 50]);
    assert!(path.evidence.losses > MIN_LOSSES);
    assert_eq!(path.limiter, Limiter::None, "{path:?}");
    assert_eq!(path.rate_bps, None);
}

#[test]
fn losses_in_rows_are_not_by_chance() {
    let (mut arrivals, samples) = sent(&mut Chance(7), &[100, 50], 60);
    for place in (0..arrivals.len() - 3).step_by(997) {
        arrivals[place..place + 4]
            .iter_mut()
            .for_each(|arrival| arrival.lost = true);
    }
    let path = limiter(&arrivals, &samples);
    assert!(path.evidence.in_rows);
    assert_eq!(path.limiter, Limiter::Undecided, "{path:?}");
}

#[test]
fn with_rare_losses_a_queue_is_detected_with_and_without_a_bucket() {
    for rate_bps in [2e6, 5e6, 1e7, 3e7] {
        let (arrivals, samples) = sent(&mut Bucket::new(rate_bps, 0.0, 2e5), &[60, 30], 120);
        let found = fit(&arrivals, &samples);
        let with_a_bucket = fit_if(&arrivals, &samples, |_, _| true);
        let explained = with_a_bucket.evidence.explained.expect("losses");
        assert!(explained <= policing::max_explained(&found.trace));
        assert!(found.bucket.is_none());
        let without_evidence = |looked: &PathFit| Path {
            evidence: Evidence::default(),
            ..looked.path()
        };
        assert_eq!(found.path().limiter, Limiter::Queue);
        assert_eq!(without_evidence(&found), without_evidence(&with_a_bucket));
        assert_eq!(found.strength(), with_a_bucket.strength());
        assert_eq!(found.has_rate(), with_a_bucket.has_rate());
    }
}

#[test]
fn skipping_the_bucket_search_keeps_the_choice_between_one_path_and_all() {
    let mut limits: [Box<dyn Limits>; 4] = [
        Box::new(Bucket::new(3e6, 1e5, 0.0)),
        Box::new(Bucket::new(3e6, 0.0, 3e5)),
        Box::new(Bucket::new(2e7, 0.0, 2e5)),
        Box::new(Chance(7)),
    ];
    let mut spared = 0;
    for limits in &mut limits {
        let (arrivals, samples) = sent(limits.as_mut(), &[100, 40, 50], 60);
        let together = fit(&arrivals, &samples);
        // Every other arrival tells less than all, and the flow's own round trips as much.
        let half: Vec<Arrival> = arrivals.iter().copied().step_by(2).collect();
        let own = |flow: u32| samples.iter().copied().filter(move |one| one.flow == flow);
        for (arrivals, samples) in [
            (&half, own(0).collect::<Vec<_>>()),
            (&arrivals, own(1).collect()),
            (&half, Vec::new()),
        ] {
            let whole = fit_if(arrivals, &samples, |_, _| true);
            let beside = fit_with(arrivals, &samples, &together);
            let chosen = |alone: &PathFit| {
                let all = together.has_rate() && together.strength() >= alone.strength();
                (!all).then(|| (alone.path().limiter, alone.path().rate_bps))
            };
            assert_eq!(chosen(&beside), chosen(&whole));
            spared += usize::from(whole.bucket.is_some() && beside.bucket.is_none());
        }
    }
    assert!(spared > 0);
}

#[test]
fn fewer_than_fifteen_losses_leave_it_open() {
    let (arrivals, samples) = sent(&mut Bucket::new(3e6, 1e5, 0.0), &[100], 60);
    let fifteenth = arrivals
        .iter()
        .enumerate()
        .filter(|(_, arrival)| arrival.lost)
        .nth(14);
    let end = fifteenth.expect("losses").0;
    let path = limiter(&arrivals[..end], &samples);
    assert_eq!(
        (path.limiter, path.evidence.losses),
        (Limiter::Undecided, 14)
    );
}

#[test]
fn without_round_trips_a_policer_could_be_a_queue() {
    let (arrivals, _) = sent(&mut Bucket::new(3e6, 1e5, 0.0), &[100], 60);
    let path = limiter(&arrivals, &[]);
    assert_eq!((path.limiter, path.delay), (Limiter::Undecided, None));
    assert!(path.evidence.explained > Some(EXPLAINED));
}

#[test]
fn one_overshoot_is_no_evidence() {
    let (arrivals, samples) = sent(&mut Bucket::new(3e6, 1e5, 0.0), &[100], 60);
    let mut episodes = 0;
    let mut last_ns = i64::MIN;
    let end = arrivals.iter().position(|arrival| {
        if arrival.lost {
            episodes += usize::from(arrival.time_ns > last_ns + 150_000_000);
            last_ns = arrival.time_ns;
        }
        episodes == 3
    });
    // Each loss is fifteen: the same packet, retransmitted at once.
    let repeated: Vec<Arrival> = arrivals[..end.expect("three episodes")]
        .iter()
        .flat_map(|arrival| vec![*arrival; if arrival.lost { 15 } else { 1 }])
        .collect();
    let path = limiter(&repeated, &samples);
    assert!(path.evidence.losses >= MIN_LOSSES && path.evidence.explained > Some(EXPLAINED));
    assert_eq!(
        (path.evidence.episodes, path.limiter),
        (2, Limiter::Undecided)
    );
}

#[test]
fn a_bucket_that_was_never_full_may_be_deeper() {
    let (arrivals, samples) = sent(&mut Bucket::new(1e6, 1e6, 0.0), &[50, 80], 60);
    let whole = limiter(&arrivals, &samples);
    assert!(whole.limiter == Limiter::Policer && whole.is_depth_a_minimum);
    // After a pause of 10 s the bucket of 1 MB is full: as if nothing had been before.
    let after = |by_ns: i64| {
        arrivals.iter().map(move |arrival| Arrival {
            time_ns: arrival.time_ns + by_ns,
            ..*arrival
        })
    };
    let twice: Vec<Arrival> = after(0)
        .chain(after(80_000_000_000))
        .chain(after(160_000_000_000))
        .collect();
    let path = limiter(&twice, &samples);
    assert!(
        path.limiter == Limiter::Policer && !path.is_depth_a_minimum,
        "{path:?}"
    );
}

#[test]
fn the_order_of_arrivals_does_not_matter() {
    let (mut arrivals, mut samples) = sent(&mut Bucket::new(3e6, 1e5, 0.0), &[20, 100], 20);
    let path = limiter(&arrivals, &samples);
    arrivals.reverse();
    samples.reverse();
    assert_eq!(limiter(&arrivals, &samples), path);
}

#[test]
fn levels_keep_the_extremes() {
    let (arrivals, _) = sent(&mut Bucket::new(3e6, 1e5, 0.0), &[100], 60);
    let points = levels(&arrivals, 3e6, 50);
    assert!(
        points.len() > 100 && points.len() <= 204,
        "{}",
        points.len()
    );
    assert!(points.iter().all(|point| point.lost == (point.bytes > 1e5)));
    assert!(points.is_sorted_by_key(|point| point.time_ns));
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let times = prop_oneof![0..10_000_000_i64, 0..10_000_000_000_i64, any::<i64>()];
    (times, any::<u32>(), prop::bool::weighted(0.3)).prop_map(|(time_ns, bytes, lost)| Arrival {
        time_ns,
        bytes,
        path: 0,
        lost,
    })
}

fn sample() -> impl Strategy<Value = RttSample> {
    let times = prop_oneof![0..10_000_000_i64, 0..10_000_000_000_i64, any::<i64>()];
    (times.clone(), times, 0..3_u32).prop_map(|(time_ns, rtt_ns, flow)| RttSample {
        time_ns,
        rtt_ns,
        flow,
        path: 0,
        behind: flow == 2,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_input_gives_finite_numbers(
        arrivals in prop::collection::vec(arrival(), 0..120),
        samples in prop::collection::vec(sample(), 0..120),
    ) {
        let path = limiter(&arrivals, &samples);
        let estimates = [path.rate_bps, path.depth_bytes, path.burst_bytes, path.evidence.slope, path.evidence.bucket_bps];
        for estimate in estimates.into_iter().flatten() {
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high, "{estimate:?}");
            prop_assert!(estimate.low.is_finite() && estimate.high.is_finite(), "{estimate:?}");
        }
        let points = levels(&arrivals, 1e6, 10);
        prop_assert!(points.iter().all(|point| point.bytes.is_finite()));
    }
}
