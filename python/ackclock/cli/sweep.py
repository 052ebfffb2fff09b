"""What one call of `ackclock sweep` has to do: a sweep for each engine, each into a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from ackclock.campaigns.sweep import run as sweeps
from ackclock.campaigns.sweep.folder import POINTS
from ackclock.cli import jobs as work
from ackclock.cli import sweep_table as terminal
from ackclock.errors import AckclockError, InputError
from ackclock.input.fields import shown


class InterruptedSweepError(AckclockError):
    """The user has had enough, for now."""

    exit_status = 130


@dataclass(frozen=True, slots=True)
class Given:
    """The options of the command line."""

    engines: str
    kernel: str | None
    seed: int | None
    repeats: int | None
    out: Path | None
    metrics: str | None
    samples: bool
    where: Sequence[str]
    fresh: bool
    report: bool
    jobs: int | None
    command: str


def run(scenario: Path, given: Given, *, as_json: bool) -> None:
    """Runs the sweep with each engine and prints its table. Everything that can be refused is refused before."""
    for job in list(_jobs(scenario, given)):
        try:
            with terminal.progress(job.title, len(job.runs)) as progress:
                done = job.perform(progress)
        except KeyboardInterrupt:
            raise InterruptedSweepError(
                f"interrupted; what is done is kept in {job.out}: the same command goes on"
            ) from None
        if as_json:
            typer.echo(json.dumps(done.as_dict(), allow_nan=False))
        else:
            terminal.print_sweep(done)
        typer.echo(f"wrote {done.folder / POINTS}", err=as_json)
        if given.report and done.axes:
            typer.echo(f"wrote {work.write_report([done.folder], None)}", err=as_json)


def _jobs(scenario: Path, given: Given) -> Iterator[sweeps.Job]:
    seeds = work.seeds(work.Options(seed=given.seed, repeats=given.repeats, jobs=given.jobs))
    metrics = None if given.metrics is None else [name.strip() for name in given.metrics.split(",")]
    where = _where(given.where)
    loaded = work.loaded(scenario, given.kernel, given.engines)
    names = work.engine_names(given.engines)
    for name in names:
        folder = work.folder(scenario, name, given.out, several=len(names) > 1)
        job = sweeps.prepare(loaded, name, out=folder, seeds=seeds, metrics=metrics, samples=given.samples, where=where)
        yield replace(job, jobs=given.jobs, fresh=given.fresh, command=given.command)


def _where(given: Sequence[str]) -> dict[str, list[str]]:
    """`KEY=VALUE,VALUE` each, the values of a key together."""
    found: dict[str, list[str]] = {}
    for text in given:
        key, sign, values = text.partition("=")
        if not sign:
            raise InputError(f"--where: found {shown(text)}; expected KEY=VALUE, such as network.queue.limit=1bdp")
        found.setdefault(key.strip(), []).extend(value.strip() for value in values.split(","))
    return found
