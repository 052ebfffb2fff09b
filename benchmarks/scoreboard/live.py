"""Verdicts of `ackclock doctor` on captures of live kernels whose causes were imposed.

    python benchmarks/scoreboard/live.py FOLDER [--wrong] [--skip PACKETS]

`FOLDER` has captures and a `truth.json`: by the name of a scenario its `verdict`, what is right as well (`also`,
`also_at` by vantage point), the `files` by vantage point, what was lost (`seen`), and what is `known` of the path:
`rate_mbit` of IP packets, `limiter` and `depth_bytes` of its bucket. Losses count as exact if the captured data was
lost as often as the path dropped it, joins of both ends also if neither capture is said to have missed anything; a rate
is right within 5 %, a depth within 10 %. `--wrong` lists the captures whose verdict is not right. `--skip` leaves out
the first packets of each, and compares verdicts only.
"""

from __future__ import annotations

import argparse
import json
import lzma
import struct
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackclock.capture import match
from ackclock.capture import read as read_capture
from ackclock.capture.diagnosis import diagnose
from ackclock.errors import InputError

#: Ethernet frames are larger than their IP packets by this factor.
FRAME_PER_IP_PACKET = 1514 / 1496

#: Relative errors within which a rate and a depth are right.
RATE, DEPTH = 0.05, 0.1


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wrong", action="store_true", help="list the captures whose verdict is not right")
    parser.add_argument("--skip", type=int, default=0, metavar="PACKETS", help="leave out the first packets")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for name, truth in json.loads((given.folder / "truth.json").read_text("utf-8")).items():
        if truth.get("capture_lost") is None and not given.skip:
            counts[f"join {_join_outcome(given.folder, truth)}"] += 1
        for vantage, file in truth["files"].items():
            analysis = _analysed(given.folder / file, given.skip)
            if analysis is None:
                continue
            verdict = diagnose(analysis).verdict.name.lower()
            outcome = _outcome(verdict, vantage, truth)
            counts[f"verdict {outcome}"] += 1
            if given.wrong and outcome != "right":
                print(f"{name} {vantage}: {verdict}; expected {truth['verdict']}")
            if given.skip:
                continue
            if truth.get("capture_lost") is None:
                counts[f"losses {_losses_outcome(analysis, truth)}"] += 1
            for quantity, is_right in _of_path(analysis["path"], truth.get("known") or {}):
                counts[f"{quantity} {'right' if is_right else 'wrong'}"] += 1
    for what, count in sorted(counts.items()):
        print(f"{what:24} {count:5}")


def _analysed(path: Path, skipped: int) -> Mapping[str, Any] | None:
    """Return the analysis of a capture (pcap, in xz) without its first packets; None if it has no more."""
    if not skipped:
        return read_capture([path]).analysis
    content, place = lzma.decompress(path.read_bytes()), 24
    for _ in range(skipped):
        if place >= len(content):
            return None
        (kept,) = struct.unpack_from("<I", content, place + 8)
        place += 16 + kept
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(content[:24] + content[place:])
        file.flush()
        return read_capture([Path(file.name)]).analysis


def _outcome(verdict: str, vantage: str, truth: Mapping[str, Any]) -> str:
    right = {truth["verdict"], *(truth.get("also") or ()), *((truth.get("also_at") or {}).get(vantage) or ())}
    if verdict in right:
        return "right"
    return "undecided" if verdict == "undecided" else "wrong"


def _losses_outcome(analysis: Mapping[str, Any], truth: Mapping[str, Any]) -> str:
    lost = sum(flow["segments_lost"] for flow in analysis["flows"])
    return "exact" if lost == _dropped(truth) else "other"


def _dropped(truth: Mapping[str, Any]) -> int:
    return int(truth["seen"]["lost_data"] + (truth["seen"].get("lost_of_requests") or 0))


def _join_outcome(folder: Path, truth: Mapping[str, Any]) -> str:
    try:
        joined = match.read(*(folder / truth["files"][end] for end in ("sender", "receiver"))).analysis["joined"]
    except InputError:  # no packet is in both
        return "other"
    missed = joined["missed_by_first"] + joined["missed_by_second"]
    return "exact" if joined["segments_lost_between"] == _dropped(truth) and not missed else "other"


def _of_path(path: Mapping[str, Any], known: Mapping[str, Any]) -> list[tuple[str, bool]]:
    outcomes = []
    if "rate_mbit" in known:
        expected_bps = known["rate_mbit"] * 1e6 * FRAME_PER_IP_PACKET
        rate_bps = path["rate_bps"]
        outcomes.append(("rate", rate_bps is not None and abs(rate_bps / expected_bps - 1) <= RATE))
    if "depth_bytes" in known:
        depth_bytes = path["burst_bytes" if path["limiter"] == "shaper" else "depth_bytes"]
        outcomes.append(("depth", depth_bytes is not None and abs(depth_bytes / known["depth_bytes"] - 1) <= DEPTH))
    if "limiter" in known:
        outcomes.append(("limiter", path["limiter"] == known["limiter"]))
    return outcomes


if __name__ == "__main__":
    main()
