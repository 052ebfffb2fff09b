"""The rule of G.cong: completion times of simultaneous files by how much the sources could offer."""

from collections.abc import Mapping
from math import inf

import numpy as np

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet", "ns2")

#: Times on a testbed: within a twentieth; within a fifth they are of their kind.
SAME, ALIKE = 0.05, 0.2

#: “Wider”: by a tenth at least; within a tenth they are the same.
WIDER, THE_SAME = (1.1, inf), (1 / 1.1, inf)

#: With less than the link offered, a file takes what its interface needs: which says how large the files were.
DECIDES = "90 %"


def spread(view: RunView) -> float | None:
    """Standard deviation of the files' completion times as a share of their mean; null until all have ended."""
    times_s = view.flows["fct_s"].to_numpy()
    found = float(times_s.std() / times_s.mean())
    return None if np.isnan(found) else found


MEASURES = {"completion": "fct_mean_s", "spread": spread}


def is_quick(engine: str, case: str) -> bool:
    """For a short look ns-2 runs one case."""
    return engine != "ns2" or case == "CUBIC 90 %"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Six times, of which two decide about the size; the widths at the levels at which sources compete."""
    rows = []
    for case in [claim for claim in published if claim != "wider"]:
        value = published[case].value or 0.0
        rows.append(Row(case, measured[case]["completion"], near(value, SAME), near(value, ALIKE)))
    for at in ("150 %", "210 %"):
        wider = ratio(measured[f"Scalable {at}"]["spread"], measured[f"CUBIC {at}"]["spread"])
        rows.append(Row("wider", wider, WIDER, THE_SAME, at))
    return rows
