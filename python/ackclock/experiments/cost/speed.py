"""Speed of this machine relative to the reference machine of this folder's rules.

A run of some milliseconds is timed, and what came of it is kept in the user's cache for a week: it belongs to a version
of ackclock and to a machine. This is the only clock here, and no result depends on it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ackclock import _core
from ackclock.scenario import planning

#: CPU time that the run takes where the rules were measured, in seconds.
REFERENCE_S = 0.005

#: The fastest of so many counts: others at work on the machine make it seem slow.
TIMES = 5

#: No measurement is shorter: a clock that counts in ticks may not have moved.
SHORTEST_S = 0.0005

#: Lifetime of a measured speed, in seconds.
KEPT_S = 7 * 24 * 3600.0

_SCENARIO = """
duration = "10s"
[network]
topology = "dumbbell"
rate = "50Mbit"
rtt = "40ms"
queue = { discipline = "pfifo", limit = "1bdp" }
[[flows]]
count = 4
congestion = "cubic"
"""


def speed() -> float:
    """This machine's speed; 1 is the reference's, 2 is twice as fast. From the cache, or measured."""
    path = place()
    found = _kept(path)
    if found is None:
        found = measured()
        _keep(path, found)
    return found


def measured() -> float:
    """The speed of this moment, in some tens of milliseconds."""
    given = json.dumps(planning.loads(_SCENARIO).plan().engine_input())
    return REFERENCE_S / max(min(_time_run(given) for _ in range(TIMES)), SHORTEST_S)


def place() -> Path:
    """The file in the user's cache: `$XDG_CACHE_HOME/ackclock/speed.json`."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".cache"  # a relative one is to be ignored (XDG)
    return base / "ackclock" / "speed.json"


def _time_run(given: str) -> float:
    begun_s = time.thread_time()
    simulation = _core.Simulation(given, 1)
    simulation.advance(10.0)
    simulation.finish()
    return time.thread_time() - begun_s


def _about() -> dict[str, Any]:
    return {"ackclock": _core.version, "machine": platform.node()}


def _kept(path: Path) -> float | None:
    """Return the stored speed, if it is of this version and machine, and not old."""
    try:
        kept = json.loads(path.read_bytes())
        fresh = 0 <= time.time() - path.stat().st_mtime <= KEPT_S
        found = float(kept["speed"])
        known = fresh and found > 0 and all(kept[key] == value for key, value in _about().items())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if known else None


def _keep(path: Path, found: float) -> None:
    """A cache that cannot be written is none."""
    new = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps({**_about(), "speed": found}), encoding="utf-8")
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
