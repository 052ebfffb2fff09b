"""Makes the captures of the scoreboard: runs its cases and keeps their results.

    python benchmarks/scoreboard/generate.py OUT [--cases N] [--first N] [--since N] [--jobs N]
    python benchmarks/scoreboard/generate.py OUT [...] --scheduler ADDRESS | --cluster KIND:N

`--since` adds so many cases of each control that the engine got after the cases were drawn.

Each case becomes a result of its own, `OUT/case-0000` and so on: the captures at the senders, the receivers and in the
middle, the truth (the table `transmissions`), and what was drawn as `case.json`. Cases that are there are kept. What
else captures go through, snaplens, offloads and losses of the capture itself, `alter.py` makes of them afterwards.

With `--scheduler` or `--cluster`, as of `ackclock sweep`, the workers of a Dask cluster run them. What they make comes
back over the connection and is written here, so they need no shared folder; the lines are in the order of the ends.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
from cases import Case, case, numbers

import ackclock as ac
from ackclock.cli import run_jobs as work
from ackclock.dataset import folders
from ackclock.experiments import cluster, runner
from ackclock.experiments.cluster import Target
from ackclock.plan import Plan

#: The file with the drawn parameters, next to a case's result.
DRAWN = "case.json"

#: The engine that runs the cases.
ENGINE = "packet"


def main() -> None:
    """Runs what is asked for; prints a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=300, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("--since", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, metavar="N")
    parser.add_argument("--scheduler", metavar="ADDRESS")
    parser.add_argument("--cluster", metavar="KIND:N")
    given = parser.parse_args()
    try:
        work.check_number("--jobs", given.jobs, 1, 10_000)
        at = work.cluster_target(given.scheduler, given.cluster, given.jobs)
        given.out.mkdir(parents=True, exist_ok=True)
        wanted = [case(number) for number in numbers(given.first, given.cases, given.since)]
        left = [one for one in wanted if not (given.out / one.name / DRAWN).exists()]
        for line in _make_remote(left, given.out, at) if at else _here(left, given.out, given.jobs or 1):
            print(line, flush=True)
    except ac.AckclockError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_status)


def _here(left: Sequence[Case], out: Path, jobs: int) -> Iterator[str]:
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(make, left, [out] * len(left))


def make(one: Case, out: Path) -> str:
    """Runs a case and writes its result; says in a line what came of it."""
    with tempfile.TemporaryDirectory(dir=out, prefix=".making-") as place:
        captures = Path(place) / "captures"
        data = runner.run(_plan(one), ENGINE, captures=captures, jobs=1)
        data.write(out / one.name, captures)
    return _kept(one, data, out)


def _make_remote(left: Sequence[Case], out: Path, at: Target) -> Iterator[str]:
    """Make the cases on workers; only a few more than they soon need are under way, to bound the memory."""
    more, waiting = iter(left), dict[Future[Any], Case]()
    with cluster.opened(at, [ENGINE]) as workers:
        while True:
            while len(waiting) < 2 * workers.slots and (one := next(more, None)):
                waiting[workers.submit(runner.write_remote, ENGINE, _plan(one))] = one
            if not waiting:
                return
            done, _ = wait(waiting, timeout=runner.WAKE_S, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda ended: ended.exception() is not None):  # what is done is kept
                yield _store(waiting.pop(future), future.result(), out)


def _store(one: Case, files: Mapping[str, bytes], out: Path) -> str:
    """Writes what has come of a worker."""
    with folders.replace_folder(out / one.name) as new:
        for name, content in files.items():
            (new / name).parent.mkdir(exist_ok=True)
            (new / name).write_bytes(content)
    return _kept(one, ac.Dataset.read(out / one.name), out)


def _plan(one: Case) -> Plan:
    return ac.loads(one.text, name=f"{one.name}.toml").plan()


def _kept(one: Case, data: ac.Dataset, out: Path) -> str:
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
