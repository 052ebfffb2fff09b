"""The rule of G.rev: what traffic on the way back costs files on the way there."""

from collections.abc import Mapping
from math import inf

import polars as pl

from ackclock.gallery import Measured, Row, Values, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet", "ns2")

#: A time over another: within 2 points of 100 %; within 10 it is of its kind.
SAME, ALIKE = 0.02, 0.1

#: “A step”: twice as much at least; more at all.
STEP, MORE = (2.0, inf), (1.0, inf)

#: The time that the time's own tolerances are shares of: 15 files of 30 GB at 9.41 Gb/s, whatever the interpretation.
TOTAL_S = 383.0

#: The slides' files and link. A size is in MiB where it is a whole number of them, else in MB.
FILE_MB, LINK_BPS = 30_000, 1e10
MB, MIB = 1_000_000, 1 << 20


def in_full(view: RunView) -> float | None:
    """Mean completion time of the files, in the slides' time: by size over rate; null until all have ended."""
    files = view.flows.filter(pl.col("size_bytes").is_not_null())
    mean_s = files["fct_s"].mean()
    if files["fct_s"].null_count() or not isinstance(mean_s, float):
        return None
    size_bytes, link_bps = int(files["size_bytes"][0]), view.plan.links[view.plan.bottleneck].rate_bps
    unit = MB if size_bytes % MIB else MIB
    return mean_s * (FILE_MB * unit / LINK_BPS) / (size_bytes / link_bps)


MEASURES = {"time": in_full}


def is_quick(engine: str, case: str) -> bool:
    """For a short look ns-2 runs one case."""
    return engine != "ns2" or case == "0 %"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The time alone, the three beside it, and the step between 90 and 110 %."""
    times = {case: measured[case]["time"] for case in ("0 %", "90 %", "110 %", "150 %")}
    rows = [_row("alone", times["0 %"], published, TOTAL_S)]
    rows += [_row(at, ratio(times[at], times["0 %"]), published) for at in ("90 %", "110 %", "150 %")]
    added = [
        None if None in seed or seed[1] <= seed[0] else max(0.0, (seed[2] - seed[0]) / (seed[1] - seed[0]))
        for seed in zip(times["0 %"], times["90 %"], times["110 %"], strict=True)
    ]
    return [*rows, Row("step", tuple(added), STEP, MORE)]


def _row(claim: str, values: Values, published: Mapping[str, Published], whole: float = 1.0) -> Row:
    value, same, alike = published[claim].value or 0.0, SAME * whole, ALIKE * whole
    return Row(claim, values, (value - same, value + same), (value - alike, value + alike))
