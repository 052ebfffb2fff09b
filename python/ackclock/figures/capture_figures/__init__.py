"""Figure specs of captures, and of runs where they have the tables.

Each kind is one file with one function of a run, a flow's number (None: the one with the most data) and a part of the
time; `KINDS` is the list of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ackclock.figures.capture_figures.flow import limits, pipe, rtt
from ackclock.figures.capture_figures.path import level, stalls
from ackclock.figures.capture_figures.sequence import sequence
from ackclock.figures.figure_spec import Drawing

#: Every kind by its name.
KINDS: Mapping[str, Callable[..., Drawing]] = {
    "sequence": sequence,
    "pipe": pipe,
    "rtt": rtt,
    "limits": limits,
    "stalls": stalls,
    "level": level,
}

#: Kinds that show one flow.
OF_A_FLOW = ("sequence", "pipe", "rtt", "limits")
