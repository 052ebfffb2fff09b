"""Accuracy of detecting packets that the capture missed, and its effect on the network's own losses.

    python benchmarks/scoreboard/missing.py CASES… [--jobs N]

Of the captures at each point a share of the packets is taken away, data and acknowledgements alike, each by chance.
Data that are told as lost by the capture stand beside those that were taken away, and losses of the network beside
those that are told of the whole capture; the first row has what is told of captures that lost nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import alter

from ackclock import _core
from ackclock.reproductions import pcap

#: The vantage points of captures.
POINTS = ("senders", "link-near-far", "receivers")

#: Shares of the packets that are taken away.
SHARES = (0.0, 0.001, 0.01, 0.05, 0.1, 0.2)

#: Columns of the flows: data that are there, that the capture lost, that the network lost behind the point and before.
COUNTS = ("data_segments", "not_captured", "lost", "lost_upstream")

#: Count that stands for an unknown one.
UNKNOWN = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts over the flows of captures: data segments, those not captured and those that the network lost."""

    captured: int
    missing: int
    lost: int


def main() -> None:
    """Prints a line for each point and share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    given = parser.parse_args()
    jobs = list(product(POINTS, SHARES, given.cases))
    with ProcessPoolExecutor(given.jobs) as pool:
        told = list(pool.map(of_case, *zip(*jobs, strict=True), chunksize=8))
    print("point          share   data taken   told  ratio   network's losses  moved by")
    for point in POINTS:
        whole = None
        for share in SHARES:
            found = of_all([one for job, one in zip(jobs, told, strict=True) if job[:2] == (point, share)])
            whole = whole or found
            taken = whole.captured - found.captured
            ratio = f"{found.missing / taken:.3f}" if taken else "    –"
            moved = f"{found.lost / whole.lost - 1:+.1%}" if whole.lost else "–"
            print(f"{point:13} {share:6.1%} {taken:12} {found.missing:6}  {ratio} {found.lost:18} {moved:>9}")


def of_all(found: Sequence[Counts]) -> Counts:
    """All of them together."""
    return Counts(*(sum(getattr(one, name) for one in found) for name in Counts.__slots__))


def of_case(point: str, share: float, case: Path) -> Counts:
    """Return the counts for a case's capture at this vantage point without this share of the packets."""
    (capture,) = (case / "captures").glob(f"*{point}.pcap")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "capture.pcap"
        pcap.write(path, alter.lossy(pcap.read(capture), share, 1))
        found = _core.Capture([path], events=False)
        while found.advance(10**9):
            pass
        flows = found.drain()["flows"]
    seen, missing, *lost = (sum(filter(is_finite, map(int, flows[name]))) for name in COUNTS)
    return Counts(seen, missing, sum(lost))


def is_finite(count: int) -> bool:
    """Return True for a count, False for that of a flow of which the capture has no data."""
    return count < UNKNOWN


if __name__ == "__main__":
    main()
