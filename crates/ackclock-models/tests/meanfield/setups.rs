//! The networks of Belhareth 2014, section 3.4.1, and what is read off a run.

use ackclock_models::meanfield::codel::Codel;
use ackclock_models::meanfield::field::Resolution;
use ackclock_models::meanfield::law::{Control, Mode};
use ackclock_models::meanfield::pie::Pie;
use ackclock_models::meanfield::plan::{ClassPlan, Opening, Plan};
use ackclock_models::meanfield::policy::Policy;
use ackclock_models::meanfield::record::Links;
use ackclock_models::meanfield::MeanField;

/// Bits of the packets of the thesis.
const PACKET_BITS: f64 = 8.0 * 1480.0;

/// CUBIC of 2008: a fifth is given up.
pub fn cubic(mode: Mode) -> Control {
    Control::Cubic {
        c: 0.4,
        beta: 0.8,
        fast_convergence: false,
        mode,
    }
}

/// One class of flows; rate and buffer are a flow's share.
pub fn plan(rate_bps: f64, base_rtt_s: f64, buffer_p: f64, control: Control, flows: u32) -> Plan {
    let count = f64::from(flows);
    Plan {
        duration_s: 70.0,
        warmup_s: 30.0,
        interval_s: 0.01,
        step_s: None,
        rate_pps: count * rate_bps / PACKET_BITS,
        buffer_p: count * buffer_p,
        policy: Policy::Droptail {},
        classes: vec![ClassPlan {
            flows: (0..flows).collect(),
            base_rtt_s,
            control,
            opening: None,
        }],
        one_reduction_per_rtt: true,
        recovery: false,
        loss_weight: 1.0,
        loss_rate_exponent: 1.0,
        particles: false,
        first_loss_p: None,
        scale: 1.0,
    }
}

/// CoDel and PIE with the parameters of their algorithm specs.
pub const CODEL: Codel = Codel {
    target_s: 0.005,
    interval_s: 0.1,
    newton: true,
};
pub const PIE: Pie = Pie {
    target_s: 0.015,
    tupdate_s: 0.015,
    alpha: 2.0,
    beta: 20.0,
    max_burst_s: 0.15,
    derandomize: true,
};

/// The same, where flows begin within a second with ten packets.
pub fn slow_start(mut plan: Plan) -> Plan {
    let opening = Opening {
        starts_s: (0..10).map(|tenth| f64::from(tenth) / 10.0).collect(),
        window_p: 10.0,
        leave_delay_s: None,
    };
    for class in &mut plan.classes {
        class.opening = Some(opening.clone());
    }
    plan
}

pub fn ftth(control: Control, flows: u32) -> Plan {
    plan(100e6, 0.02, 50.0, control, flows)
}

pub fn intra_dc(control: Control, flows: u32) -> Plan {
    Plan {
        interval_s: 0.001,
        duration_s: 4.0,
        warmup_s: 2.0,
        ..plan(1e9, 0.001, 50.0, control, flows)
    }
}

pub fn inter_dc(flows: u32) -> Plan {
    Plan {
        duration_s: 400.0,
        warmup_s: 150.0,
        ..plan(1e9, 0.05, 500.0, cubic(Mode::Auto), flows)
    }
}

/// Measures of the measured part of a run.
#[derive(Debug)]
pub struct Measures {
    pub link: Links,
    pub mean_p: f64,
    pub lowest_p: f64,
    pub highest_p: f64,
    /// Standard deviation of the flows' windows at one time, averaged over time.
    pub sd_p: f64,
    pub utilisation: f64,
    pub queue_p: f64,
    pub empty: f64,
    pub period_s: f64,
    /// Share of the flows that reduce in an episode.
    pub hit: f64,
    /// Fall of the mean window in an episode, as a share of its peak.
    pub fall: f64,
}

pub fn run(plan: &Plan) -> Measures {
    run_with(plan, 1, Resolution::default())
}

/// Windows and backlogs are those of a flow.
pub fn run_with(plan: &Plan, seed: u64, resolution: Resolution) -> Measures {
    let mut model = MeanField::with_resolution(plan, seed, resolution).expect("a sound plan");
    model.advance(plan.duration_s);
    let link = model.finish().links;
    let rows = model.drain();
    let flows = plan.flow_count();
    let samples = rows.flow_samples;
    let late: Vec<&[f64]> = samples
        .cwnd
        .chunks(flows)
        .zip(samples.time_s.iter().step_by(flows))
        .filter(|(_, time_s)| **time_s >= plan.warmup_s)
        .map(|(windows, _)| windows)
        .collect();
    let means: Vec<f64> = late.iter().map(|windows| mean(windows)).collect();
    let deviations: Vec<f64> = late.iter().map(|windows| deviation(windows)).collect();
    let mean_p = mean(&means);
    let episodes: Vec<(f64, f64)> = rows
        .episodes
        .start_s
        .iter()
        .copied()
        .zip(rows.episodes.share.iter().copied())
        .filter(|(start_s, _)| *start_s >= plan.warmup_s)
        .collect();
    let (first, last) = (
        episodes.first().map_or(0.0, |e| e.0),
        episodes.last().map_or(0.0, |e| e.0),
    );
    let lowest_p = means.iter().copied().fold(f64::INFINITY, f64::min);
    let highest_p = means.iter().copied().fold(0.0, f64::max);
    Measures {
        mean_p,
        lowest_p,
        highest_p,
        sd_p: mean(&deviations),
        utilisation: link.departed_p[0] / (plan.rate_pps * link.measured_s[0]),
        queue_p: link.backlog_mean_p[0] / flows as f64,
        empty: link.empty_s[0] / link.measured_s[0],
        period_s: (last - first) / (episodes.len() as f64 - 1.0),
        hit: mean(&episodes.iter().map(|e| e.1).collect::<Vec<_>>()),
        fall: (highest_p - lowest_p) / highest_p,
        link,
    }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    mean(
        &values
            .iter()
            .map(|value| (value - centre).powi(2))
            .collect::<Vec<_>>(),
    )
    .sqrt()
}

/// The same plan as the thesis prints it: flows reduce for each loss, and in TCP mode.
pub fn as_printed(plan: Plan) -> Plan {
    Plan {
        one_reduction_per_rtt: false,
        ..plan
    }
}

/// True if a value is within a share of the expected one.
#[track_caller]
pub fn assert_near(what: &str, found: f64, expected: f64, share: f64) {
    let off = (found - expected).abs() / expected.abs();
    assert!(
        off <= share,
        "{what}: found {found}, expected {expected} within {share}"
    );
}
