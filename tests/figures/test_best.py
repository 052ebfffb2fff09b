"""Sentences on sweeps whose best points are known."""

from __future__ import annotations

import polars as pl
import pytest

from ackclock.experiments.sweep.result import Sweep
from ackclock.figures import report, summary_text
from ackclock.scenario.points import Axis

KEY = "network.queue.limit"


def sweep_of(values, metric="utilisation"):
    """A sweep of limits: for each the metric's values over the seeds."""
    rows = [
        {"run": run, "point": point, "seed": seed, KEY: limit, metric: value}
        for point, (limit, of) in enumerate(values.items())
        for run, (seed, value) in enumerate(enumerate(of, 1), 10 * point)
    ]
    path = ("network", "queue", "limit")
    axis = Axis(KEY, path, ("sweep", KEY), tuple(values), tuple(range(len(values))))
    about = {"name": "n", "sweep": {"engine": "packet", "metrics": [metric], "scenario": ""}}
    return Sweep(None, about, (axis,), pl.DataFrame(rows))


def test_the_best_is_named_with_the_next() -> None:
    sweep = sweep_of({"1p": (0.5, 0.52, 0.51), "9p": (0.9, 0.91, 0.92)})
    assert summary_text.sweep_sentences(sweep) == [
        "Highest utilisation: 91.0 ± 2.5 % at limit 9p; next: 51.0 ± 2.5 % at limit 1p."
    ]
    precision = summary_text.precision(sweep)
    assert precision.startswith("Values are means over 3 seeds")
    assert "wide" not in precision


def test_two_seeds_are_reported_to_be_few_and_what_overlaps_is_left_open() -> None:
    sweep = sweep_of({"1p": (0.5, 0.7), "9p": (0.6, 0.9)})
    assert summary_text.sweep_sentences(sweep)[0].endswith("at limit 1p, not clearly worse (the intervals overlap).")
    wide = "With two seeds an interval reaches 12.7 standard errors to each side, which is wide"  # t(0.975; 1)
    assert wide in summary_text.precision(sweep)


def test_less_than_one_per_cent_is_no_difference() -> None:
    (first,) = summary_text.sweep_sentences(sweep_of({"1p": (0.9, 0.9, 0.9), "9p": (0.905, 0.905, 0.905)}))
    assert first.startswith("Utilisation: no difference; all 2 points are within 1 % of 90.5")
    (first,) = summary_text.sweep_sentences(
        sweep_of({"1p": (2e-3,) * 3, "5p": (1.99e-3,) * 3, "9p": (9e-3,) * 3}, "queue_delay_mean_s")
    )
    assert first.startswith("Lowest mean queueing delay: 1.99")
    assert "at limit 5p and within 1 % at 1 other point; next: 9.00" in first


def test_one_run_promises_no_interval() -> None:
    sweep = sweep_of({"1p": (0.5,), "9p": (0.9,)})
    assert summary_text.sweep_sentences(sweep) == ["Highest utilisation: 90.0 % at limit 9p; next: 50.0 % at limit 1p."]
    assert summary_text.precision(sweep).startswith("Each point is one run, so there are no intervals")
    page = report.render_sweeps([sweep])
    assert "intervals overlap" not in page
    assert "over the seeds" not in page
    assert page.index("Highest utilisation") < page.index("<nav")


@pytest.mark.parametrize("values", [{"1p": (0.5, 0.6)}, {"1p": (None,), "9p": (None,)}], ids=["one point", "no values"])
def test_without_two_values_nothing_is_reported(values: dict[str, tuple[float | None, ...]]) -> None:
    assert summary_text.sweep_sentences(sweep_of(values)) == []
