"""A sweep as a table for a paper."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest

from ackclock.errors import InputError
from ackclock.experiments.sweep.result import Sweep
from ackclock.figures import table_export
from ackclock.scenario.points import Axis

QUEUES = ({"discipline": "fq_codel", "limit": "1000p"}, {"discipline": "pfifo", "limit": "9p"})


@pytest.fixture
def sweep():
    from ackclock.scenario.points import label

    rows = [
        {"run": 2 * point + seed, "point": point, "seed": seed, "network.queue": label(queue), "utilisation": share,
         "queue_delay_mean_s": delay_s}
        for point, queue in enumerate(QUEUES)
        for seed, (share, delay_s) in enumerate([(0.9, 0.010), (0.92, 0.012)] if point else [(0.5, None)] * 2)
    ]  # fmt: skip
    axis = Axis("network.queue", ("network", "queue"), ("sweep", "network.queue"), QUEUES, (0, 1))
    about = {"name": "n", "sweep": {"engine": "packet", "metrics": ["utilisation", "queue_delay_mean_s"]}}
    return Sweep(None, about, (axis,), pl.DataFrame(rows))


def test_latex_is_escaped_and_a_column_has_one_unit(sweep):
    text = table_export.table(sweep, "latex", ["utilisation", "queue_delay_mean"])
    assert r"\begin{tabular}{lrr}" in text
    assert r"queue & Utilisation (\%) & Mean queueing delay (ms) \\" in text
    assert r"fq\_codel & 50.0 $\pm$ 0.0 & -- \\" in text
    assert text.count(r"\\") == 3
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


def test_markdown_has_a_rule_and_no_mark_up_of_names(sweep):
    lines = table_export.table(sweep, "markdown").splitlines()
    assert lines[1] == "| :-- | --: | --: |"
    assert lines[2].startswith(r"| fq\_codel | 50.0")
    assert all(line.count(" | ") == 2 for line in lines)


def test_csv_has_the_numbers_in_si_units_and_nothing_for_none(sweep):
    rows = list(csv.DictReader(io.StringIO(table_export.table(sweep, "csv"))))
    assert rows[0]["network.queue"] == '{ discipline = "fq_codel", limit = "1000p" }'
    assert (rows[0]["n"], rows[0]["queue_delay_mean_s_mean"]) == ("2", "")
    assert float(rows[1]["queue_delay_mean_s_mean"]) == pytest.approx(0.011)
    # Student's t(0.975; 1) = 12.706, times the standard error of two values that are 2 ms apart
    assert float(rows[1]["queue_delay_mean_s_ci95_high"]) == pytest.approx(0.011 + 12.706 * 0.001, rel=1e-4)


def test_a_metric_that_is_not_present_is_reported(sweep):
    with pytest.raises(InputError, match=r'^--metrics: found "jain"; expected'):
        table_export.table(sweep, "latex", ["jain"])
