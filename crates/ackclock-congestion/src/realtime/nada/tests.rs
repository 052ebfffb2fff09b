use serde_json::json;

use super::super::contract::{lost, report, source};
use super::super::PacketReport;
use super::*;

/// The defaults of RFC 8698, table 2.
fn parameters() -> Parameters {
    Parameters::deserialize(super::super::contract::defaults("nada")).expect("the RFC's values")
}

/// QBOUND / (rtt + DELTA + DFILT) = 50 / (100 + 100 + 120) = 0.15625; without RTT 50 / 220 = 0.22727.
#[test]
fn accelerated_ramp_up_multiplies_the_received_rate_by_one_plus_gamma() {
    let p = parameters();
    let rate = ramp_up_bps(&p, 0.1, 300e3, 400e3);
    assert!((rate - 462_500.0).abs() < 1e-6, "{rate}");
    assert!((ramp_up_bps(&p, 0.0, 0.0, 220e3) - 270e3).abs() < 1e-6);
    assert!(
        (ramp_up_bps(&p, 0.1, 500e3, 400e3) - 500e3).abs() < 1e-6,
        "it never lowers the rate"
    );
    let fast = Parameters {
        q_bound_s: 10.0,
        ..p
    };
    assert!(
        (ramp_up_bps(&fast, 0.1, 0.0, 100e3) - 150e3).abs() < 1e-6,
        "GAMMA_MAX is 0.5"
    );
}

/// RMAX = 1.5 Mbit/s and r_ref = 1 Mbit/s: the offset is x − 10 ms · 1.5 = x − 15 ms.
#[test]
fn the_gradual_update_by_hand() {
    let p = parameters();
    let step = |signal_s, previous_signal_s| Step {
        delta_s: 0.1,
        signal_s,
        previous_signal_s,
        max_bps: 1.5e6,
    };
    // At the equilibrium x = PRIO · XREF · RMAX / r_ref nothing changes.
    assert!((gradual_bps(&p, &step(0.015, 0.015), 1e6) - 1e6).abs() < 1e-6);
    // 25 ms, constant: 0.5 · (100/500) · (10/500) = 0.002.
    assert!((gradual_bps(&p, &step(0.025, 0.025), 1e6) - 998_000.0).abs() < 1e-6);
    // From 15 to 25 ms: also 0.5 · 2 · (10/500) = 0.02.
    assert!((gradual_bps(&p, &step(0.025, 0.015), 1e6) - 978_000.0).abs() < 1e-6);
    // 5 ms, falling from 10 ms: + 0.002 and + 0.01.
    assert!((gradual_bps(&p, &step(0.005, 0.010), 1e6) - 1_012_000.0).abs() < 1e-6);
}

/// 20 ms + 2 ms (0.02/0.01)² + 10 ms (0.03/0.01)² = 20 + 8 + 90 = 118 ms.
#[test]
fn the_signal_adds_delay_marks_and_losses() {
    let p = parameters();
    assert!((signal_s(&p, 0.020, 0.02, 0.03) - 0.118).abs() < 1e-12);
    assert!((signal_s(&p, 0.020, 0.0, 0.0) - 0.020).abs() < 1e-12);
    // 10 % of losses: 10 ms · 10² = 1 s, which is more than TAU.
    assert!((signal_s(&p, 0.0, 0.0, 0.10) - 0.5).abs() < 1e-12);
}

/// QTH = 50 ms: 150 ms are warped to 50 exp(−0.5 · 2) = 18.394 ms.
#[test]
fn with_losses_long_delays_are_warped_to_short_ones() {
    let p = parameters();
    assert!((warped_s(&p, 0.049) - 0.049).abs() < 1e-12);
    assert!((warped_s(&p, 0.050) - 0.050).abs() < 1e-12);
    assert!((warped_s(&p, 0.150) - 0.018_393_972).abs() < 1e-9);
}

/// Losses after each ten packets: `loss_exp` = 7 · 10, and 10 more in which the warped delay fades (section 4.2).
#[test]
fn a_loss_is_recent_for_seven_average_intervals_and_fades_in_an_eighth() {
    let mut losses = LossIntervals::default();
    assert!(losses.warped_share(7.0).abs() < 1e-12, "no loss so far");
    for number in 1..=20 {
        losses.on_packet(number % 10 == 0);
    }
    for (packets, share) in [(70, 1.0), (5, 0.5), (5, 0.0), (100, 0.0)] {
        for _ in 0..packets {
            losses.on_packet(false);
        }
        assert!(
            (losses.warped_share(7.0) - share).abs() < 1e-12,
            "{packets}"
        );
    }
}

/// RFC 5348 section 5.4: eight intervals with weights 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2 from the newest on, of sum 6.
#[test]
fn the_average_loss_interval_has_the_weights_of_tfrc() {
    let mut losses = LossIntervals::default();
    let mut lose_after = |packets| {
        for number in 1..=packets {
            losses.on_packet(number == packets);
        }
        losses.average()
    };
    assert!((lose_after(60) - 60.0).abs() < 1e-12);
    assert!(
        (lose_after(30) - 45.0).abs() < 1e-12,
        "the newest four count alike"
    );
    for _ in 0..5 {
        lose_after(30);
    }
    // Seven of 30 with 5.8 in all, and the oldest of 60 with 0.2.
    assert!((lose_after(30) - 31.0).abs() < 1e-12);
    assert!(
        (lose_after(30) - 30.0).abs() < 1e-12,
        "the ninth is forgotten"
    );
}

fn controller() -> Nada {
    let parameters = parameters();
    Nada {
        arrivals: Arrivals::new(Time::from_milliseconds(500)),
        parameters,
        source: source(),
        losses: LossIntervals::default(),
        base_delay: Time::NEVER,
        p_loss: 0.0,
        p_mark: 0.0,
        previous_signal_s: 0.0,
        r_ref_bps: 300e3,
        last_update: None,
    }
}

/// Reports each 100 ms of ten packets of 500 bytes, 400 kbit/s, with a delay in ms for each report.
fn feed(nada: &mut Nada, delays_ms: &[u64]) {
    for (round, &delay) in (0..).zip(delays_ms) {
        let packets: Vec<PacketReport> = (0..10)
            .map(|n| {
                let sent = 100 * round + 10 * n;
                report(10 * round + n, sent, sent + delay, 500)
            })
            .collect();
        nada.on_feedback(&Feedback {
            now: Time::from_milliseconds(100 * round + 100 + 2 * delay),
            rtt: Time::from_milliseconds(2 * delay),
            packets: &packets,
        });
    }
}

#[test]
fn an_empty_queue_ramps_up_from_the_received_rate() {
    let mut nada = controller();
    feed(&mut nada, &[50; 6]);
    // 50/(100 + 100 + 120) = 0.15625 above 400 kbit/s.
    assert!(
        (nada.r_ref_bps - 462_500.0).abs() < 1.0,
        "{}",
        nada.r_ref_bps
    );
}

#[test]
fn a_queue_ends_the_ramp_up_and_lowers_the_rate() {
    let delays = [50, 50, 50, 50, 50, 50, 250, 350, 450];
    let [before, after] = [6, 9].map(|rounds| {
        let mut nada = controller();
        feed(&mut nada, &delays[..rounds]);
        nada.target_rate(0).bits_per_second()
    });
    // The first report of 200 ms above the smallest delay alone takes 0.5 · 2 · 200/500 = 40 %.
    assert!(after < 0.6 * before, "{before} to {after}");
}

/// 5 % at most: BETA · 8 · 10,000 bytes · 30/s would be 240 kbit/s of 300.
#[test]
fn the_shaping_buffer_separates_the_encoder_from_the_pacer() {
    let nada = controller();
    assert!((nada.target_rate(10_000).bits_per_second() - 285e3).abs() < 1e-6);
    assert!((nada.pacing_rate(10_000).bits_per_second() - 315e3).abs() < 1e-6);
    // 0.1 · 8 · 100 · 30 = 2.4 kbit/s; section 5.2.2 has 48 for 2000 bytes, which 5 % of 960 kbit/s or more allow.
    assert!((nada.target_rate(100).bits_per_second() - 297_600.0).abs() < 1e-6);
    assert!((nada.pacing_rate(0).bits_per_second() - 300e3).abs() < 1e-6);
}

#[test]
fn losses_raise_the_signal_and_lower_the_rate() {
    let mut nada = controller();
    let packets: Vec<PacketReport> = (0..20)
        .map(|n| {
            if n % 4 == 3 {
                lost(n, 10 * n)
            } else {
                report(n, 10 * n, 10 * n + 50, 500)
            }
        })
        .collect();
    nada.on_feedback(&Feedback {
        now: Time::from_milliseconds(300),
        rtt: Time::from_milliseconds(100),
        packets: &packets,
    });
    // p_loss = 0.1 · 0.25: 10 ms · 2.5² = 62.5 ms; the equilibrium at 300 kbit/s is 50 ms.
    // 300 · (1 − 0.5 · 0.2 · 12.5/500 − 0.5 · 2 · 62.5/500) = 261.75 kbit/s.
    assert!((nada.previous_signal_s - 0.0625).abs() < 1e-12);
    assert!(
        (nada.r_ref_bps - 261_750.0).abs() < 1e-6,
        "{}",
        nada.r_ref_bps
    );
}

#[test]
fn parameters_that_divide_by_zero_are_rejected() {
    let mut values = super::super::contract::defaults("nada");
    values["tau_s"] = json!(0.0);
    assert!(make(&values, source()).is_err());
}
