#!/usr/bin/env python3
"""Digests of the datasets of every scenario, to show that a change of the code changes no result.

    python tools/digests.py before.json             # in the state before
    python tools/digests.py after.json before.json  # in the state after: exit status 1 if any differs

The scenarios are those of `scenarios/` and `reproductions/`, and one made for each congestion control, queue discipline
and stack of the catalog. Each runs with its first seed and every engine that computes by itself (`linux` is left out:
it has tests of its own); the packet engine carries a few million packets at most of each. What an engine refuses is
compared by its words. Some minutes on one core; `--only PATTERN` takes some of them.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import polars as pl

import ackclock as ac
from ackclock import algorithms

ROOT = Path(__file__).parents[1]
TABLES = ("events", "flow_samples", "flows", "links", "packets", "queue_samples")
ENGINES = ("packet", "fluid", "meanfield", "theory")

#: The maximum traffic over the bottlenecks of one run in the packet engine, in bits: some million full packets.
MAX_BITS = 18e9

#: The scenario that is made for an algorithm.
MADE = """duration = "20s"
warmup = "2s"
repeats = 1
[network]
topology = "dumbbell"
rate = "20Mbit"
rtt = "40ms"
queue = {queue}
{loss}
[tcp]
stack = "{stack}"
{ecn}
[[flows]]
count = 3
congestion = "{congestion}"
start = {{ every = "300ms", jitter = "100ms" }}
"""
FIFO = '{ discipline = "pfifo", limit = "0.7bdp" }'


def scenarios() -> Iterator[tuple[str, str]]:
    """Names and texts."""
    for path in sorted([*ROOT.glob("scenarios/*.toml"), *ROOT.glob("reproductions/*/scenario.toml")]):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for spec in algorithms.every():
        for name, text in made(spec):
            yield f"{spec.family}/{spec.name}/{name}", text


def made(spec: algorithms.AlgorithmSpec) -> Iterator[tuple[str, str]]:
    """The scenarios of one spec."""
    usual = {"queue": FIFO, "loss": "", "stack": "linux", "ecn": "", "congestion": "cubic"}
    if spec.family == "congestion":
        usual["congestion"] = spec.name
        marking = {"queue": '{ discipline = "codel", limit = "500p", ecn = true }', "ecn": 'ecn = "classic"'}
        yield "fifo", MADE.format(**usual)
        yield "marks", MADE.format(**usual | marking)
        yield "loss", MADE.format(**usual | {"loss": "loss = { probability = 2e-3 }"})
        yield "rfc", MADE.format(**usual | {"stack": "rfc"})
    elif spec.family == "queue":
        usual["queue"] = queue(spec)
        for congestion in ("cubic", "reno", "dctcp", "bbr"):
            yield congestion, MADE.format(**usual | {"congestion": congestion})
    elif spec.family == "realtime":
        yield "fifo", MADE.format(**usual) + f'[[traffic]]\nkind = "media"\ncongestion = "{spec.name}"\n'
    else:
        yield "fifo", MADE.format(**usual | {"stack": spec.name, "congestion": "reno"})
        yield "loss", MADE.format(**usual | {"stack": spec.name, "loss": "loss = { probability = 1e-2 }"})


def queue(spec: algorithms.AlgorithmSpec) -> str:
    """The table of a discipline, with what it requires."""
    room = {"bytes": '"64KB"', "packets": '"100p"'}
    required = {name: room[parameter.kind] for name, parameter in spec.parameters.items() if parameter.required}
    keys = {"discipline": f'"{spec.name}"'} | required
    return "{ " + ", ".join(f"{name} = {value}" for name, value in keys.items()) + " }"


def shortened(plan: ac.Plan) -> ac.Plan:
    """The plan with as much of its time as the packet engine is given, every packet logged."""
    rate_bps = sum(link.rate_bps for link in plan.links if link.bottleneck)
    duration_s = min(plan.duration_s, max(1.0, MAX_BITS / rate_bps))
    return replace(
        plan,
        duration_s=duration_s,
        warmup_s=min(plan.warmup_s, duration_s / 4),
        changes=tuple(change for change in plan.changes if change.at_s < duration_s),
        record=replace(plan.record, packets=True),
    )


def digest(data: ac.Dataset) -> str:
    """Return a digest of all columns of all tables, and of the engine's report of each run."""
    found = hashlib.sha256()
    for table in TABLES:
        frame = data.scan(table).collect()
        for name in sorted(frame.columns):
            column = io.BytesIO()
            frame.select(_as_text(frame[name])).rechunk().write_ipc(column)
            found.update(column.getvalue())
    metrics = [run.get("metrics") for run in data.runs]
    found.update(json.dumps(metrics, sort_keys=True, default=str).encode())
    return found.hexdigest()[:20]


def _as_text(column: pl.Series) -> pl.Series:
    """Words as text: what else a column could have said is no result."""
    return column.cast(pl.String) if isinstance(column.dtype, (pl.Enum, pl.Categorical)) else column


def digests(text: str) -> Iterator[tuple[str, str]]:
    """Engine and digest, or why there is none."""
    try:
        loaded = ac.loads(text).plan()
    except ac.AckclockError as error:
        yield "refused", str(error)
        return
    plan = replace(loaded, seeds=loaded.seeds[:1])
    for engine in ENGINES:
        try:
            yield engine, digest(ac.run(shortened(plan) if engine == "packet" else plan, engine=engine, jobs=1))
        except ac.AckclockError as error:
            yield engine, str(error)


def main() -> int:
    """The command; its exit status."""
    asked = argparse.ArgumentParser(description="Digests of the datasets of every scenario.")
    asked.add_argument("out", type=Path)
    asked.add_argument("before", type=Path, nargs="?")
    asked.add_argument("--only", default="*", help="names of scenarios, with * and ?")
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    found = {
        f"{name}: {engine}": value
        for name, text in scenarios()
        if fnmatch(name, given.only)
        for engine, value in digests(text)
    }
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    before = json.loads(given.before.read_text(encoding="utf-8")) if given.before else found
    different = [name for name, value in found.items() if before.get(name) != value]
    print(f"{len(found)} results, {len(different)} differ", *different, sep="\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
