"""Fuzz targets: arbitrary input, and the invariants that must hold for it.

A target takes bytes and returns what it made of them, or raises `Finding`: a failure that a user would not understand.
What is said of bad input is `InputError` or `UnsupportedError`, in lines that are short and free of control
characters.
"""

from __future__ import annotations

import atexit
import json
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import recipes

from ackclock import _core, engines, metrics
from ackclock.dataset import Dataset
from ackclock.errors import AckclockError, InputError, ScenarioError, UnsupportedError
from ackclock.plan import Plan
from ackclock.scenario import planning

#: Longest line of a message, in characters.
LONGEST_LINE = 1000

#: Most CPU time that one input may take, in seconds; the slowest of the examples takes a twentieth.
MAX_CPU_S = 5.0

#: Sweeps of more points are looked at up to there: a point is a scenario, and checked as one.
MAX_POINTS = 8

#: Plans with more flows are not given to the simulator, whose memory grows with them.
MAX_FLOWS = 2000


class Finding(Exception):  # noqa: N818
    """Something that must not happen; `name` is the same for the same fault."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}\n{detail}")
        self.name = name


class TooSlow(BaseException):
    """An input that takes too long; no `Exception`, so that nobody takes it for one of his own."""


@contextmanager
def understood() -> Iterator[None]:
    """Lets pass what is said to a user, in lines that he can read; whatever else is raised becomes a `Finding`."""
    before = signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, MAX_CPU_S)
    try:
        yield
    except (InputError, UnsupportedError) as error:
        _check_message(error)
    except RecursionError as error:
        raise Finding("RecursionError", str(error)) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        raise Finding(_place(error), traceback.format_exc(limit=-12)) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@cache
def place() -> Path:
    """A folder for what a target reads, removed with the process."""
    folder = tempfile.TemporaryDirectory(prefix="ackclock-fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def scenario(data: bytes) -> None:
    """A scenario's text through the whole check, as far as the simulator's own."""
    with understood():
        path = place() / "fuzzed.toml"
        path.write_bytes(data)
        # The kernel of this machine is left out of it: what it has differs from machine to machine.
        loaded = planning.load(path).on("guest")
        if loaded.sweep is None:
            _check_plan(loaded.plan())
        else:
            for number in range(min(loaded.sweep.count, MAX_POINTS)):
                _check_plan(loaded.point(number).plan)


def result(data: bytes) -> None:
    """A result's folder, damaged as a recipe says, to its metrics."""
    folder = place() / "result"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    recipes.lay(recipes.prepared(data), folder)
    with understood():
        found = metrics.table(Dataset.read(folder))
        json.dumps([found["runs"], found["summary"]], allow_nan=False)


def _check_plan(plan: Plan) -> None:
    json.dumps(plan.to_dict(), allow_nan=False)
    for name in engines.ENGINES:
        engine = engines.engine(name)
        refused = engines.unsupported(engine, plan)
        for reason in refused:
            _check_line(str(reason))
        if not refused:
            engine.is_stochastic(plan)
        if not refused and name == "packet" and len(plan.flows) <= MAX_FLOWS:
            _core.Simulation(json.dumps(plan.engine_input()), plan.seeds[0])
    for name in engines.ENGINES:
        engines.check_inputs(engines.engine(name), plan)


def _check_message(error: AckclockError) -> None:
    lines = str(error).split("\n")
    if not isinstance(error, (ScenarioError, UnsupportedError)) and len(lines) > 1:
        raise Finding("several lines for one mistake", str(error))
    if isinstance(error, ScenarioError) and len(lines) != len(error.problems):
        raise Finding("not one line a mistake", str(error))
    for line in lines:
        _check_line(line)


def _check_line(line: str) -> None:
    if not line.strip() or len(line) > LONGEST_LINE or not line.isprintable():
        raise Finding("a line that nobody can read", repr(line[: 2 * LONGEST_LINE]))


def _too_slow(*_: object) -> None:
    raise TooSlow


def _place(error: BaseException) -> str:
    """The error's type, and the last line of this package that it passed: its name among findings."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/ackclock/" in frame.filename]
    where = f"{frames[-1].filename.rpartition('/ackclock/')[2]}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}"


TARGETS: dict[str, Callable[[bytes], None]] = {"scenario": scenario, "result": result}
