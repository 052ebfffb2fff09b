"""A capture of a run whose own tables know what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackclock
from ackclock import capture
from ackclock.capture import Captured
from ackclock.dataset import Dataset

SCENARIO = """\
name = "two through a bottleneck"
duration = "4s"
repeats = 1
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = ["20ms", "40ms"]
queue = { discipline = "pfifo", limit = "20p" }
[[flows]]
count = 2
congestion = "cubic"
[record]
pcap = true
"""


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Path]:
    """A run and its capture."""
    place = tmp_path_factory.mktemp("seen") / "captures"
    data = ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place)
    (pcap,) = place.iterdir()
    return data, pcap


@pytest.fixture(scope="package")
def result(run: tuple[Dataset, Path]) -> Captured:
    """Return the analysis of its capture, with segments."""
    return capture.read([run[1]], segments=True)
