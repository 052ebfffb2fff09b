"""What an engine is, and what all of them share: the manifest of a run."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ackclock import _core
from ackclock.errors import Unsupported
from ackclock.plan import Plan

if TYPE_CHECKING:
    from ackclock.dataset import Dataset

#: Called with the share of a run that is done, 0 to 1; what it raises ends the run.
Progress: TypeAlias = Callable[[float], None]

#: Packages whose versions a result depends on.
PACKAGES = ("numpy", "polars", "pydantic")


def no_progress(share: float) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Around a run, not in it: they do not change its result.

    `spool_bytes` is what may wait in memory before it goes to disk; packet captures go to the folder `captures`.
    """

    progress: Progress = no_progress
    captures: Path | None = None
    spool_bytes: int = 64 << 20
    command: str = ""


class Engine(Protocol):
    """Runs plans. It models all of a plan or says beforehand what it cannot."""

    name: str

    def check(self, plan: Plan) -> list[Unsupported]:
        """What of the plan the engine cannot model; empty if it can run it."""

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError` if `check` would find something."""


def manifest(plan: Plan, engine: str, seed: int, command: str) -> dict[str, Any]:
    """All that is needed to doubt a run's result and to run it again."""
    return {
        "ackclock": _core.version,
        "engine": engine,
        "scenario": plan.scenario_text,
        "scenario_path": plan.scenario_name,
        "plan": plan.to_dict(),
        "runs": [{"run": 0, "point": 0, "seed": seed}],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "command": command,
    }
