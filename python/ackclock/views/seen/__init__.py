"""What captures show, as drawings; of runs too, where they have the tables.

Each kind is one file with one function of a run, a flow's number (None: the one with the most data) and a part of the
time; `KINDS` is the list of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ackclock.views.drawn import Drawing
from ackclock.views.seen.level import level
from ackclock.views.seen.limits import limits
from ackclock.views.seen.pipe import pipe
from ackclock.views.seen.rtt import rtt
from ackclock.views.seen.sequence import sequence
from ackclock.views.seen.silences import silences

#: Every kind by its name.
KINDS: Mapping[str, Callable[..., Drawing]] = {
    "sequence": sequence,
    "pipe": pipe,
    "rtt": rtt,
    "limits": limits,
    "silences": silences,
    "level": level,
}

#: Those of one flow.
OF_A_FLOW = ("sequence", "pipe", "rtt", "limits")
