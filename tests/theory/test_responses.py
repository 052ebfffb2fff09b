"""Response functions beside published tables and beside each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid

from ackclock import theory
from ackclock.errors import InputError

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
