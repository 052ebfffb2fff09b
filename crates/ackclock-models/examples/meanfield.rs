//! The three networks of Belhareth 2014, chapter 3, and what they cost: one JSON line each.
//!
//!     cargo run --release -p ackclock-models --example meanfield

use std::time::Instant;

use ackclock_models::meanfield::law::{Control, Mode};
use ackclock_models::meanfield::plan::{ClassPlan, Plan};
use ackclock_models::meanfield::policy::Policy;
use ackclock_models::meanfield::MeanField;

/// Name, rate of a flow in bit/s, base RTT in s, buffer of a flow in packets of 1480 bytes.
const NETWORKS: [(&str, f64, f64, f64); 3] = [
    ("FTTH", 100e6, 0.02, 50.0),
    ("intra-DC", 1e9, 0.001, 50.0),
    ("inter-DC", 1e9, 0.05, 500.0),
];

fn main() {
    for (name, rate_bps, base_rtt_s, buffer_p) in NETWORKS {
        let plan = plan(rate_bps, base_rtt_s, buffer_p);
        let mut model = MeanField::new(&plan, 1).expect("a sound plan");
        let started = Instant::now();
        model.advance(plan.duration_s);
        let cost_s = started.elapsed().as_secs_f64() / plan.duration_s;
        let link = model.finish().links;
        println!(
            "{{\"name\": \"{name}\", \"seconds_per_simulated_second\": {cost_s:.5}, \"utilisation\": {:.4}, \"cohorts\": {}}}",
            link.departed_p[0] / (plan.rate_pps * link.measured_s[0]),
            model.cohorts(0).len(),
        );
    }
}

fn plan(rate_bps: f64, base_rtt_s: f64, buffer_p: f64) -> Plan {
    let control = Control::Cubic {
        c: 0.4,
        beta: 0.8,
        fast_convergence: false,
        mode: Mode::Auto,
    };
    let flows = (0..10).collect();
    Plan {
        duration_s: 200.0,
        warmup_s: 50.0,
        interval_s: 0.01,
        step_s: None,
        rate_pps: 10.0 * rate_bps / (8.0 * 1480.0),
        buffer_p: 10.0 * buffer_p,
        policy: Policy::Droptail {},
        classes: vec![ClassPlan {
            flows,
            base_rtt_s,
            control,
            opening: None,
        }],
        one_reduction_per_rtt: true,
        recovery: true,
        loss_weight: 1.0,
        loss_rate_exponent: 1.0,
        particles: false,
        first_loss_p: None,
        scale: 1.0,
    }
}
