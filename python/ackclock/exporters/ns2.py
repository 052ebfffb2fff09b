"""Export a simulation for ns-2.35 in Tcl: the script that the engine `ns2` runs, with a heading.

The engine refuses what ns-2 does otherwise; here that is named, unless it would be another network or other traffic.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines import ns2
from ackclock.engines.external import planned_traffic
from ackclock.engines.ns2 import script as tcl
from ackclock.engines.ns2 import settings
from ackclock.exporters.script import ExportError, Script, reject_features, script, too_many, too_many_drawn
from ackclock.plan import Plan

#: Usage of the file.
SENTENCES = (
    "ns FILE runs it (Debian: ns2). It leaves its samples, drops and counts as files here; `ackclock run --engine ns2`",
    "runs the same and reads them.",
)


def write(plan: Plan) -> Script:
    """Return the script. Raises `ExportError` for what ns-2 does not support."""
    reject_features(plan, "ns-2", ns2.Ns2Engine.supported_features)
    if missing := [*too_many(plan), *too_many_drawn(plan), *tcl.unsupported_routes(plan)]:
        raise ExportError("ns-2", missing)
    notes = tuple(dict.fromkeys(_notes(plan)))
    return script(plan, SENTENCES, ["", tcl.tcl(plan, plan.seeds[0])], notes)


def _notes(plan: Plan) -> Iterator[str]:
    for of in (settings, planned_traffic):
        yield from of.unsupported(plan)
    yield from tcl.unsupported_sizes(plan)
    yield "the handshake, but for a first packet of headers alone, and the last exchange"
