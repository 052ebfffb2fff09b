"""Swept quantities are numbers beside their texts, in results of before too."""

from __future__ import annotations

import csv
from io import StringIO

import polars as pl
import pytest

import ackclock as ac
from ackclock.experiments.sweep import result
from ackclock.figures import table_export
from ackclock.scenario.points import Amounts, amounts

SCENARIO = """\
duration = "1s"
network = { topology = "dumbbell", rate = "1Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "8p" } }
flows = [{ count = 1, congestion = "reno" }]
[sweep]
"network.rate" = ["500kbit", "1Mbit"]
"network.rtt" = ["20ms"]
"network.queue.limit" = ["8p", "1bdp"]
"flows[0].count" = [1, 2]
"flows[0].congestion" = ["reno"]
"""

#: Texts and numbers: 1 kbit is 1000 bit, 1 KiB 1024 bytes.
READ = [
    (["100kbit", "1Gbit"], Amounts((1e5, 1e9), "bit/s")),
    (["20ms", "1min"], Amounts((0.02, 60.0), "s")),
    (["250/s", "1/ms"], Amounts((250.0, 1000.0), "1/s")),
    (["64KB", "1KiB"], Amounts((64_000.0, 1024.0), "B")),
    (["8p"], Amounts((8.0,), "p")),
    (["0.1bdp", "2bdp"], Amounts((0.1, 2.0), "bdp")),
    (["1bdp/sqrt(n)"], Amounts((1.0,), "bdp/sqrt(n)")),
    ([1, 2.5], Amounts((1.0, 2.5), "")),
    (["8p", "1bdp"], None),
    (["20ms", "1Gbit"], None),
    (["reno", "cubic"], None),
    ([True], None),
    ([{"kind": "pareto"}], None),
]


@pytest.mark.parametrize(("values", "expected"), READ)
def test_values_of_one_kind_are_numbers(values, expected):
    assert amounts(values) == expected


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return ac.sweep(SCENARIO, metrics=["utilisation"], out=tmp_path_factory.mktemp("numbers") / "new", jobs=1)


NAMES = ["network.rate", "network.rate_bps", "network.rtt", "network.rtt_s", "network.queue.limit", "flows[0].count",
         "flows[0].congestion"]  # fmt: skip


def test_the_file_has_numbers_and_their_texts(swept):
    assert swept.table.columns == ["run", "point", "seed", *NAMES, "utilisation"]
    assert swept.table["network.rate_bps"].to_list() == [5e5] * 4 + [1e6] * 4
    assert swept.table["network.rtt_s"].unique().to_list() == [0.02]
    assert pl.read_parquet(swept.folder / "points.parquet").equals(swept.table)
    assert swept.points[0]["numbers"] == {"network.rate_bps": 5e5, "network.rtt_s": 0.02}


def test_a_sweep_of_before_has_its_numbers_when_it_is_read(swept, tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(result, "_numeric_columns", lambda axes: {})
        old = ac.sweep(SCENARIO, metrics=["utilisation"], out=tmp_path / "old", jobs=1)
        assert "network.rate_bps" not in old.table.columns
    assert result.read(tmp_path / "old").table.equals(swept.table)


def test_a_part_of_the_points_has_the_numbers_of_its_own(swept):
    some = swept.only({"network.rate": ["1Mbit"]})
    assert some.table["network.rate_bps"].unique().to_list() == [1e6]
    assert {point["numbers"]["network.rate_bps"] for point in some.points} == {1e6}


def test_the_table_as_csv_has_texts_and_numbers(swept):
    heads, first, *_ = csv.reader(StringIO(table_export.table(swept, "csv", ["utilisation"])))
    assert heads[: len(NAMES) + 1] == [*NAMES, "n"]
    assert dict(zip(heads, first, strict=True))["network.rate_bps"] == "500000.0"
