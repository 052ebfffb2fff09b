"""Period, peaks and troughs of curves whose period is known."""

import numpy as np
import pytest
import synthetic

from ackclock import metrics

STEP_S = 0.01
TIMES_S = np.arange(1, 10_001) * STEP_S


def measured(cwnd: np.ndarray, warmup_s: float = 0.0) -> dict[str, float | None]:
    """Period, peaks and troughs of windows (times × flows)."""
    made = synthetic.plan(rate_bps=1e7, duration_s=100, warmup_s=warmup_s)
    rows = {"flows": synthetic.flows(cwnd.shape[1]), "flow_samples": synthetic.samples(TIMES_S, cwnd=cwnd)}
    view = next(metrics.runs(synthetic.dataset(made, rows)))
    return {name: metrics.value(view, name) for name in ("cwnd_period_s", "cwnd_peak", "cwnd_trough")}


def sawtooth(period_s: float, low: float = 50, high: float = 100) -> np.ndarray:
    """A straight rise and a cut, again and again."""
    return (low + (high - low) * (TIMES_S % period_s) / period_s)[:, None]


def cubic(period_s: float, high: float = 100, kept: float = 0.7) -> np.ndarray:
    """A plateau in the middle of each cycle, at nine tenths of the peak."""
    after = 2 * (TIMES_S % period_s) / period_s - 1
    middle, half = (1 + kept) / 2 * high, (1 - kept) / 2 * high
    return (middle + half * after**3)[:, None]


def with_slow_start(curve: np.ndarray) -> np.ndarray:
    """The same, with an overshoot to four times its height in the first half second."""
    return np.where(TIMES_S[:, None] < 0.5, 4 * curve.max(), curve)


@pytest.mark.parametrize("period_s", [0.7, 3.3, 17.0])
@pytest.mark.parametrize("shape", [sawtooth, cubic])
def test_a_given_period_with_its_peaks_and_troughs(shape, period_s: float) -> None:  # type: ignore[no-untyped-def]
    curve = shape(period_s)
    result = measured(curve)
    assert result["cwnd_period_s"] == pytest.approx(period_s, rel=0.002, abs=STEP_S)
    assert result["cwnd_peak"] == pytest.approx(curve.max(), rel=0.015)
    assert result["cwnd_trough"] == pytest.approx(curve.min(), rel=0.015)


@pytest.mark.parametrize("shape", [sawtooth, cubic])
def test_the_noise_of_many_flows_adds_no_peaks(shape) -> None:  # type: ignore[no-untyped-def]
    """Each of 100 windows is up to a fifth off, another part of it each 0.1 s."""
    curve = shape(5.0)
    off = np.repeat(np.random.default_rng(1).uniform(-0.2, 0.2, (TIMES_S.size // 10, 100)), 10, axis=0)
    result = measured(curve * (1 + off))
    assert result["cwnd_period_s"] == pytest.approx(5.0, rel=0.02)
    assert result["cwnd_peak"] == pytest.approx(curve.max(), rel=0.04)
    assert result["cwnd_trough"] == pytest.approx(curve.min(), rel=0.04)


def test_complete_segments_are_no_swings() -> None:
    result = measured(np.floor(sawtooth(4.0, 8, 16)))
    assert result == pytest.approx({"cwnd_period_s": 4.0, "cwnd_peak": 15.0, "cwnd_trough": 8.0}, abs=0.02)


def test_teeth_of_two_heights_count_each() -> None:
    """Windows after a fast convergence: 100 to 80, then 92 to 74."""
    high = np.where((TIMES_S // 2.0) % 2 == 0, 100.0, 92.0)
    result = measured((high * (0.8 + 0.2 * (TIMES_S % 2.0) / 2.0))[:, None])
    assert result["cwnd_period_s"] == pytest.approx(2.0, rel=0.01)
    assert result["cwnd_peak"] == pytest.approx(96.0, rel=0.005)


def test_a_slow_start_does_not_hide_the_teeth_after_it() -> None:
    assert measured(with_slow_start(sawtooth(4.0)))["cwnd_period_s"] == pytest.approx(4.0, rel=0.01)


def test_the_warm_up_is_not_considered_at() -> None:
    curve = np.where(TIMES_S[:, None] < 50, sawtooth(10.0, 200, 400), sawtooth(5.0))
    assert measured(curve, 50.0) == pytest.approx({"cwnd_period_s": 5.0, "cwnd_peak": 100, "cwnd_trough": 50}, rel=0.01)


def test_it_is_the_mean_window_over_the_flows() -> None:
    """Two flows in opposite phases: their mean stands still, but for rounding."""
    one = 100 + 50 * np.sin(2 * np.pi * TIMES_S / 5)
    assert measured(np.column_stack([one, 200 - one]))["cwnd_period_s"] is None
    assert measured(np.column_stack([one, one + 100]))["cwnd_peak"] == pytest.approx(200, rel=0.01)


@pytest.mark.parametrize("curve", [np.full((10_000, 1), 80.0), sawtooth(45.0), 80 + 0.1 * sawtooth(1.0, 0, 1)])
def test_fewer_than_three_peaks_and_flat_curves_have_none(curve: np.ndarray) -> None:
    assert measured(curve) == {"cwnd_period_s": None, "cwnd_peak": None, "cwnd_trough": None}


def test_a_run_without_windows_has_none() -> None:
    rows = {"flows": synthetic.flows(1)}
    view = next(metrics.runs(synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=100), rows)))
    assert metrics.value(view, "cwnd_period_s") is None
