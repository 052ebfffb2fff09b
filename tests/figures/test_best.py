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


def test_the_best_is_named_and_how_sure_it_is():
    first, last = summary_text.sweep_sentences(sweep_of({"1p": (0.5, 0.52, 0.51), "9p": (0.9, 0.91, 0.92)}))
    assert first == (
        "The link was used best at limit 9p (utilisation 91.0 ± 2.5 %); the next is 51.0 ± 2.5 % at limit 1p, "
        "and their 95 % intervals do not overlap."
    )
    assert "less than 1 % are called no different" in last
    assert "wide" not in last


def test_two_seeds_are_reported_to_be_few_and_what_overlaps_is_left_open():
    first, last = summary_text.sweep_sentences(sweep_of({"1p": (0.5, 0.7), "9p": (0.6, 0.9)}))
    assert first.endswith("but their 95 % intervals overlap, so which is better is not clear.")
    assert "With two seeds an interval reaches 12.7 standard errors to each side, which is wide" in last  # t(0.975; 1)


def test_less_than_one_per_cent_is_no_difference():
    (first, _) = summary_text.sweep_sentences(sweep_of({"1p": (0.9, 0.9, 0.9), "9p": (0.905, 0.905, 0.905)}))
    assert first.startswith("No difference in utilisation: all 2 points are within 1 % of the best (90.5")
    (first, _) = summary_text.sweep_sentences(
        sweep_of({"1p": (2e-3,) * 3, "5p": (1.99e-3,) * 3, "9p": (9e-3,) * 3}, "queue_delay_mean_s")
    )
    assert first.startswith("The queue was shortest at limit 5p; limit 1p (mean queueing delay 1.99")
    assert "those within 1 % of it are called equal); the next is 9.00" in first


def test_one_run_promises_no_interval():
    sweep = sweep_of({"1p": (0.5,), "9p": (0.9,)})
    first, last = summary_text.sweep_sentences(sweep)
    assert first.endswith("and how sure the difference is one run cannot say.")
    assert last.startswith("Each point is one run, so there are no intervals")
    page = report.render_sweeps([sweep])
    assert "intervals overlap" not in page
    assert "over the seeds" not in page
    assert page.index("The link was used best") < page.index("<nav")


@pytest.mark.parametrize("values", [{"1p": (0.5, 0.6)}, {"1p": (None,), "9p": (None,)}], ids=["one point", "no values"])
def test_without_two_values_nothing_is_reported(values):
    assert summary_text.sweep_sentences(sweep_of(values)) == []
