"""TCP and congestion controls as the kernel is told of them, and what it cannot be told."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import stack
from ackclock.engines.linux.kernel import bundled_modules

TEXT = f"""
duration = "10s"
{dumbbell("10Mbit", "40ms", "20p")}
[[flows]]
"""


#: The kernel's own modules with their defaults: Linux 6.1, net/ipv4.
MODULES = {
    "cubic": {
        "tcp_cubic.bic_scale": 41, "tcp_cubic.beta": 717, "tcp_cubic.fast_convergence": 1,
        "tcp_cubic.tcp_friendliness": 1, "tcp_cubic.hystart": 1,
    },
    "bic": {
        "tcp_bic.beta": 819, "tcp_bic.max_increment": 16, "tcp_bic.low_window": 14, "tcp_bic.smooth_part": 20,
        "tcp_bic.fast_convergence": 1,
    },
    "htcp": {"tcp_htcp.use_bandwidth_switch": 1, "tcp_htcp.use_rtt_scaling": 1},
    "vegas": {"tcp_vegas.alpha": 2, "tcp_vegas.beta": 4, "tcp_vegas.gamma": 1},
    "illinois": {"tcp_illinois.win_thresh": 15, "tcp_illinois.theta": 5},
    "dctcp": {"tcp_dctcp.dctcp_shift_g": 4, "tcp_dctcp.dctcp_alpha_on_init": 1024},
    "hybla": {"tcp_hybla.rtt0": 25},
    "nv": {"tcp_nv.nv_pad": 10, "tcp_nv.nv_reset_period": 5, "tcp_nv.nv_min_cwnd": 2},
    "cdg": {"tcp_cdg.window": 8, "tcp_cdg.backoff_beta": 724, "tcp_cdg.backoff_factor": 42, "tcp_cdg.use_ineff": 5},
}  # fmt: skip


def plan(flows='congestion = "cubic"', tcp=""):
    return ac.loads(f"{TEXT}{flows}\n[tcp]\n{tcp}\n").plan()


def reasons_of(planned):
    return [str(reason) for reason in engines.unsupported(engines.engine("linux"), planned)]


def bare(what: str) -> str:
    """Behind “has no”, without its article."""
    return what.removeprefix("a ").removeprefix("an ")


@pytest.mark.parametrize("kind", stack.CONTROLS)
def test_every_control_runs_with_its_cards_defaults_and_these_are_the_kernels(kind):
    planned = plan(f'congestion = "{kind}"')
    assert reasons_of(planned) == []
    assert stack.modules(planned) == {}
    assert stack.socket(planned.groups[0])["congestion"] == kind


def test_the_kernel_has_these_controls_and_these_are_ours():
    assert stack.CONTROLS == (
        "accucubic", "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lincubic", "lp",
        "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah",
    )  # fmt: skip
    assert bundled_modules.NAMES == ("accucubic", "lincubic")


@pytest.mark.parametrize("kind", stack.CONTROLS)
def test_knobs_are_the_kernels(kind):
    assert stack.knobs(plan(f'congestion = "{kind}"')) == MODULES.get(kind, {})


def test_parameters_of_modules_are_in_their_units():
    """C = 0.4 is 41/1024 × 10 in the kernel, beta = 0.8 is 819/1024."""
    given = 'congestion = { kind = "cubic", c = 0.8, beta = 0.8, slow_start = "standard", fast_convergence = false }'
    assert stack.modules(plan(given)) == {
        "tcp_cubic.beta": 819,
        "tcp_cubic.bic_scale": 82,
        "tcp_cubic.fast_convergence": 0,
        "tcp_cubic.hystart": 0,
    }


def test_our_own_controls_are_loaded_with_the_plans_parameters(tmp_path):
    shared = "c_micro=400000 beta_1024=717 fast_convergence=1 reno_friendly=1 reno_catch_up=0 delayed_ack_correction=1"
    (line,) = stack.loaded(plan('congestion = { kind = "accucubic", beta = 0.7 }'), tmp_path)
    assert line == f"insmod {tmp_path}/accucubic.ko {shared}"
    (line,) = stack.loaded(plan('congestion = { kind = "lincubic", beta = 0.7 }'), tmp_path)
    assert line == f"insmod {tmp_path}/lincubic.ko {shared} tick_us=4000 distance=2"


def test_settings_of_hosts():
    tcp = (
        'sack = false\ntimestamps = false\nloss_detection = "duplicate_acks"\ntail_loss_probe = false\necn = "classic"'
    )
    settings = stack.settings(plan(tcp=tcp + '\ndelayed_ack = false\nmin_rto = "50ms"\ninitial_window = 3').groups[0])
    sysctls, metrics = dict(settings.sysctls), dict(settings.metrics)
    assert [sysctls[f"tcp_{name}"] for name in ("sack", "timestamps", "recovery", "early_retrans", "ecn")] == list(
        "00001"
    )
    assert metrics == {"advmss": "1460", "initcwnd": "3", "rto_min": "50ms", "quickack": "1"}


def test_a_reordering_window_that_does_not_adapt_and_frto_are_sysctls():
    def sysctls_of(tcp: str) -> tuple[str, str]:
        sysctls = dict(stack.settings(plan(tcp=tcp).groups[0]).sysctls)
        return sysctls["tcp_recovery"], sysctls["tcp_frto"]

    assert sysctls_of("") == ("1", "2")
    assert sysctls_of("adaptive_reordering = false\nfrto = false") == ("3", "0")


def test_the_advertised_mss_has_the_timestamps_in_it():
    """RFC 6691: 500 bytes of payload and 12 of timestamps."""
    assert dict(stack.settings(plan(tcp='mss = "500B"').groups[0]).metrics)["advmss"] == "512"
    without = plan(tcp='mss = "500B"\ntimestamps = false')
    assert dict(stack.settings(without.groups[0]).metrics)["advmss"] == "500"


def test_a_receive_window_is_a_clamp_and_a_buffer_that_does_not_grow():
    options = stack.socket(plan(tcp='receive_window = "64KiB"').groups[0])
    assert (options["window_clamp_bytes"], options["receive_buffer_bytes"]) == (65536, 131072)
    assert stack.socket(plan().groups[0])["window_clamp_bytes"] is None


def test_a_send_buffer_is_half_of_what_the_kernel_makes_of_it():
    assert stack.socket(plan(tcp='send_buffer = "64KiB"').groups[0])["send_buffer_bytes"] == 32768
    assert stack.socket(plan().groups[0])["send_buffer_bytes"] is None


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("delayed_ack = true", "delayed ACKs without quick ACKs"),
        ('delayed_ack_timeout = "100ms"', "a delayed-ACK timer of 100 ms"),
        ('initial_rto = "3s"', "an initial timeout of 3000 ms"),
        ('min_rto = "1500us"', "a minimum timeout of 1.5 ms"),
        ('max_rto = "60s"', "a maximum timeout of 60000 ms"),
        ("rto_floor_on_variance = false", "a minimum timeout that applies to the whole timeout"),
        ('rto_slop = "200ms"', "a timeout with 200 ms added"),
        ('timer_tick = "0ms"', "a clock with ticks of 0 ms"),
        ('receive_window = "2000B"', "a receive window below 2304 B"),
        ('send_buffer = "4000B"', "a send buffer below 4608 B"),
        ("limited_transmit = false", "fast retransmit without limited transmit"),
        ("undo_spurious = false", "reductions that are not undone"),
        ('recovery_reduction = "immediate"', "a window that comes down at once"),
        ("pacing = true", 'pacing with "cubic"'),
        ("window_validation = false", "a window that grows unused"),
        (
            'processing = { distribution = "exponential", mean = "10us" }',
            "hosts whose time for a packet is exponential",
        ),
        ('ecn = "accurate"', 'ECN feedback "accurate"'),
        ('ecn = "dctcp"', 'ECN feedback "dctcp" with "cubic"'),
    ],
)
def test_settings_that_the_kernel_does_not_expose_are_rejected(given, what):
    (reason,) = reasons_of(plan(tcp=given))
    assert reason.startswith(f'Unsupported: engine "linux" has no {bare(what)}; available in "packet"')


@pytest.mark.parametrize(
    ("kind", "given", "what"),
    [
        ("cubic", "reno_catch_up = true", "reno_catch_up = true"),
        ("cubic", "whole_segments = false", "whole_segments = false"),
        ("cubic", 'tick = "0ms"', "a tick of 0 ms"),
        ("htcp", "adaptive_backoff = false", "adaptive_backoff = false"),
        ("bic", "ack_ratio = false", "ack_ratio = false"),
        ("illinois", "beta_max = 0.4", "beta_max = 0.4"),
        ("scalable", "b = 0.25", "b = 0.25"),
        ("bbr", 'min_rtt_window = "5s"', "min_rtt_window_s = 5.0"),
        ("dctcp", "clamp_alpha_on_loss = true", "clamp_alpha_on_loss = true"),
        ("lincubic", 'slow_start = "hystart"', "slow_start = hystart"),
        ("cubic", 'slow_start = "search"', "slow_start = search"),
        ("reno", 'slow_start = "hystart++"', "slow_start = hystart++"),
    ],
)
def test_parameters_fixed_in_a_cca_are_rejected(kind, given, what):
    assert reasons_of(plan(f'congestion = {{ kind = "{kind}", {given} }}'))[0].startswith(
        f'Unsupported: engine "linux" has no congestion control "{kind}" with {what}; available in "packet"'
    )


def test_a_module_has_one_set_of_parameters():
    two = 'congestion = "cubic"\n[[flows]]\ncongestion = { kind = "cubic", beta = 0.8 }'
    (reason,) = reasons_of(plan(two))
    assert reason.startswith(
        'Unsupported: engine "linux" has no congestion control "cubic" with two sets of parameters'
    )


@pytest.mark.parametrize("name", ["rfc", "freebsd", "windows", "ns2"])
def test_other_stacks_are_rejected_by_their_difference(name):
    reasons = reasons_of(plan(tcp=f'stack = "{name}"'))
    assert any("has no window that comes down at once" in reason for reason in reasons)
    assert all('; available in "packet"' in reason for reason in reasons)


@pytest.mark.parametrize("kind", ["veno", "yeah", "lp", "nv", "cdg"])
def test_kernel_only_settings_are_rejected_by_other_engines_with_their_line(kind):
    (reason,) = engines.unsupported(engines.engine("packet"), plan(f'congestion = "{kind}"'))
    assert (reason.what, reason.available_in) == (f'congestion control "{kind}"', ("linux",))


def test_the_new_parameters_are_in_the_kernels_units():
    """50 ms are 50; a half is 512/1024."""
    assert stack.modules(plan('congestion = { kind = "hybla", rtt0 = "50ms" }')) == {"tcp_hybla.rtt0": 50}
    assert stack.modules(plan('congestion = { kind = "cdg", backoff_beta = 0.5 }')) == {"tcp_cdg.backoff_beta": 512}
