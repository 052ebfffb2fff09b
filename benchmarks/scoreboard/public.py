"""Analyse every capture of folders whose truth is unknown: which verdicts are given, and which figures cannot be.

    python benchmarks/scoreboard/public.py FOLDER… [--verdict receiver]

Made for collections that others keep for their own tests (nDPI, suricata-verify, zeek, tcpdump): no file may end in
anything but an analysis or an error of one line, and no figure of an analysis may be negative or infinite. `--verdict`
lists the captures with it and their first findings, for a person to check.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ackclock as ac
from ackclock.capture import diagnosis
from ackclock.errors import AckclockError

#: Keys of figures that may be negative: differences of clocks.
SIGNED = ("offset", "skew")


def figures(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON value with the keys that lead to them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from figures(inner, f"{key}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from figures(inner, key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield key, value


def impossible(analysis: Any) -> list[str]:
    """Return the figures of an analysis that no capture can have."""
    return [
        f"{key} = {value}"
        for key, value in figures(analysis)
        if not math.isfinite(value) or (value < 0 and not any(part in key for part in SIGNED))
    ]


def main() -> int:
    """Print the counts of verdicts and errors; return 1 if a figure is impossible."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--verdict", help="list the captures with it")
    options = parser.parse_args()
    verdicts: Counter[str] = Counter()
    faults: list[str] = []
    for path in sorted(path for folder in options.folders for path in folder.rglob("*") if path.is_file()):
        try:
            analysis = ac.capture(path, segments=True).analysis
        except AckclockError:
            verdicts["(not a capture of IP)"] += 1
            continue
        verdict = diagnosis.diagnose(analysis)
        verdicts[verdict.verdict.name.lower()] += 1
        faults += [f"{path}: {fault}" for fault in impossible(analysis)]
        if verdict.verdict.name.lower() == options.verdict:
            print(path.name, *(finding.sentence for finding in verdict.findings[:2]), sep="\n    ")
    for name, count in verdicts.most_common():
        print(f"{name:24} {count:6,}")
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
