"""ackclock: a laboratory for transport protocols.

    import ackclock as ac

    plan = ac.load("scenarios/dumbbell.toml").plan()
    data = ac.run(plan, engine="packet", seeds=range(1, 6))
    data.flows, data.queue_samples        # Polars frames
    data.metrics()                        # mean, 95 % interval and n per metric
    ac.plot.cwnd(data)                    # a matplotlib figure
    ac.doctor("slow.pcap")                # why a transfer was slow

Everything is imported when it is first used.
"""

import sys

if sys.argv[:1] == ["-m"] and "ackclock" in sys.orig_argv:  # the program: Ctrl-C ends it without a word from the first
    import _signal  # type: ignore[import-not-found]  # built in, and so there at once

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than all the rest

if TYPE_CHECKING:
    from typing import Any

    from ackclock import metrics as metrics
    from ackclock import theory as theory
    from ackclock.algorithms.prototype import congestion_control
    from ackclock.capture import read as capture
    from ackclock.dataset import Dataset
    from ackclock.doctor import diagnose as doctor
    from ackclock.engines.fluid import replay
    from ackclock.errors import AckclockError, InputError, ScenarioError, Unsupported, UnsupportedError
    from ackclock.experiments import read
    from ackclock.experiments.comparison import compare
    from ackclock.experiments.runner import run
    from ackclock.experiments.search import find
    from ackclock.experiments.sweep.run import sweep
    from ackclock.figures import plots as plot
    from ackclock.figures.report import write as report
    from ackclock.gallery import reproduce
    from ackclock.plan import Plan
    from ackclock.scenario.builder import scenario as scenario
    from ackclock.scenario.planning import Loaded, load, loads
    from ackclock.shell.session import shell

    __version__: str

#: Public name → module, and the name in it (None: the module itself).
_PUBLIC: dict[str, tuple[str, str | None]] = {
    "AckclockError": ("ackclock.errors", "AckclockError"),
    "Dataset": ("ackclock.dataset", "Dataset"),
    "InputError": ("ackclock.errors", "InputError"),
    "Loaded": ("ackclock.scenario.planning", "Loaded"),
    "Plan": ("ackclock.plan", "Plan"),
    "ScenarioError": ("ackclock.errors", "ScenarioError"),
    "Unsupported": ("ackclock.errors", "Unsupported"),
    "UnsupportedError": ("ackclock.errors", "UnsupportedError"),
    "__version__": ("ackclock._core", "version"),
    "capture": ("ackclock.capture", None),
    "congestion_control": ("ackclock.algorithms.prototype", "congestion_control"),
    "compare": ("ackclock.experiments.comparison", "compare"),
    "doctor": ("ackclock.doctor", None),
    "find": ("ackclock.experiments.search", "find"),
    "load": ("ackclock.scenario.planning", "load"),
    "loads": ("ackclock.scenario.planning", "loads"),
    "metrics": ("ackclock.metrics", None),
    "plot": ("ackclock.figures.plots", None),
    "read": ("ackclock.experiments", "read"),
    "replay": ("ackclock.engines.fluid", "replay"),
    "report": ("ackclock.figures.report", "write"),
    "reproduce": ("ackclock.gallery", "reproduce"),
    "run": ("ackclock.experiments.runner", "run"),
    "scenario": ("ackclock.scenario", None),
    "shell": ("ackclock.shell", None),
    "sweep": ("ackclock.experiments.sweep.run", "sweep"),
    "theory": ("ackclock.theory", None),
}

__all__ = [
    "AckclockError",
    "Dataset",
    "InputError",
    "Loaded",
    "Plan",
    "ScenarioError",
    "Unsupported",
    "UnsupportedError",
    "__version__",
    "capture",
    "compare",
    "congestion_control",
    "doctor",
    "find",
    "load",
    "loads",
    "metrics",
    "plot",
    "read",
    "replay",
    "report",
    "reproduce",
    "run",
    "scenario",
    "shell",
    "sweep",
    "theory",
]


def __getattr__(name: str) -> "Any":
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ackclock' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PUBLIC[name]
    loaded = import_module(module)
    value = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
