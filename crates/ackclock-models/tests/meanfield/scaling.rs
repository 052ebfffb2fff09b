//! The scaling property of Belhareth 2014, section 3.3.2: it holds in TCP mode and not in cubic mode.

use ackclock_models::meanfield::law::{Control, Mode};
use ackclock_models::meanfield::plan::Plan;
use ackclock_models::meanfield::MeanField;

use crate::setups::{assert_near, cubic, ftth, inter_dc, plan, run, Measures};

/// FTTH with α times the rate and the buffer.
fn ftth_times(alpha: f64) -> Measures {
    let long = Plan {
        duration_s: 40.0 + 30.0 * alpha,
        ..plan(alpha * 100e6, 0.02, alpha * 50.0, cubic(Mode::Tcp), 100)
    };
    run(&long)
}

/// The inter-DC network with 1/α of the rate and the buffer.
fn inter_dc_over(alpha: f64) -> Measures {
    let take_integer = inter_dc(50);
    run(&Plan {
        rate_pps: take_integer.rate_pps / alpha,
        buffer_p: take_integer.buffer_p / alpha,
        ..take_integer
    })
}

#[test]
fn windows_scale_in_tcp_mode_and_loss_as_the_inverse_square() {
    let (half, eight) = (ftth_times(0.5), ftth_times(8.0));
    assert_near("window at 0.5", half.mean_p / 0.5, 211.4, 0.01);
    assert_near("window at 8", eight.mean_p / 8.0, 210.3, 0.01);
    let loss = |found: &Measures| found.link.dropped_p[0] / found.link.arrived_p[0];
    assert_near("loss", loss(&half) / loss(&eight), 256.0, 0.05);
}

#[test]
fn in_cubic_mode_scaling_down_hides_synchronisation() {
    let (take_integer, small) = (inter_dc_over(1.0), inter_dc_over(20.0));
    assert_near("share hit", take_integer.hit, 0.86, 0.04);
    assert_near("share hit at a twentieth", small.hit, 0.51, 0.06);
    // The other program gives .146 and .230, over a shorter time: here the CoV goes on rising for hundreds of seconds.
    let cov = |found: &Measures| found.sd_p / found.mean_p;
    assert!(
        cov(&small) > 1.5 * cov(&take_integer),
        "{} {}",
        cov(&small),
        cov(&take_integer)
    );
}

#[test]
fn a_scaled_run_reports_the_original_network() {
    let take_integer = Plan {
        duration_s: 200.0,
        ..ftth(cubic(Mode::Tcp), 10)
    };
    let (direct, scaled) = (
        run(&take_integer),
        run(&Plan {
            scale: 4.0,
            ..take_integer
        }),
    );
    assert_near("mean window", scaled.mean_p, direct.mean_p, 0.01);
    assert_near("mean queue", scaled.queue_p, direct.queue_p, 0.05);
    // The delay of a round trip does not scale, and losses are no longer rare.
    assert_near("period", scaled.period_s, direct.period_s, 0.12);
    assert_near(
        "packets",
        scaled.link.departed_p[0],
        direct.link.departed_p[0],
        0.001,
    );
    assert_near("share hit", scaled.hit, direct.hit, 0.15);
}

#[test]
fn scaling_requires_a_common_mode() {
    let scaled = |control| {
        MeanField::new(
            &Plan {
                scale: 2.0,
                ..ftth(control, 2)
            },
            1,
        )
    };
    assert!(scaled(cubic(Mode::Auto)).is_err());
    assert!(scaled(cubic(Mode::Cubic)).is_ok());
    assert!(scaled(Control::Reno {}).is_ok());
}

#[test]
fn time_scales_as_the_curve_does() {
    let scaling = |control| {
        let plan = Plan {
            scale: 8.0,
            ..ftth(control, 2)
        };
        plan.scaling().expect("one mode").time
    };
    assert_eq!(scaling(cubic(Mode::Tcp)), 8.0);
    assert_eq!(scaling(cubic(Mode::Cubic)), 2.0);
}
