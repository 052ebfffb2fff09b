use ackclock_core::Time;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::identify::series::{AckSample, CaState, Signal};
use crate::identify::testing::{candidates, flow, flow_of, SPACING};

/// The most probable name, if it is more so than all others together.
fn verdict(ranked: &[Ranked]) -> &str {
    let first = ranked.first().filter(|first| first.probability >= 0.5);
    first.map_or(UNKNOWN, |first| &first.name)
}

#[test]
fn each_cca_is_identified_from_its_own_flow() {
    for name in ["reno", "vegas", "scalable", "cubic"] {
        let series = flow_of(name, 60);
        let ranked = rank(&series, &candidates());
        assert_eq!(verdict(&ranked), name, "{ranked:?}");
    }
}

#[test]
fn an_exact_replay_leaves_room_for_a_cca_that_behaves_the_same() {
    let ranked = rank(&flow_of("cubic", 60), &candidates());
    let [first, second] = [&ranked[0], &ranked[1]];
    assert_eq!(
        (first.name.as_str(), second.name.as_str()),
        ("cubic", UNKNOWN)
    );
    assert!(
        (first.probability - (1.0 - MIMICS)).abs() < 1e-3,
        "{ranked:?}"
    );
    assert!((second.probability - MIMICS).abs() < 1e-3, "{ranked:?}");
}

#[test]
fn a_flow_of_ect1_is_of_a_candidate_that_sends_it_or_unknown() {
    let mut series = flow_of("cubic", 60);
    series.is_l4s = true;
    let ranked = rank(&series, &candidates());
    assert_eq!((ranked.len(), verdict(&ranked)), (1, UNKNOWN));
    let scalable = candidates().into_iter().map(|one| {
        let is_l4s = one.name() == "cubic";
        one.with_l4s(is_l4s)
    });
    let scalable: Vec<Candidate> = scalable.collect();
    assert_eq!(verdict(&rank(&series, &scalable)), "cubic");
    series.is_l4s = false;
    assert_eq!(verdict(&rank(&series, &scalable)), "cubic");
}

/// ABCC with the parameters of its algorithm spec.
fn abcc() -> Candidate {
    let card = json!({
        "alpha": 2.0, "beta": 0.1, "gamma": 2.0, "groups": 4, "group_min": 4, "group_max": 8, "count_first": false
    });
    Candidate::new("abcc", &card, false).expect("its card")
}

#[test]
fn a_window_that_no_candidate_has_is_unknown() {
    let mut window = 10.0;
    let series = flow(60, |sample| {
        window = match (sample.signal, sample.ca_state) {
            (Some(_), _) => window * 0.9,
            (_, CaState::Open) => window + 0.1 / f64::sqrt(window),
            _ => window,
        };
        window as u32
    });
    assert!(series.epochs() > 10);
    let ranked = rank(&series, &candidates());
    assert_eq!(verdict(&ranked), UNKNOWN, "{ranked:?}");
}

#[test]
fn mostly_timeouts_identify_no_cca() {
    let mut series = flow_of("reno", 60);
    let half = series.epochs() / 2;
    let signals = |series: &mut Series, count: usize| {
        let signals = series
            .samples
            .iter_mut()
            .filter_map(|sample| sample.signal.as_mut());
        signals
            .take(count)
            .for_each(|signal| *signal = Signal::Timeout);
    };
    signals(&mut series, half);
    assert!(!is_by_the_timer(&series));
    signals(&mut series, half + 2);
    let ranked = rank(&series, &candidates());
    assert_eq!((ranked.len(), verdict(&ranked)), (1, UNKNOWN));
}

/// Compound with the parameters of its algorithm spec.
fn compound(deployed: bool) -> Candidate {
    let card = json!({
        "slow_start": "standard", "alpha": 0.125, "beta": 0.5, "k": 0.75, "eta": 1.0, "gamma": 30.0,
        "low_window": 38.0,
    });
    Candidate::new("compound", &card, deployed).expect("its card")
}

#[test]
fn controls_that_do_the_same_are_one_law() {
    for (deployed, pair) in [(true, ["compound", "aimd"]), (false, ["aimd", "compound"])] {
        let mut candidates = candidates();
        candidates.push(compound(deployed));
        let ranked = rank(&flow_of("aimd", 30), &candidates);
        assert_eq!(verdict(&ranked), pair[0], "{ranked:?}");
        assert!(ranked[0].same.contains(&pair[1].to_owned()), "{ranked:?}");
        assert!(ranked.iter().skip(1).all(|one| one.name != pair[1]));
    }
}

#[test]
fn ccas_that_agree_at_small_windows_are_distinguished_at_large_ones() {
    let mut candidates = candidates();
    candidates.push(compound(true));
    let ranked = rank(&flow_of("aimd", 120), &candidates);
    assert!(
        !ranked
            .iter()
            .any(|one| one.same.contains(&"compound".to_owned())),
        "{ranked:?}"
    );
    assert_ne!(verdict(&ranked), "compound", "{ranked:?}");
}

#[test]
fn a_common_behaviour_is_no_evidence() {
    let renos: Vec<Candidate> = (0..4).map(|_| candidates().swap_remove(0)).collect();
    let ranked = rank(&flow_of("reno", 60), &renos);
    assert_eq!(verdict(&ranked), UNKNOWN, "{ranked:?}");
}

#[test]
fn without_rounds_the_ranking_is_empty() {
    let ranked = rank(&Series::default(), &candidates());
    assert_eq!(verdict(&ranked), UNKNOWN, "{ranked:?}");
}

#[test]
fn a_capture_that_begins_later_is_followed_from_its_first_loss() {
    let mut series = flow_of("cubic", 60);
    let second = series
        .samples
        .iter()
        .filter(|sample| sample.signal.is_some());
    let second = second
        .map(|sample| sample.time)
        .nth(1)
        .expect("a second loss");
    series
        .samples
        .retain(|sample| sample.time + SPACING + SPACING > second);
    series.initial_window = None;
    series.handshake = None;
    assert_eq!(verdict(&rank(&series, &candidates())), "cubic");
}

#[test]
fn scalable_tcp_may_count_acks() {
    let candidate = &candidates()[2];
    let series = flow_of("scalable", 60);
    let manners = candidate.fits(&Flow::new(&series));
    assert!(manners
        .iter()
        .any(|fitted| fitted.manner.counting == Counting::Acks));
}

#[test]
fn dropping_candidates_early_keeps_the_ranking() {
    for name in ["reno", "vegas", "scalable", "cubic"] {
        let series = flow_of(name, 60);
        let flow = Flow::new(&series);
        let weight = WEIGHT * flow.rounds as f64;
        let candidates = candidates();
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let (early, exact) = flow.evidences(&candidates, weight);
        let mut dropped = 0;
        for (candidate, early) in candidates.iter().zip(&early) {
            let make = |window| candidate.controller(window);
            let begun = flow.begun(&make, Manner::default());
            let whole = candidate.evidence(&flow, &make, begun, f64::NEG_INFINITY);
            if early.best == f64::NEG_INFINITY {
                dropped += 1;
                assert!(whole.best < weight * candidate.poor() && whole.best < exact);
            } else {
                assert_eq!((early.best, early.log), (whole.best, whole.log));
            }
        }
        assert!(dropped > 0, "{name}");
    }
}

prop_compose! {
    fn any_sample()(
        time_us in 0..10_000_000_u64, counts in prop::array::uniform7(0..200_u32), big in any::<u32>(),
        rtt_us in prop::option::of(0..5_000_000_u64), flags in any::<(bool, bool)>(),
        signal in prop::sample::select(vec![None, Some(Signal::Loss), Some(Signal::Mark), Some(Signal::Timeout)]),
        ca_state in prop::sample::select(vec![CaState::Open, CaState::Recovery, CaState::Loss]),
    ) -> AckSample {
        let [delivered, advanced, marked, prior_in_flight, in_flight, window, outstanding] = counts;
        let huge = big % 64 == 0;
        AckSample {
            time: Time::from_microseconds(time_us), delivered, advanced, marked, prior_in_flight, in_flight,
            window: if huge { big } else { window }, outstanding, signal, ca_state,
            selective: flags.0, not_cwnd_limited: flags.1,
            rtt: rtt_us.map(Time::from_microseconds), oldest_rtt: rtt_us.map(Time::from_microseconds),
            oldest_sent: Time::from_microseconds(time_us / 2),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_capture_holds_probabilities_sum_to_one(
        mut samples in prop::collection::vec(any_sample(), 0..200), sorted in any::<bool>(),
        mss_bytes in 0..9000_u32, initial_window in prop::option::of(0..100_u32),
    ) {
        if sorted {
            samples.sort_by_key(|sample| sample.time);
        }
        let series = Series { mss_bytes, initial_window, handshake: None, is_l4s: false, samples };
        let mut candidates = candidates();
        candidates.push(abcc()); // It measures times between ACKs.
        let ranked = rank(&series, &candidates);
        let sum: f64 = ranked.iter().map(|one| one.probability).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9, "{ranked:?}");
    }
}

/// Hybla with the parameters of its algorithm spec.
fn hybla() -> Candidate {
    Candidate::new("hybla", &json!({ "rtt0_s": 0.025 }), true).expect("its card")
}

#[test]
fn a_first_window_that_only_one_control_sets_speaks_for_it() {
    let observed = |window, handshake| {
        let mut series = flow_of("reno", 60);
        (series.initial_window, series.handshake) = (window, handshake);
        hybla().opening(&Flow::new(&series))
    };
    let milliseconds = |ms| Some(Time::from_milliseconds(ms));
    assert_eq!(observed(Some(19), milliseconds(498)), 100_f64.ln(), "19.9");
    assert_eq!(observed(Some(10), milliseconds(250)), 0.0, "as stacks do");
    assert_eq!(observed(Some(10), milliseconds(498)), 0.01_f64.ln());
    assert_eq!(observed(Some(15), milliseconds(498)), 0.0, "nobody's");
    assert_eq!(
        observed(Some(19), None),
        0.0,
        "without an RTT it is the stack's"
    );
    assert_eq!(observed(None, milliseconds(498)), 0.0);
    let series = flow_of("reno", 60);
    for candidate in candidates() {
        assert_eq!(candidate.opening(&Flow::new(&series)), 0.0);
    }
}

#[test]
fn a_short_flow_is_identified_by_its_initial_window() {
    let mut series = flow_of("reno", 60);
    series.samples.truncate(40);
    series.handshake = Some(Time::from_milliseconds(498));
    let named = |window| {
        let series = Series {
            initial_window: Some(window),
            ..series.clone()
        };
        let mut candidates = candidates();
        candidates.push(hybla());
        verdict(&rank(&series, &candidates)).to_owned()
    };
    assert_eq!(named(19), "hybla");
    assert_ne!(named(10), "hybla");
}
