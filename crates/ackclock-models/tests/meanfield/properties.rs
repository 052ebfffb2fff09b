//! Random networks: no panic, nothing that is not a number, and the gates hold.

use ackclock_models::meanfield::law::{Control, Mode};
use ackclock_models::meanfield::plan::{ClassPlan, Opening, Plan};
use ackclock_models::meanfield::policy::Policy;
use ackclock_models::meanfield::record::Totals;
use ackclock_models::meanfield::MeanField;
use ackclock_models::red::Red;
use proptest::prelude::*;

use crate::setups::{CODEL, PIE};

fn control() -> impl Strategy<Value = Control> {
    let mode = prop_oneof![Just(Mode::Auto), Just(Mode::Cubic), Just(Mode::Tcp)];
    let cubic = (1e-4..100.0, 0.1..0.99, any::<bool>(), mode).prop_map(
        |(c, beta, fast_convergence, mode)| Control::Cubic {
            c,
            beta,
            fast_convergence,
            mode,
        },
    );
    prop_oneof![Just(Control::Reno {}), cubic]
}

fn policy() -> impl Strategy<Value = Policy> {
    let red = (0.0..100.0, 1.0..1000.0, 1e-6..1.0, 1e-6..0.9, any::<bool>()).prop_map(
        |(min_p, more_p, probability, weight, gentle)| {
            Policy::Red(Red {
                min_p,
                max_p: min_p + more_p,
                probability,
                weight,
                gentle,
            })
        },
    );
    let codel = Policy::Codel(CODEL);
    prop_oneof![
        Just(Policy::Droptail {}),
        Just(codel),
        Just(Policy::Pie(PIE)),
        red
    ]
}

fn opening() -> impl Strategy<Value = Opening> {
    let starts = prop::collection::vec(0.0..2.0, 1..5);
    (starts, 1.0..100.0, prop::option::of(1e-4..0.1)).prop_map(
        |(starts_s, window_p, leave_delay_s)| Opening {
            starts_s,
            window_p,
            leave_delay_s,
        },
    )
}

fn class() -> impl Strategy<Value = ClassPlan> {
    (
        1..20_u32,
        -4.0..0.0_f64,
        control(),
        prop::option::of(opening()),
    )
        .prop_map(|(count, exponent, control, opening)| ClassPlan {
            flows: (0..count).collect(),
            base_rtt_s: 10_f64.powf(exponent),
            control,
            opening,
        })
}

prop_compose! {
    fn network()(
        classes in prop::collection::vec(class(), 1..4),
        policy in policy(),
        rate in 0.0..7.0_f64,
        buffer in 0.0..5.0_f64,
        first_loss_p in prop::option::of(1.0..1e5),
        one_reduction_per_rtt in any::<bool>(),
        loss_weight in 0.1..3.0_f64,
        loss_rate_exponent in prop_oneof![Just(1.0), -3.0..3.0_f64],
        particles in any::<bool>(),
        recovery in any::<bool>(),
    ) -> Plan {
        let shortest_s = classes.iter().map(|class| class.base_rtt_s).fold(f64::INFINITY, f64::min);
        let duration_s = 40.0 * shortest_s;
        Plan {
            duration_s,
            warmup_s: duration_s / 4.0,
            interval_s: shortest_s / 3.0,
            step_s: None,
            rate_pps: 10_f64.powf(rate),
            buffer_p: 10_f64.powf(buffer),
            policy,
            classes,
            one_reduction_per_rtt,
            recovery,
            loss_weight,
            loss_rate_exponent,
            particles,
            first_loss_p,
            scale: 1.0,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_network_gives_numbers(plan in network(), seed in any::<u64>()) {
        let mut model = MeanField::new(&plan, seed).expect("a sound plan");
        model.advance(plan.duration_s);
        let Totals { flows, links: link } = model.finish();
        let rows = model.drain();
        for class in 0..plan.classes.len() {
            prop_assert!((model.cohorts(class).total() - 1.0).abs() < 1e-12);
        }
        let left_p = link.departed_total_p[0] + link.dropped_total_p[0] + model.backlog_p();
        prop_assert!((left_p - link.arrived_total_p[0]).abs() <= 1e-10 * link.arrived_total_p[0]);
        prop_assert!(rows.queue_samples.backlog_p.iter().all(|p| (0.0..=plan.buffer_p).contains(p)));
        prop_assert!(rows.flow_samples.cwnd.iter().all(|w| w.is_finite() && *w >= 0.0));
        prop_assert!(flows.delivered_p.iter().all(|p| p.is_finite() && *p >= 0.0));
        prop_assert!(rows.episodes.share.iter().all(|share| (0.0..=1.0).contains(share)));
    }
}
