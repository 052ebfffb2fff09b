"""Makes the captures of the scoreboard: runs its cases and keeps their results.

    python benchmarks/scoreboard/generate.py OUT [--cases N] [--first N] [--jobs N]

Each case becomes a result of its own, `OUT/case-0000` and so on: the captures at the senders, the receivers and in the
middle, the truth (the table `transmissions`), and what was drawn as `case.json`. Cases that are there are kept. What
else captures go through, snaplens, offloads and losses of the capture itself, `alter.py` makes of them afterwards.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import polars as pl
from cases import Case, case

import ackclock as ac

#: What was drawn, beside a case's result.
DRAWN = "case.json"


def main() -> None:
    """Runs what is asked for; prints a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=300, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    wanted = [case(number) for number in range(given.first, given.first + given.cases)]
    left = [one for one in wanted if not (given.out / one.name / DRAWN).exists()]
    with ProcessPoolExecutor(given.jobs) as pool:
        for line in pool.map(make, left, [given.out] * len(left)):
            print(line, flush=True)


def make(one: Case, out: Path) -> str:
    """Runs a case and writes its result; says in a line what came of it."""
    with tempfile.TemporaryDirectory(dir=out, prefix=".making-") as place:
        captures = Path(place) / "captures"
        data = ac.run(ac.loads(one.text, name=f"{one.name}.toml").plan(), captures=captures, jobs=1)
        data.write(out / one.name, captures)
    known = {name: value for name, value in asdict(one).items() if name != "text"}
    (out / one.name / DRAWN).write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    return f"{one.name}  {one.control:10}  {'  '.join(_figures(one, data))}"


def _figures(one: Case, data: ac.Dataset) -> Iterator[str]:
    sent = data.transmissions.filter(pl.col("end") == "sender")
    gone = sent.filter(pl.col("fate").is_in(["dropped", "lost"]))
    yield f"{1e3 * one.rtt_s:7.1f} ms"
    yield f"{one.rate_bps / 1e6:6.1f} Mb/s"
    yield f"{sent.height:6} packets"
    yield f"{100 * gone.height / max(1, sent.height):5.2f} % lost"
    yield f"late {100 * one.late:4.2f} %"
    yield one.limit


if __name__ == "__main__":
    main()
