"""Runs a sweep, or what is left of it, into a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ackclock.campaigns import running
from ackclock.campaigns.sweep import order as orders
from ackclock.campaigns.sweep import table, work
from ackclock.campaigns.sweep.folder import Parts
from ackclock.campaigns.sweep.order import Order, Run
from ackclock.campaigns.sweep.table import Sweep
from ackclock.dataset import folders
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
        ScenarioError: the mistakes of all points.
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
    runs: tuple[Run, ...]
    out: Path | None
    jobs: int | None = None
    fresh: bool = False
    command: str = ""

    @property
    def title(self) -> str:
        """What the progress bar says."""
        return f"{self.out.name if self.out else self.order.title}, {self.order.engine} engine"

    def perform(self, progress: Progress = no_progress) -> Sweep:
        """Runs what is left. `progress` is called with the share of all runs that is done."""
        if self.out is not None:
            return self._perform(self.out, progress)
        own = folders.private()
        return replace(self._perform(own.path, progress), keep=own)

    def _perform(self, folder: Path, progress: Progress) -> Sweep:
        with Parts(folder, self.order, command=self.command, fresh=self.fresh) as parts:
            left = [run for run in self.runs if run.number not in parts.done]
            there, total = len(self.runs) - len(left), len(self.runs)
            progress(there / total)
            work.run_all(
                self.order,
                left,
                parts,
                self.jobs or running.cores(),
                lambda share: progress((there + share * len(left)) / total),
            )
            return table.finish(parts, self.loaded)


def prepare(
    loaded: Loaded | Path | str,
    engine: str = "packet",
    *,
    out: Path | str | None = None,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str] | None = None,
    samples: bool = False,
    where: Mapping[str, Iterable[str]] | None = None,
) -> Job:
    """Checks a sweep, every point of it; runs nothing. Arguments and errors are those of `sweep`."""
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
    return Job(scenario, order, tuple(orders.runs(scenario, order)), None if out is None else Path(out))
