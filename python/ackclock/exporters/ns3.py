"""Export a simulation for ns-3.37 in C++: the program that the engine `ns3` runs, with a heading.

The engine refuses what ns-3 does otherwise; here that is named, unless it would be another network or other traffic.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines import ns3
from ackclock.engines.external import planned_traffic
from ackclock.engines.ns3 import program, settings
from ackclock.exporters.script import ExportError, Script, reject_features, script, too_many, too_many_drawn
from ackclock.plan import Plan

#: Usage of the file.
SENTENCES = (
    "With Debian's libns3-dev, this makes a program of it, which leaves its samples, drops and counts as files:",
    f"    g++ -std=c++17 FILE {' '.join(f'-lns3-{name}' for name in program.LIBRARIES)}",
    "`ackclock run --engine ns3` does the same and reads them.",
)


def write(plan: Plan) -> Script:
    """Return the program. Raises `ExportError` for what ns-3 does not support."""
    reject_features(plan, "ns-3", ns3.Ns3Engine.supported_features)
    if missing := [*too_many(plan), *too_many_drawn(plan), *ns3.unsupported(plan)]:
        raise ExportError("ns-3", missing)
    notes = tuple(dict.fromkeys(_notes(plan)))
    return script(plan, SENTENCES, ["", program.cpp(plan, plan.seeds[0])], notes, mark="//")


def _notes(plan: Plan) -> Iterator[str]:
    yield from settings.unsupported(plan)
    yield from planned_traffic.unsupported(plan)
    yield "a device without a queue of its own: one of the packets that may wait does so in the device"
