"""The rule of B3.15–3.16: how large a buffer do CUBIC and New Reno need inside a data centre?"""

from collections.abc import Mapping
from itertools import pairwise
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.metrics.delay import queue_mean_p

BUFFERS = ("10 %", "30 %", "60 %", "100 %")

#: The cases that count as “smaller than 60 %”.
SMALL = ("10 %", "30 %", "50 %")


def occupancy_p(view: RunView) -> float | None:
    """Mean queue in packets."""
    return queue_mean_p(view)


ENGINES = ("meanfield", "packet", "ns2")
MEASURES = {"empty": "queue_empty_share", "queue": occupancy_p, "utilisation": "utilisation"}

#: “A significant fraction of mass at zero”: the queue is empty a fifth of the time and more; a twentieth at least.
SIGNIFICANT, SOME = (0.2, 1.0), (0.05, 1.0)

#: “Able to survive”: empty for a tenth of the time at most; for a quarter at most it is still a matter of degree.
FINE, RATHER_FINE = (0.0, 0.1), (0.0, 0.25)

#: “More greedy”: a mean queue larger by a tenth at least; not smaller.
FULLER, NOT_LESS_FULL = (1.1, inf), (1.0, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look ns-2 runs one case."""
    return engine != "ns2" or case == "CUBIC 30 %"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim and buffer."""
    cubic, reno = (
        {buffer: measured[f"{name} {buffer}"] for buffer in (*BUFFERS, *SMALL)} for name in ("CUBIC", "New Reno")
    )
    rows = [Row("reno-empty", reno[buffer]["empty"], SIGNIFICANT, SOME, buffer) for buffer in SMALL]
    rows += [Row("cubic-fine", cubic[buffer]["empty"], FINE, RATHER_FINE, buffer) for buffer in BUFFERS[1:]]
    rows += [
        Row("cubic-fuller", ratio(cubic[buffer]["queue"], reno[buffer]["queue"]), FULLER, NOT_LESS_FULL, buffer)
        for buffer in BUFFERS
    ]
    for name, found in (("CUBIC", cubic), ("New Reno", reno)):
        for small, large in pairwise(BUFFERS):
            grows = ratio(found[large]["queue"], found[small]["queue"])
            rows.append(Row("larger", grows, FULLER, NOT_LESS_FULL, f"{name}, {small} to {large}"))
    return rows
