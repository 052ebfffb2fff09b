"""Figures of a host."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ackclock import doctor
from ackclock.cli import plot
from ackclock.dataset import Dataset
from ackclock.doctor.clock_gaps import Stalls
from ackclock.doctor.disk import Disk
from ackclock.errors import InputError
from ackclock.figures import plots

GAP = dict.fromkeys(("waited_s", "stolen_s", "stepped_s", "clock_stopped_s"), 0.0)
GAPS = [
    {"start_s": 1.0 + number, "wall_s": 1e9, "duration_s": 0.01 * (number + 1), "class": kind} | GAP
    for number, kind in enumerate(("scheduler", "scheduler", "stop"))
]
SPEEDS = [
    {"time_s": 0.0, "repeat": repeat, "operation": operation, "target": "file", "cached": cached, "block_bytes": block}
    | {"bytes": 1 << 20, "duration_s": 0.01 * (repeat + 1), "call_max_s": 0.001}
    for repeat in range(3)
    for operation in ("write", "read")
    for cached in (True, False)
    for block in (4096, 1 << 20)
]


@pytest.fixture(scope="module")
def outcome() -> Dataset:
    """Return the result of a host with three gaps and a disk of eight cells."""
    stalls = Stalls(pl.DataFrame(GAPS), 0.0, 1e9, 10.0, 1e9 + 10, counter=True)
    return doctor.examined(stalls=stalls, disk=Disk(Path(), None, pl.DataFrame(SPEEDS))).data


def test_gaps_appear_at_their_times_by_kind(outcome):
    (ax,) = plots.gaps(outcome).axes
    drawn = {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in ax.lines}
    assert drawn == {"scheduler (2)": [(1.0, 10.0), (2.0, 20.0)], "stop (1)": [(3.0, 30.0)]}


def test_speeds_are_distributions_of_the_repeats(outcome):
    write, read = sorted(plots.disk(outcome).axes, key=lambda ax: ax.get_xlabel() != "Write")
    assert read.get_xlabel() == "Read"
    assert len(write.lines) == len(read.lines) == 2 * 2
    speeds, share = write.lines[0].get_data()
    assert speeds[1:] == pytest.approx([(1 << 20) / 0.03, (1 << 20) / 0.02, (1 << 20) / 0.01])
    assert share == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_the_lists_of_kinds_are_one():
    assert tuple(plots.OF_HOSTS) == tuple(plot.OF_HOSTS.split(", "))
    assert not plots.OF_HOSTS.keys() & {*plots.KINDS, *plots.OF_CAPTURES}


def test_another_result_has_none_of_it(outcome):
    for kind, other in (("gaps", outcome.only(["disk"])), ("disk", outcome.only(["clock_gaps"]))):
        with pytest.raises(InputError, match="the result holds no .* to draw; expected what ackclock doctor host"):
            plots.OF_HOSTS[kind](other)
