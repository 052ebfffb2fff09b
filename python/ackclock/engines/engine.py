"""The protocol of an engine, and what all engines share: options of a run and its manifest."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ackclock.errors import Unsupported

if TYPE_CHECKING:
    from ackclock.dataset import Dataset
    from ackclock.plan import Plan

#: Called with the share of a run that is done, 0 to 1; what it raises ends the run.
Progress: TypeAlias = Callable[[float], None]

#: Packages whose versions a result depends on, read from `__version__`: `importlib.metadata` takes longer.
PACKAGES = ("numpy", "polars", "pydantic")


def no_progress(share: float) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run that do not change its result.

    Attributes:
        progress: called with the share of the run that is done.
        captures: folder for packet captures and logs; None: none are written.
        spool_bytes: rows that are kept in memory before they are written to disk.
        command: the command line, for the manifest.
        samples: False allows an engine that computes metrics itself to leave tables of samples and events empty.
        threads: threads that one run may use.
    """

    progress: Progress = no_progress
    captures: Path | None = None
    spool_bytes: int = 8 << 20
    command: str = ""
    samples: bool = True
    threads: int = 1

    def capture_files(self, plan: Plan, seed: int) -> list[Path]:
        """Return the files of a run: its packet captures in the order of the vantage points, then logs of flows."""
        if self.captures is None:
            return []
        logs = [self.captures / f"seed-{seed}-flow-{flow}.sqlog" for flow in plan.logged_flows]
        return [*self._packet_captures(self.captures, plan, seed), *logs]

    @staticmethod
    def _packet_captures(folder: Path, plan: Plan, seed: int) -> list[Path]:
        if isinstance(plan.record.pcap, bool):
            return [folder / f"seed-{seed}.pcap"] * plan.record.pcap
        names = [re.sub(r"[^\w.-]+", "-", vantage) for vantage in plan.record.pcap]
        several = [f"{name}-{number}" if names.count(name) > 1 else name for number, name in enumerate(names)]
        return [folder / f"seed-{seed}-{name}.pcap" for name in several]


@dataclass(frozen=True, slots=True)
class RequiredResult:
    """A result that a plan names: its key, its folder, and the function that puts measurements of it into a plan."""

    key: str
    folder: Path
    filled: Callable[[Plan, Dataset], Plan]


class PreflightReport(NamedTuple):
    """The state of the other machines that a run uses: a line on each by name, requirements not met, and warnings."""

    hosts: Mapping[str, str]
    missing: tuple[str, ...]
    warnings: tuple[str, ...]


class Engine(Protocol):
    """Runs plans. An engine models all of a plan, or reports what it does not support before it runs.

    The methods with a body are defaults that an engine inherits where they fit.
    """

    name: str

    @property
    def supported_features(self) -> Collection[str]:
        """Algorithms and features, as `ackclock.engines.features` names them."""

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List the features of the plan that the engine cannot model; empty if it can run it."""

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if the result depends on the seed; if not, one run stands for all seeds."""

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """Run one seed of a plan. Raises `UnsupportedError` if `unsupported` lists anything."""

    def unavailable(self) -> str | None:
        """Return why this machine cannot run the engine at all, and how to change that; None if it can."""
        return None

    def required_results(self, plan: Plan) -> Sequence[RequiredResult]:
        """List the results that are measured before the engine gets the plan."""
        return ()

    def with_measurements(self, plan: Plan) -> Plan:
        """Return the plan with the quantities that are measured on real hosts before its runs."""
        return plan

    def exclusive(self, plan: Plan) -> bool:
        """Return True if no two runs of the plan may go on at a time."""
        return False

    def threads(self, plan: Plan, allowed: int) -> tuple[int, str]:
        """Return how many threads one run of the plan uses if it may use `allowed`, and why only one ("" if more)."""
        return 1, f"the engine {self.name} uses one"

    def preflight(self, plan: Plan) -> PreflightReport | None:
        """Examine the other machines that a run uses; None if it uses none."""
        return None


@runtime_checkable
class VectorisedEngine(Engine, Protocol):
    """An engine that computes several runs in one call faster than one by one."""

    def run_many(
        self, runs: Sequence[tuple[Plan, int]], options: RunOptions | None = None, *, jobs: int | None = None
    ) -> list[Dataset]:
        """Run pairs of plan and seed, up to `jobs` at a time; return their datasets in the same order."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def unsupported_features(plan: Plan, engine: Engine) -> list[Unsupported]:
    """List the features of a plan that an engine does not support."""
    from ackclock.engines.features import features

    return [Unsupported(what, engine.name) for what in features(plan) if what not in engine.supported_features]


def manifest(
    plan: Plan,
    engine: str,
    seed: int,
    command: str,
    metrics: Mapping[str, Any] | None = None,
    *,
    model: str | None = None,
) -> dict[str, Any]:
    """Return the manifest of a run: all that is needed to check its result and to run it again.

    `metrics` are averages that an engine computes without tables, such as closed forms. `model` names the model that
    was used, if the engine has several.
    """
    from ackclock import _core

    averages = {"metrics": dict(metrics)} if metrics else {}
    return {
        "ackclock": _core.version,
        "engine": engine,
        **({"model": model} if model else {}),
        "scenario": plan.scenario_text,
        "scenario_path": plan.scenario_name,
        "plan": plan.values,
        "runs": [{"run": 0, "point": 0, "seed": seed, **averages}],
        **circumstances(command),
    }


def circumstances(command: str) -> dict[str, Any]:
    """Return the versions, time, platform and command of a run, for its manifest."""
    return {
        "versions": _versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "command": command,
    }


@cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: import_module(name).__version__ for name in PACKAGES}}
