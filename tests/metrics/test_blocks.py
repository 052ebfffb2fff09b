"""Tables that are read in blocks give what they give when read whole, and always the same bytes."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import weakref
from pathlib import PosixPath

import numpy as np
import polars as pl
import pytest
import synthetic
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.dataset.lazy_frame import Columns
from ackclock.engines import simulator
from ackclock.engines.engine import RunOptions
from ackclock.engines.packet import PacketEngine
from ackclock.metrics import rows

SCENARIO = f"""
duration = "16s"
warmup = "3s"
{dumbbell("10Mbit", "40ms", "30p")}
[[flows]]
count = 3
congestion = "cubic"
start = {{ every = "300ms" }}
[[flows]]
size = "3MB"
start = "7s"
[[traffic]]
kind = "poisson"
rate = "5/s"
size = {{ distribution = "exponential", mean = "30KB" }}
[record]
interval = "20ms"
"""


@pytest.fixture(scope="module")
def simulated() -> Dataset:
    return ac.run(ac.loads(SCENARIO).plan(), seeds=[1, 2])


def close(result: object, expected: object) -> bool:
    if isinstance(result, list) and isinstance(expected, list):
        return len(result) == len(expected) and all(map(close, result, expected))
    if isinstance(result, float) and isinstance(expected, float):
        return math.isclose(result, expected, rel_tol=1e-12)
    return result == expected


def assert_same(data: Dataset, small: Dataset, monkeypatch: pytest.MonkeyPatch, **part: object) -> None:
    # Metrics are taken once of each dataset, so neither may have been looked at before.
    data, small = Dataset.concat([data]), Dataset.concat([small])
    complete = metrics.table(data, **part)["runs"]
    monkeypatch.setattr(rows, "BLOCK_ROWS", 101)
    for before, after in zip(complete, metrics.table(small, **part)["runs"], strict=True):
        for name, value in before["metrics"].items():
            assert close(after["metrics"][name], value), name


@pytest.mark.parametrize("part", [{}, {"between": (5.0, 12.0)}])
def test_blocks_of_a_simulation(simulated, part, monkeypatch):
    assert_same(simulated, simulated, monkeypatch, **part)


def test_blocks_of_several_parts_on_disk(simulated, monkeypatch, tmp_path):
    simulated.write(tmp_path / "result")
    assert_same(simulated, Dataset.read(tmp_path / "result"), monkeypatch)


def test_blocks_of_parts_on_disk_and_in_memory(monkeypatch):
    monkeypatch.setattr(simulator, "ROWS_PER_TAKING", 1)
    plan = ac.loads(SCENARIO).plan()
    spilt = PacketEngine().run(plan, 1, RunOptions(spool_bytes=60_000))
    assert {type(part.source) for part in spilt.parts["flow_samples"]} == {PosixPath, Columns}
    assert_same(PacketEngine().run(plan, 1), spilt, monkeypatch)


def test_samples_that_are_not_in_the_order_of_time(monkeypatch):
    data = synthetic.transfers(sampled=True)
    assert not data.flow_samples["time_s"].is_sorted()
    assert_same(data, data, monkeypatch)


def test_a_flow_with_its_next_sample_blocks_away(monkeypatch):
    """Linear between 1 s and 9 s, though another flow's samples fill many blocks in between."""
    times_s = np.concatenate([[1.0], np.linspace(1.01, 8.99, 200), [9.0]])
    sparse = np.isin(times_s, [1.0, 9.0])
    samples = {
        "time_s": times_s,
        "flow": np.where(sparse, 0, 1).astype(np.uint32),
        "delivered_bytes": np.where(sparse, times_s * 1e6, 0).astype(np.uint64),
    }
    flows = synthetic.flows(2, start_s=[0.0, 1.0])
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), {"flows": flows, "flow_samples": samples})
    monkeypatch.setattr(rows, "BLOCK_ROWS", 10)
    part = metrics.table(data, between=(2.0, 10.0))["runs"][0]["metrics"]
    assert part["goodput_flow_bps"] == pytest.approx([7e6, 0.0])


def test_an_instant_is_never_divided(simulated, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 10)
    view = next(metrics.runs(simulated))
    blocks = [block["time_s"] for block in view.rows("flow_samples").blocks("flow")]
    assert len(blocks) > 100 and sum(block.size for block in blocks) == view.flow_samples.height
    assert all(before[-1] < after[0] for before, after in itertools.pairwise(blocks))


def test_a_column_that_is_not_requested_for_is_not_read(simulated, monkeypatch, tmp_path):
    simulated.write(tmp_path / "result")
    monkeypatch.setattr(rows, "BLOCK_ROWS", 10)
    view = next(metrics.runs(Dataset.read(tmp_path / "result")))
    block = next(view.rows("flow_samples").blocks("cwnd"))
    assert set(block.frame.columns) == {"time_s", "cwnd"}


def test_rows_that_are_not_chosen_are_not_kept():
    """A long table of which few rows are taken has at most two blocks in memory."""
    alive: list[int] = []

    class Read:
        height = 10_000

        def read(self, first: int, count: int, _: object = ()) -> pl.DataFrame:
            frame = pl.DataFrame({"time_s": np.arange(first, min(first + count, self.height), dtype=float)})
            weakref.finalize(frame, lambda: alive.append(alive[-1] - 1))
            alive.append((alive[-1] if alive else 0) + 1)
            return frame

    chosen = rows.Choice(("time_s",), lambda block: block["time_s"] % 1000 == 0)
    result = rows.Rows([Read()], chosen, block_rows=100).frame()
    assert result["time_s"].to_list() == [1000.0 * place for place in range(10)]
    assert len(alive) >= 200 and max(alive) <= 2


def test_unsampled_results_have_no_blocks():
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), {"flows": synthetic.flows(2)})
    view = next(metrics.runs(data))
    assert view.rows("flow_samples").mean("cwnd") is None and view.rows("flow_samples").quantile("cwnd", 0.5) is None


DIGEST = """
import sys, json
from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.dataset.lazy_frame import Columns
from ackclock.engines import simulator
from ackclock.engines.engine import RunOptions
from ackclock.engines.packet import PacketEngine
print(json.dumps(metrics.table(Dataset.read(sys.argv[1]))["runs"]))
assert not {"scipy.signal", "scipy.stats", "scipy.optimize"} & sys.modules.keys()
"""


def test_the_same_bytes_from_call_to_call_and_with_any_number_of_threads(simulated, tmp_path):
    """Sums over groups that come in any order differ in their last bits."""
    simulated.write(tmp_path / "result")
    around = {**os.environ, "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", DIGEST, str(tmp_path / "result")]
    alone = subprocess.run(command, capture_output=True, text=True, check=True, env=around).stdout
    data = Dataset.read(tmp_path / "result")
    assert [metrics.table(data)["runs"] for _ in range(10)] == 10 * [json.loads(alone)]


def test_the_frames_are_those_of_the_measured_part(simulated):
    view = next(metrics.runs(simulated, (5.0, 12.0)))
    assert view.measured_samples["time_s"].is_between(5, 12).all() and view.measured_samples.height
    assert isinstance(view.flows, pl.DataFrame) and view.flows["measured_bytes"].null_count() == view.flows.height


def test_metrics_are_taken_one_time_of_a_dataset(monkeypatch):
    data, taken = synthetic.transfers(count=20, seeds=1), []
    monkeypatch.setattr(metrics, "value", lambda view, name: taken.append(name) or 1.0)
    first = metrics.table(data)
    assert len(taken) == len(metrics.METRICS) + 1
    assert metrics.table(data) == first and len(taken) == len(metrics.METRICS) + 1
    metrics.of_run(next(metrics.runs(data)))["jain"] = 2.0
    assert metrics.table(data) == first, "what was given out is the caller's"
    metrics.table(data, between=(6.0, 9.0))
    metrics.table(Dataset.concat([data]))
    assert len(taken) == 3 * (len(metrics.METRICS) + 1)
