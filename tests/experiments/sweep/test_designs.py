"""Fractional factorial designs: as small as the published ones, of the resolution that they state, balanced."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import ackclock as ac
from ackclock.experiments.sweep import designs
from ackclock.experiments.sweep.run import prepare

#: Factors, resolution and points: NIST/SEMATECH e-Handbook of Statistical Methods, section 5.3.3.4.7, "Summary
#: tables of useful fractional factorial designs" (of each resolution the smallest).
PUBLISHED = [
    (3, 3, 4), (4, 4, 8), (5, 5, 16), (5, 3, 8), (6, 4, 16), (6, 3, 8), (7, 4, 16), (7, 3, 8), (8, 5, 64), (8, 4, 16),
    (9, 4, 32), (9, 3, 16), (10, 5, 128), (10, 4, 32), (10, 3, 16), (11, 5, 128), (11, 4, 32), (11, 3, 16), (15, 3, 16),
]  # fmt: skip


@pytest.mark.parametrize(("factors", "resolution", "points"), PUBLISHED)
def test_a_design_is_as_small_as_the_published_one_and_has_its_resolution(factors, resolution, points):
    signs = designs.matrix(factors, resolution)
    assert signs.shape == (points, factors)
    assert len({tuple(row) for row in signs}) == points
    for count in range(1, resolution):  # no product of fewer factors than the resolution is constant
        for chosen in combinations(range(factors), count):
            assert signs[:, chosen].prod(axis=1).sum() == 0
    assert any(
        abs(signs[:, chosen].prod(axis=1).sum()) == points
        for chosen in combinations(range(factors), resolution)
        if len(chosen) == resolution
    )


def test_the_half_fraction_of_four_factors_is_the_textbook_one():
    """D = ABC: every point's product is 1 (Box, Hunter and Hunter, section 6.2)."""
    assert np.unique(designs.matrix(4, 4).prod(axis=1)).tolist() == [1]


def scenario(**swept) -> str:
    lists = "\n".join(f'"{key}" = {values}' for key, values in swept.items())
    return f"""
duration = "1s"
network = {{ topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = {{ discipline = "pfifo", limit = "1bdp" }} }}
flows = [{{ count = 2, congestion = "reno" }}]
[sweep]
{lists}
"""


KEYS = {
    "network.rtt": ["10ms", "20ms"],
    "network.rate": ["4Mbit", "5Mbit"],
    "network.queue.limit": ["1bdp", "2bdp"],
    "flows[0].count": [1, 2],
}


def test_a_sweep_runs_the_points_of_its_design():
    job = prepare(ac.loads(scenario(**KEYS)), design="fractional:4")
    assert len(job.points) == 8
    levels = [[axis.values.index(job.loaded.point(number).values[axis.key]) for axis in job.loaded.sweep.axes]
              for number in job.points]  # fmt: skip
    assert all(sum(row) % 2 == 0 for row in levels)
    assert job.spec.identity()["design"] == "fractional:4"
    assert prepare(ac.loads(scenario(**KEYS)), design="full").spec.identity()["design"] is None
    both = [prepare(ac.loads(scenario(**KEYS)), design="fractional:4", shard=f"{k}/2").points for k in (1, 2)]
    assert sorted(both[0] + both[1]) == job.points


@pytest.mark.parametrize(
    ("keys", "design", "message"),
    [
        (KEYS, "fractional:6", r'--design: found "fractional:6"; expected "full", or'),
        (KEYS, "half", r'--design: found "half"; expected "full"'),
        (KEYS, "fractional:5", r"--design: found 4 keys of two values; expected 5 or more for resolution 5"),
        (KEYS | {"network.rtt": ["1ms", "2ms", "3ms"]}, "fractional:3", r"--design: found network.rtt with 3 values;"),
    ],
)
def test_an_invalid_design_is_rejected(keys, design, message):
    with pytest.raises(ac.InputError, match=message):
        prepare(ac.loads(scenario(**keys)), design=design)
