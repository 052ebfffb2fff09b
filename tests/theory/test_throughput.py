"""Formulas of throughput and windows compared with simulations of what they describe, published tables, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid

from ackclock import theory
from ackclock.errors import InputError
from ackclock.theory import throughput

MSS = 1460


def segments_per_rtt(bps: float, rtt_s: float) -> float:
    return bps * rtt_s / 8 / MSS


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("p", [1e-3, 1e-4, 1e-5])
def test_mathis_is_the_mean_of_a_sawtooth_that_sends_a_loss_s_worth_of_packets(p, b):
    """The window goes from W/2 to W by 1/b a round; W is such that 1/p packets are sent meanwhile."""
    rounds = np.arange(1, 10_000)
    sent = rounds * (rounds / b) + (rounds**2 / b) / 2  # from W/2 = rounds/b on
    result = int(np.argmin(np.abs(sent - 1 / p)))
    mean = sent[result] / rounds[result]
    assert theory.mathis_window(p, b=b) == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize(
    ("b", "constant", "printed"),
    [
        (1, throughput.PERIODIC, 1.22),
        (2, throughput.PERIODIC, 0.87),
        (1, throughput.RANDOM, 1.31),
        (2, throughput.RANDOM, 0.93),
    ],
)
def test_mathis_has_the_printed_constants(b, constant, printed):
    assert theory.mathis_window(1.0, b=b, constant=constant) == pytest.approx(printed, abs=0.005)


def test_mathis_is_a_window_each_round_trip():
    # 122 packets of 1460 bytes a tenth of a second
    assert theory.mathis(1e-4, 0.1, MSS) == pytest.approx(122.47 * MSS * 8 / 0.1, rel=1e-3)


@pytest.mark.parametrize("b", [1, 2])
def test_both_of_padhyes_formulas_approach_mathis_at_rare_losses(b):
    for formula in (theory.pftk, theory.pftk_simple):
        assert formula(1e-8, 0.1, MSS, rto_s=0.3, b=b) == pytest.approx(theory.mathis(1e-8, 0.1, MSS, b=b), rel=2e-3)


@pytest.mark.parametrize("p", [1e-3, 1e-2, 5e-2])
def test_the_simple_form_is_near_the_full_one(p):
    assert theory.pftk_simple(p, 0.1, MSS, rto_s=0.4) == pytest.approx(theory.pftk(p, 0.1, MSS, rto_s=0.4), rel=0.2)


def padhye(p: float, rtt_s: float, rto_s: float, b: int, maximum: float, rng: np.random.Generator) -> float:
    """Packets a second of the process that the paper describes, played: rounds, losses to a round's end, timeouts."""
    window, packets, seconds = 5.0, 0, 0.0
    for _ in range(10_000):
        until = int(rng.geometric(p))  # the first packet that is lost
        sent, rounds = 0, 0
        window = min(window, maximum)
        start = window
        while sent + int(window) < until:
            sent += max(int(window), 1)
            rounds += 1
            window = min(start + rounds / b, maximum)
        before = until - 1 - sent  # acknowledged packets of the round of the loss
        packets += sent + int(window) + before
        seconds += (rounds + 2) * rtt_s
        window = max(window / 2, 1.0)  # after timeouts too, as the formula has it
        if min(int(rng.geometric(p)) - 1, before) >= 3:  # of those that they clock out, in the round's order
            continue
        timeouts = int(rng.geometric(1 - p))
        packets += timeouts
        seconds += rto_s * sum(min(2**k, 64) for k in range(timeouts))
    return packets / seconds


@pytest.mark.parametrize(
    ("p", "b", "maximum"),
    [(1e-3, 1, np.inf), (1e-2, 1, np.inf), (1e-2, 2, np.inf), (1e-3, 1, 20), (5e-4, 2, 40)],
)
def test_padhye_s_full_formula_is_the_mean_of_its_process(p, b, maximum):
    played = padhye(p, 0.1, 0.5, b, maximum, np.random.default_rng(1))
    expected = theory.pftk(p, 0.1, MSS, rto_s=0.5, b=b, max_window=maximum) / 8 / MSS
    assert expected == pytest.approx(played, rel=0.06)


def test_a_receive_window_bounds_the_rate():
    assert segments_per_rtt(theory.pftk(1e-9, 0.1, MSS, max_window=10), 0.1) == pytest.approx(10, rel=1e-3)
    assert segments_per_rtt(theory.pftk_simple(1e-9, 0.1, MSS, max_window=10), 0.1) == pytest.approx(10)


def test_without_a_timeout_s_length_it_is_four_round_trips():
    for formula in (theory.pftk, theory.pftk_simple):
        assert formula(0.05, 0.1, MSS) == formula(0.05, 0.1, MSS, rto_s=0.4)


def test_timeouts_make_the_rate_fall_faster_than_mathis_s():
    p = np.array([1e-3, 1e-2, 1e-1])
    share = theory.pftk(p, 0.1, MSS, rto_s=1.0) / theory.mathis(p, 0.1, MSS)
    assert share.shape == (3,)
    assert (np.diff(share) < 0).all()
    assert share[-1] < 0.5


@pytest.mark.parametrize("p", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("window", [3, 4, 8, 30])
def test_the_share_of_timeouts_is_that_of_losses_with_fewer_than_three_duplicates(p, window):
    """k of the round's packets arrive before the loss; the k that they clock out arrive until one of them is lost."""
    share = 0.0
    for k in range(window):
        here = (1 - p) ** k * p / (1 - (1 - p) ** window)
        share += here * (1 if k < 3 else sum((1 - p) ** m * p for m in range(3)))
    assert throughput.timeout_share(p, float(window)) == pytest.approx(min(share, 1.0))


def test_where_a_timeout_lasts_for_ever_it_is_all_that_counts():
    """Half of the packets are lost: a loss event is a row of timeouts, 2 of them in the mean, and little else."""
    p, timeout_s = 0.5, 1e6
    rows_s = timeout_s * sum(0.5**k * sum(min(2**j, 64) for j in range(k)) for k in range(1, 400))
    packets = 1 + throughput.unlimited_window(p) + 2
    assert theory.pftk(p, 0.1, MSS, rto_s=timeout_s) / 8 / MSS == pytest.approx(packets / rows_s, rel=1e-4)


@pytest.mark.parametrize("p", [0.05, 0.3])
def test_the_backoff_is_the_mean_of_a_row_of_doubled_timeouts(p):
    rows = sum(p ** (k - 1) * (1 - p) * sum(min(2**j, 64) for j in range(k)) for k in range(1, 400))
    assert throughput.backoff(p) / (1 - p) == pytest.approx(rows, rel=1e-6)


def test_a_steady_10_gbps_requires_one_loss_in_five_thousand_million_packets():
    # Guillier 2008: 5e9; RFC 3649 section 1: 5,000,000,000 with its constant of 1.2
    assert theory.loss_free_packets(10e9, 0.1, 1500) == pytest.approx(4.63e9, rel=1e-3)
    assert theory.loss_free_packets(10e9, 0.1, 1500, constant=1.2) == pytest.approx(4.82e9, rel=1e-3)


@pytest.mark.parametrize("rate_bps", [1e6, 1e9])
def test_the_loss_free_stretch_is_mathis_the_other_way_round(rate_bps):
    p = 1 / theory.loss_free_packets(rate_bps, 0.05, 1500)
    assert theory.mathis(p, 0.05, 1500) == pytest.approx(rate_bps)


#: Guillier 2008: c and d.
PUBLISHED = {
    "reno": (1.22, 0.5),
    "bic": (15.5, 0.5),
    "highspeed": (0.12, 0.835),
    "htcp": (0.12, 0.835),
    "scalable": (0.08, 1.0),
}


@pytest.mark.parametrize("variant", PUBLISHED)
def test_they_are_the_published_ones(variant):
    c, d = PUBLISHED[variant]
    assert theory.response_window(variant, 1.0) == c
    assert theory.response_window(variant, 1e-4) == pytest.approx(c * 10 ** (4 * d))
    assert theory.response_function(variant, 1e-4, 0.1, 1250) == pytest.approx(c * 10 ** (4 * d) * 1e5)
    assert theory.loss_at(variant, theory.response_window(variant, 3e-5)) == pytest.approx(3e-5)


def test_another_variant_is_rejected():
    with pytest.raises(InputError, match="reno, bic, .*cubic_window"):
        theory.response_window("cubic", 1e-3)


@pytest.mark.parametrize(("exponent", "window"), [(2, 12), (3, 38), (4, 263), (5, 1795), (6, 12279), (7, 83981)])
def test_highspeed_has_rfc_3649_s_table(exponent, window):
    # RFC 3649, table 5 (average congestion windows); Reno's below 38 packets
    assert theory.highspeed_window(10.0**-exponent) == pytest.approx(window, rel=0.02)


def aimd(grow: float, kept: float, p: float) -> float:
    """The mean over rounds of a window that grows by `grow` a round and loses each 1/p-th packet."""
    top, sent, windows = 1.0, 0.0, []
    for _ in range(400):
        window, sent, epoch = top * kept, 0.0, []
        while sent < 1 / p:
            epoch.append(window)
            sent += window
            window += grow
        top, windows = window, epoch
    return float(np.mean(windows))


def test_bic_s_constant_is_that_of_its_additive_part():
    """15.5 is √(32 (2 − β)/(2 β)) with the paper's largest step of 32 packets and β = 1/8 given up."""
    assert theory.response_window("bic", 1.0) == pytest.approx((32 * (2 - 1 / 8) / (2 / 8)) ** 0.5, rel=1e-3)
    assert theory.response_window("bic", 1e-6) == pytest.approx(aimd(32, 7 / 8, 1e-6), rel=0.02)


def test_reno_s_constant_is_that_of_its_sawtooth():
    assert theory.response_window("reno", 1e-5) == pytest.approx(aimd(1, 0.5, 1e-5), rel=0.02)


def test_scalable_s_constant_is_its_increase_over_its_decrease():
    """An epoch from 7/8 W to W in which a hundredth of the packets is added sends 12.5 W."""
    assert theory.response_window("scalable", 1e-4) == pytest.approx(1e4 / 12.5)


def cubic_mean(p: float, rtt_s: float, c: float, beta: float) -> float:
    """The curve from beta·W to W, integrated over the rounds of an epoch that ends on the flat with 1/p packets."""
    low, high = 1.0, 1e7
    for _ in range(200):
        top = (low * high) ** 0.5
        k = np.cbrt(top * (1 - beta) / c)
        times = np.linspace(0, k, 20_001)
        windows = c * (times - k) ** 3 + top
        sent = float(trapezoid(windows, times)) / rtt_s
        low, high = (top, high) if sent < 1 / p else (low, top)
    return sent * rtt_s / float(k)


@pytest.mark.parametrize(
    ("p", "rtt_s", "c", "beta"), [(1e-5, 0.1, 0.4, 0.7), (1e-6, 0.01, 0.4, 0.8), (1e-5, 0.1, 4, 0.7)]
)
def test_cubic_is_the_mean_of_its_curve(p, rtt_s, c, beta):
    result = theory.cubic_window(p, rtt_s, c=c, beta=beta, friendly=False)
    assert result == pytest.approx(cubic_mean(p, rtt_s, c, beta), rel=1e-4)


def test_cubic_is_not_below_reno_unless_it_shall_be():
    assert theory.cubic_window(1e-2, 0.01) == pytest.approx(12)
    assert theory.cubic_window(1e-2, 0.01, friendly=False) < 6
    assert theory.cubic_window(np.array([1e-2, 1e-8]), 0.1).shape == (2,)
