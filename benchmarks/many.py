"""Cost of a sweep of very many runs in the process that writes its folder, independent of the workers.

    python benchmarks/many.py 1000000

Makes up so many runs with three metrics each, and times what that process does with them: lists them, writes them in
parts, finds out what is there after an interruption, and puts the table together. CPU seconds; memory is the peak of
the process so far.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from ackclock.dataset.manifests import RUNS
from ackclock.experiments.sweep.folder import Parts, scan
from ackclock.experiments.sweep.spec import Runs, SweepSpec

SEEDS = tuple(range(1, 11))
METRICS = ("utilisation", "jain", "queue_delay_mean_s")

#: The number of parts that a sweep of a day has.
PARTS = 700


def main() -> None:
    """A line for each stage."""
    count = int(sys.argv[1])
    order = SweepSpec("name = 'x'", "x.toml", "packet", SEEDS, METRICS, samples=False)
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sweep"
        began_s = time.process_time()
        runs = Runs([SEEDS] * (count // len(SEEDS)))
        mixed = runs.mixed()
        began_s = _report("listed and mixed", began_s)
        with Parts(folder, order) as parts:
            for part in np.array_split(np.arange(count), PARTS):
                _add(parts, mixed, part, random)
        began_s = _report(f"written in {PARTS} parts", began_s)
        with Parts(folder, order) as parts:
            left = runs.without(parts.done)
            began_s = _report(f"found again ({len(left)} left)", began_s)
            table = scan(folder, RUNS, parts._files).collect().sort("run")
            parts.finish(table)
        _report("put together", began_s)
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{len(files)} files, {size / 1e6:.0f} MB, {size / count:.0f} bytes a run")


def _add(parts: Parts, mixed: Runs, places: np.ndarray, random: np.random.Generator) -> None:
    """A part of made-up runs."""
    chosen = mixed[int(places[0]) : int(places[-1]) + 1]
    run, point = ([getattr(each, name) for each in chosen] for name in ("number", "point"))
    numbers = {"run": pl.Series(run, dtype=pl.UInt32), "point": pl.Series(point, dtype=pl.UInt32)}
    seeds = pl.Series([each.seed for each in chosen], dtype=pl.Int64)
    values = {name: random.random(len(chosen)) for name in METRICS}
    flows = {**numbers, "flow": pl.zeros(len(chosen), dtype=pl.UInt32, eager=True), "bytes": random.random(len(chosen))}
    parts.add(
        {
            "flows": pl.DataFrame(flows),
            "links": pl.DataFrame(numbers),
            RUNS: pl.DataFrame(numbers | {"seed": seeds} | values),
        }
    )
    parts.write()


def _report(what: str, began_s: float) -> float:
    now_s, peak_mb = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{what}: {now_s - began_s:.1f} s, {peak_mb:.0f} MB", flush=True)
    return now_s


if __name__ == "__main__":
    main()
