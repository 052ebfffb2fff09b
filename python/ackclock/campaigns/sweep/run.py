"""Runs a sweep, or what is left of it, into a folder."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ackclock.campaigns import running
from ackclock.campaigns.sweep import checking, table, weights, work
from ackclock.campaigns.sweep import order as orders
from ackclock.campaigns.sweep.folder import Parts
from ackclock.campaigns.sweep.order import Order
from ackclock.campaigns.sweep.runs import Runs
from ackclock.campaigns.sweep.table import Sweep
from ackclock.engines.engine import Progress, no_progress
from ackclock.scenario import planning
from ackclock.scenario.planning import Loaded


def sweep(  # noqa: PLR0913 (all but the first have defaults)
    loaded: Loaded | Path | str,
    engine: str = "packet",
    *,
    out: Path | str | None = None,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str] | None = None,
    samples: bool = False,
    where: Mapping[str, Iterable[str]] | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    progress: Progress = no_progress,
    command: str = "",
) -> Sweep:
    """Runs every point of the scenario's `[sweep]` with every seed, and returns the table of all runs.

    What the folder `out` has of this sweep already is not run again, so the same call goes on after an interruption.
    The runs are made in processes of their own: in a script, call it under `if __name__ == "__main__":`.

    Args:
        loaded: the scenario, or its file. One without a sweep is a sweep of one point.
        engine: name of the engine.
        out: folder of the result; by default one that goes with the returned object.
        seeds: instead of the scenario's own.
        metrics: names of the metrics to compute; by default all.
        samples: keep samples and events too, not only the tables `flows` and `links`.
        where: run the points only that have one of these values at these keys, as the file writes them.
        jobs: processes; by default one for each core.
        fresh: begin anew in a folder that has a sweep.
        progress: called with the share that is done, 0 to 1.
        command: what the manifest says was run.

    Raises:
        ScenarioError: the mistakes of all points. Of more than 10,000 points, some are checked before anything runs
            (`ackclock.scenario.covering`), the others in the first minutes; what was done before is kept.
        UnsupportedError: the engine cannot model something at some point.
        InputError: an unknown engine or metric, seeds that are no seeds, or a folder that holds something else.
        AckclockError: a run failed; what was done before is kept.
    """
    job = prepare(loaded, engine, out=out, seeds=seeds, metrics=metrics, samples=samples, where=where)
    return replace(job, jobs=jobs, fresh=fresh, command=command).perform(progress)


@dataclass(frozen=True)
class Job:
    """A sweep that is known to be good: what is to be run, and where it goes (None: a temporary folder)."""

    loaded: Loaded
    order: Order
    runs: Runs
    out: Path | None
    jobs: int | None = None
    fresh: bool = False
    command: str = ""

    @property
    def title(self) -> str:
        """What the progress bar says."""
        return f"{self.out.name if self.out else self.order.title}, {self.order.engine} engine: {len(self.runs)} runs"

    def perform(self, progress: Progress = no_progress) -> Sweep:
        """Runs what is left. `progress` is called with the share of the work that is done."""
        folder = self.out or Path(tempfile.mkdtemp(prefix="ackclock-"))
        with Parts(folder, self.order, command=self.command, fresh=self.fresh) as parts:
            left = self.runs.without(parts.done)
            if left:
                self._run(left, parts, progress)
            progress(1.0)
            found = table.finish(folder, self.loaded)
        if self.out is None:
            weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
        return found

    def _run(self, left: Runs, parts: Parts, progress: Progress) -> None:
        of_points, mixed = weights.of_points(self.loaded, self.order.engine), left.mixed()
        waiting = of_points[mixed.point_numbers]
        there = 1.0 - waiting.sum() / of_points[self.runs.point_numbers].sum()
        tasks = work.Tasks(mixed, waiting, self.jobs or running.cores())
        with checking.beside(self.loaded, self.order, left, progress) as tell:
            work.run_all(self.order, tasks, parts, lambda share: tell(there + share * (1.0 - there)))


def prepare(
    loaded: Loaded | Path | str,
    engine: str = "packet",
    *,
    out: Path | str | None = None,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str] | None = None,
    samples: bool = False,
    where: Mapping[str, Iterable[str]] | None = None,
    progress: Progress = no_progress,
) -> Job:
    """Checks a sweep, up to `planning.MOST_CHECKED` points of it; runs nothing.

    Arguments and errors are those of `sweep`; `progress` is called with the share of the check that is done.
    """
    chosen = {key: tuple(texts) for key, texts in (where or {}).items()}
    scenario = (loaded if isinstance(loaded, Loaded) else planning.load(loaded)).only(chosen)
    source = scenario.source
    order = Order(
        text=source.text,
        name=source.name,
        engine=engine,
        seeds=None if seeds is None else running.checked(tuple(seeds)),
        metrics=orders.chosen_metrics(metrics),
        samples=samples,
        where=chosen,
        kernel=scenario.kernel,
    )
    return Job(scenario, order, orders.runs(scenario, order, progress), None if out is None else Path(out))
