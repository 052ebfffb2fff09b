"""Shards: every point in exactly one, about as many in each, and joined they are the whole sweep."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ackclock as ac
from ackclock.dataset import manifests
from ackclock.experiments.sweep import designs, folder
from ackclock.experiments.sweep.result import merge, read
from ackclock.experiments.sweep.spec import Runs

SWEPT = """
duration = "1s"
repeats = 2
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "reno" }]
[sweep]
"network.rtt" = ["10ms", "20ms"]
"network.queue.limit" = ["0.5bdp", "1bdp"]
"""


@given(points=st.integers(1, 5000), data=st.data())
def test_each_point_is_in_one_shard_and_each_shard_has_its_share(points, data):
    count = data.draw(st.integers(1, min(points, 50)))
    sizes = Counter(designs.shard_of_points(points, count).tolist())
    assert sizes.keys() == {*range(count)}
    assert max(sizes.values()) - min(sizes.values()) <= 1


@pytest.mark.parametrize("values", [2, 4, 10, 20])
def test_a_shard_has_its_share_of_each_value_of_a_key(values):
    """The last key's values change fastest: with as many shards as values, each K-th point would have one of them."""
    of = designs.shard_of_points(1000 * values, 20)
    for shard in range(20):
        numbers = [number % values for number in range(1000 * values) if of[number] == shard]
        assert max(Counter(numbers).values()) - min(Counter(numbers).values()) <= 0.1 * len(numbers) / values
        assert {*numbers} == {*range(values)}


def test_runs_keep_their_numbers_in_a_shard():
    every = Runs([(1, 2), (3,), (4, 5, 6)])
    of = designs.shard_of_points(3, 2)
    parts = [every.of_points(np.flatnonzero(of == shard)) for shard in (0, 1)]
    assert sorted((run.number, run.point, run.seed) for part in parts for run in part) == [
        (0, 0, 1), (1, 0, 2), (2, 1, 3), (3, 2, 4), (4, 2, 5), (5, 2, 6),
    ]  # fmt: skip
    assert not {run.point for run in parts[0]} & {run.point for run in parts[1]}


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "a/b", "1/3 ", "-1/3", "1/1000000", "01/3"])
def test_an_invalid_shard_is_rejected(text):
    with pytest.raises(ac.InputError, match=r"shard: found .*; expected K/N with K from 1 to N"):
        designs.parse_shard(text)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The whole sweep, and its two shards."""
    place = tmp_path_factory.mktemp("shards")
    (place / "swept.toml").write_text(SWEPT)

    def sweep(name, **more):
        ac.sweep(place / "swept.toml", "fluid", out=place / name, metrics=["utilisation", "jain"], jobs=1, **more)

    sweep("whole")
    sweep("one", shard="1/2")
    sweep("two", shard="2/2")
    return place


def test_shards_are_joined_to_the_bytes_of_one_run(made, tmp_path):
    merged = merge([made / "two", made / "one"], tmp_path / "merged")
    assert (tmp_path / "merged/points.parquet").read_bytes() == (made / "whole/points.parquet").read_bytes()
    assert merged.table.height == 8
    keys = ["run", "flow"]
    whole = ac.sweep(made / "swept.toml", "fluid", out=made / "whole", metrics=["utilisation", "jain"])
    assert merged.scan("flows").sort(keys).collect().equals(whole.scan("flows").sort(keys).collect())
    assert not any(path.name.startswith(".ackclock") for path in tmp_path.rglob("*"))
    assert set(merged.warnings) == {each for part in ("one", "two") for each in read(made / part).warnings} != set()
    again = ac.sweep(made / "swept.toml", "fluid", out=tmp_path / "merged", metrics=["utilisation", "jain"])
    assert again.table.equals(whole.table)
    merge([made / "one", made / "two"], tmp_path / "merged")  # in the place of itself


def test_an_incomplete_set_of_shards_is_rejected(made, tmp_path):
    out = tmp_path / "out"
    refused = {
        r"merge-shards: found no shard 2/2; expected all 2": [made / "one"],
        r"one: found shard 1/2, which .*one is too; expected it once": [made / "one", made / "one"],
        r"whole: found a whole sweep; expected one run with --shard": [made / "one", made / "whole"],
        r"merge-shards: found no folder; expected those of all shards": [],
        r"none: no such result folder|none: found nothing": [made / "none"],
    }
    for message, folders in refused.items():
        with pytest.raises(ac.InputError, match=message):
            merge(folders, out)
    assert not out.exists()


def test_shards_of_different_sweeps_are_rejected(made, tmp_path):
    (tmp_path / "other.toml").write_text(SWEPT.replace('"1s"', '"2s"'))
    ac.sweep(tmp_path / "other.toml", "fluid", out=tmp_path / "o", metrics=["utilisation", "jain"], jobs=1, shard="2/2")
    with pytest.raises(ac.InputError, match=r"o: found a shard of a sweep that differs in its scenario; expected that"):
        merge([made / "one", tmp_path / "o"], tmp_path / "out")


def test_damaged_and_unfinished_shards_are_rejected(made, tmp_path):
    shutil.copytree(made / "two", tmp_path / "two")
    (tmp_path / "two/links.parquet/part-0000.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ac.InputError, match=r"links.parquet/part-0000.parquet: damaged: .*; expected a sound shard"):
        merge([made / "one", tmp_path / "two"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    found = folder.read_manifest(made / "two")
    shutil.copytree(made / "two", tmp_path / "open")
    files = {name: known for name, known in found.files.items() if name != "points.parquet"}
    (tmp_path / "open/manifest.json").write_bytes(manifests.content(found.about, files))
    with pytest.raises(ac.InputError, match=r"open: found shard 2/2 not finished"):
        merge([made / "one", tmp_path / "open"], tmp_path / "out")


def test_another_sweep_in_the_folder_is_not_changed(made, tmp_path):
    shutil.copytree(made / "two", tmp_path / "out")
    with pytest.raises(
        ac.InputError, match=r"out: found an earlier sweep, which differs in: shard; expected another folder"
    ):
        merge([made / "one", made / "two"], tmp_path / "out")
    assert pl.read_parquet(tmp_path / "out/points.parquet").height == 4


def test_more_shards_than_points_are_rejected(made):
    with pytest.raises(ac.InputError, match=r"shard: found 5/5 of a sweep of 4 points; expected no more shards"):
        ac.sweep(made / "swept.toml", "fluid", shard="5/5")
