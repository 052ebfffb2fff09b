"""What an engine is, and what all of them share: the manifest of a run."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ackclock.errors import Unsupported

if TYPE_CHECKING:
    from ackclock.dataset import Dataset
    from ackclock.plan import Plan

#: Called with the share of a run that is done, 0 to 1; what it raises ends the run.
Progress: TypeAlias = Callable[[float], None]

#: Packages whose versions a result depends on. Each says its own: to read them off what pip installed takes longer.
PACKAGES = ("numpy", "polars", "pydantic")


def no_progress(share: float) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Around a run, not in it: they do not change its result.

    `spool_bytes` is what may wait in memory before it goes to disk; packet captures go to the folder `captures`.
    Without `samples`, an engine that knows the metrics may leave the tables of samples and events empty.
    """

    progress: Progress = no_progress
    captures: Path | None = None
    spool_bytes: int = 8 << 20
    command: str = ""
    samples: bool = True

    def capture_files(self, plan: Plan, seed: int) -> list[Path]:
        """The files of a run's packet captures in the order of the plan's, in a folder that is there; perhaps none."""
        if self.captures is None or not plan.record.pcap:
            return []
        if isinstance(plan.record.pcap, bool):
            return [self.captures / f"seed-{seed}.pcap"]
        names = [re.sub(r"[^\w.-]+", "-", vantage) for vantage in plan.record.pcap]
        several = [f"{name}-{number}" if names.count(name) > 1 else name for number, name in enumerate(names)]
        return [self.captures / f"seed-{seed}-{name}.pcap" for name in several]


@dataclass(frozen=True, slots=True)
class Need:
    """A result that a plan names: the key that does, the folder, and the plan with what is measured of the result."""

    key: str
    folder: Path
    filled: Callable[[Plan, Dataset], Plan]


class Engine(Protocol):
    """Runs plans. It models all of a plan or says beforehand what it cannot.

    More methods are optional: `run_many(runs, options, jobs=…)` takes many pairs of plan and seed in one call;
    `lacking()` says what this machine lacks to run anything with it, and how to get it (None: nothing); `needs(plan)`
    lists what the plan needs of other results (`Need`), which is measured before the engine is given the plan;
    `measured(plan)` gives the plan with what it wants to be measured of the world before its runs;
    `alone(plan)` says that no two runs go on at a time; `look(plan)` looks at other machines that a run would need, and
    gives a line on each, what is missing there and what weakens a run (None: it needs none).
    """

    name: str

    @property
    def has(self) -> Collection[str]:
        """What it has: algorithms and features, in the words of `ackclock.engines.features`."""

    def check(self, plan: Plan) -> list[Unsupported]:
        """What of the plan the engine cannot model; empty if it can run it."""

    def draws(self, plan: Plan) -> bool:
        """Whether chance has a part in the result; if not, all seeds have the same, and one run is enough."""

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError` if `check` would find something."""


def missing(plan: Plan, engine: Engine) -> list[Unsupported]:
    """What the plan asks for and the engine has not."""
    from ackclock.engines.features import features

    return [Unsupported(what, engine.name) for what in features(plan) if what not in engine.has]


def manifest(
    plan: Plan,
    engine: str,
    seed: int,
    command: str,
    metrics: Mapping[str, Any] | None = None,
    *,
    model: str | None = None,
) -> dict[str, Any]:
    """All that is needed to doubt a run's result and to run it again.

    `metrics`, by their names, are what an engine knows without tables: averages that a closed form gives. `model` is
    which of its models answered, if it has several.
    """
    from ackclock import _core

    known = {"metrics": dict(metrics)} if metrics else {}
    return {
        "ackclock": _core.version,
        "engine": engine,
        **({"model": model} if model else {}),
        "scenario": plan.scenario_text,
        "scenario_path": plan.scenario_name,
        "plan": plan.values,
        "runs": [{"run": 0, "point": 0, "seed": seed, **known}],
        **circumstances(command),
    }


def circumstances(command: str) -> dict[str, Any]:
    """With what, when, where and how something was run, for a manifest."""
    return {
        "versions": _versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "command": command,
    }


@cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: import_module(name).__version__ for name in PACKAGES}}
