//! Invariants in any network: mass, packets, and independence of steps and cells.

use ackclock_models::meanfield::field::Resolution;
use ackclock_models::meanfield::law::{Control, Mode};
use ackclock_models::meanfield::plan::{ClassPlan, Plan};
use ackclock_models::meanfield::policy::Policy;
use ackclock_models::meanfield::record::Totals;
use ackclock_models::meanfield::MeanField;
use ackclock_models::red::Red;

use crate::setups::{
    assert_near, cubic, ftth, inter_dc, intra_dc, run, run_with, slow_start, Measures, CODEL, PIE,
};

fn networks() -> Vec<Plan> {
    let ftth = |control, flows| Plan {
        duration_s: 30.0,
        warmup_s: 5.0,
        ..ftth(control, flows)
    };
    let red = Policy::Red(Red {
        min_p: 100.0,
        max_p: 400.0,
        probability: 0.05,
        weight: 0.002,
        gentle: true,
    });
    let reno = ClassPlan {
        flows: vec![20, 21],
        base_rtt_s: 0.08,
        control: Control::Reno {},
        opening: None,
    };
    let mut mixed = ftth(cubic(Mode::Auto), 20);
    mixed.classes.push(reno);
    vec![
        ftth(cubic(Mode::Auto), 10),
        ftth(Control::Reno {}, 10),
        Plan {
            one_reduction_per_rtt: false,
            ..ftth(cubic(Mode::Tcp), 10)
        },
        Plan {
            policy: red,
            ..ftth(cubic(Mode::Auto), 10)
        },
        Plan {
            recovery: true,
            loss_rate_exponent: 0.3,
            ..slow_start(ftth(cubic(Mode::Auto), 10))
        },
        Plan {
            recovery: true,
            policy: Policy::Codel(CODEL),
            ..ftth(cubic(Mode::Auto), 10)
        },
        Plan {
            recovery: true,
            policy: Policy::Pie(PIE),
            ..ftth(cubic(Mode::Auto), 10)
        },
        Plan {
            particles: true,
            ..ftth(cubic(Mode::Auto), 10)
        },
        Plan {
            loss_weight: 0.6,
            loss_rate_exponent: -0.5,
            ..mixed.clone()
        },
        mixed,
        Plan {
            duration_s: 100.0,
            warmup_s: 10.0,
            ..inter_dc(10)
        },
    ]
}

#[test]
fn shares_sum_to_one_and_packets_are_conserved() {
    for plan in networks() {
        let mut model = MeanField::new(&plan, 1).expect("a sound plan");
        model.advance(plan.duration_s);
        for class in 0..plan.classes.len() {
            let off = (model.cohorts(class).total() - 1.0).abs();
            assert!(off < 1e-12, "{off} in {plan:?}");
        }
        let waiting_p = model.backlog_p();
        let Totals { flows, links: link } = model.finish();
        let left_p = link.departed_total_p[0] + link.dropped_total_p[0] + waiting_p;
        assert_near("packets", left_p, link.arrived_total_p[0], 1e-10);
        let mut delivered_p: f64 = flows.delivered_p.iter().sum();
        if !plan.particles && plan.classes.len() == 1 {
            assert_eq!(flows.flow.len(), 10);
            delivered_p = flows.delivered_p[0] * 10.0;
        }
        assert_near(
            "packets of the flows",
            delivered_p,
            link.departed_total_p[0],
            1e-9,
        );
        let binned: u64 = link.sojourn_counts[0].iter().sum();
        assert_near(
            "packets in the histogram",
            binned as f64,
            link.departed_p[0],
            1e-4,
        );
    }
}

#[test]
fn halving_the_step_does_not_matter() {
    for plan in [
        ftth(Control::Reno {}, 10),
        ftth(cubic(Mode::Auto), 10),
        inter_dc(10),
        intra_dc(cubic(Mode::Tcp), 10),
    ] {
        let (_, step_s) = plan.steps();
        let (take_integer, half) = (
            run(&plan),
            run(&Plan {
                step_s: Some(step_s / 2.0),
                ..plan
            }),
        );
        assert!((take_integer.utilisation - half.utilisation).abs() < 0.001);
        assert_near("mean window", take_integer.mean_p, half.mean_p, 0.003);
        assert_near("period", take_integer.period_s, half.period_s, 0.02);
    }
}

/// Cells half as wide and four times as many cohorts: merging is not seen in the results.
#[test]
fn merging_cohorts_does_not_matter() {
    let fine = Resolution {
        finer: 1,
        max_cohorts: 8192,
    };
    let same = |name: &str, one: &Measures, other: &Measures| {
        assert_near(name, one.mean_p, other.mean_p, 0.001);
        assert_near(name, one.period_s, other.period_s, 0.003);
        assert_near(name, one.hit, other.hit, 0.005);
        assert_near(name, one.sd_p, other.sd_p, 0.02);
    };
    let ftth = Plan {
        duration_s: 70.0,
        ..ftth(cubic(Mode::Auto), 100)
    };
    same("FTTH", &run(&ftth), &run_with(&ftth, 1, fine));
    let far = Plan {
        duration_s: 300.0,
        ..inter_dc(100)
    };
    same("inter-DC", &run(&far), &run_with(&far, 1, fine));
}

#[test]
fn the_number_of_cohorts_stays_bounded() {
    let red = Policy::Red(Red {
        min_p: 20.0,
        max_p: 400.0,
        probability: 0.1,
        weight: 0.01,
        gentle: true,
    });
    let plan = Plan {
        duration_s: 20.0,
        warmup_s: 5.0,
        policy: red,
        ..ftth(cubic(Mode::Auto), 10)
    };
    let mut model = MeanField::new(&plan, 1).expect("a sound plan");
    for second in 0..20 {
        model.advance(f64::from(second));
        assert!(model.cohorts(0).len() <= Resolution::default().max_cohorts);
    }
}

#[test]
fn invalid_plans_are_rejected() {
    let sound = ftth(Control::Reno {}, 2);
    let refused = |plan: Plan| MeanField::new(&plan, 1).is_err();
    assert!(!refused(sound.clone()));
    assert!(refused(Plan {
        rate_pps: 0.0,
        ..sound.clone()
    }));
    assert!(refused(Plan {
        buffer_p: f64::NAN,
        ..sound.clone()
    }));
    assert!(refused(Plan {
        warmup_s: sound.duration_s,
        ..sound.clone()
    }));
    assert!(refused(Plan {
        classes: Vec::new(),
        ..sound.clone()
    }));
    let control = Control::Cubic {
        c: 0.4,
        beta: 1.0,
        fast_convergence: false,
        mode: Mode::Auto,
    };
    assert!(refused(ftth(control, 2)));
    let red = Policy::Red(Red {
        min_p: 10.0,
        max_p: 10.0,
        probability: 0.1,
        weight: 0.1,
        gentle: false,
    });
    assert!(refused(Plan {
        policy: red,
        ..sound
    }));
}

/// Shares of two classes of unlike windows that reduce in the first overflow.
fn hit_first(loss_weight: f64, loss_rate_exponent: f64) -> (f64, f64) {
    let mut plan = ftth(Control::Reno {}, 10);
    plan.classes.push(ClassPlan {
        flows: (10..20).collect(),
        base_rtt_s: 0.06,
        control: Control::Reno {},
        opening: None,
    });
    let plan = Plan {
        loss_weight,
        loss_rate_exponent,
        ..plan
    };
    let mut model = MeanField::new(&plan, 1).expect("a sound plan");
    model.advance(plan.duration_s);
    let found = model.drain().episodes;
    (found.share[0], found.share[1])
}

/// Flows of equal windows and different round trips, hit equally; by rates they are hit per packet.
#[test]
fn losses_follow_a_power_of_the_rate() {
    let (near, far) = hit_first(0.5, 0.0);
    assert_near("shares of alike", near, far, 0.03);
    let (near, far) = hit_first(0.5, 3.0);
    assert!((near / far - 1.0).abs() > 0.3, "{near} {far}");
}

/// A lost packet that counts for less hits fewer flows.
#[test]
fn losses_in_clumps_hit_fewer_flows() {
    let share = |loss_weight| {
        let found = hit_first(loss_weight, 1.0);
        0.5 * (found.0 + found.1)
    };
    assert!(share(0.3) < share(0.6) && share(0.6) < share(1.0));
}
