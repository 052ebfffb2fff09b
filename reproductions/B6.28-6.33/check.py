"""The rule of B6.28–6.33: 100 CUBIC flows behind three AQMs by target and interval."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, in_order, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.reproductions.measures import queue_delay_quantile

ENGINES = ("packet",)
AQMS = {"ared": "ARED", "codel": "CoDel", "pie": "PIE"}
TARGETS = ("20 ms", "50 ms", "100 ms", "150 ms")
INTERVALS = ("100 ms", "200 ms", "300 ms")

#: “Around 350 ms”, off a box plot: within a twentieth; within .15.
AROUND, ABOUT = 0.05, 0.15

#: “Except”: a twentieth more at least; more.
EXCEPT, MORE = (1.05, inf), (1.0, inf)

#: Shares of ordered pairs, as for B6.5–6.6: in nine of ten pairs; in half it is a trend.
ORDERED, MOSTLY = (0.9, 1.0), (0.5, 1.0)

#: “Slightly better”: by a thousandth to a tenth; the same within a hundredth, or more.
SLIGHTLY, THE_SAME = (1.001, 1.1), (0.99, 1.25)

median = queue_delay_quantile(0.5)


def median_rtt_s(view: RunView) -> float | None:
    """Median of path and queue."""
    queue_s = median(view)
    return None if queue_s is None else queue_s + float(view.plan.flows[0].base_rtt_s)


MEASURES = {"rtt": median_rtt_s, "delay": "queue_delay_mean_s", "goodput": "goodput_bps"}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim, AQM and target or interval."""
    around = near(0.35, AROUND), near(0.35, ABOUT)
    rows = [
        Row("median", measured[f"{aqm} {at}"]["rtt"], *around, f"{name}, {at}")
        for aqm, name in AQMS.items()
        for at in TARGETS
        if (aqm, at) != ("codel", "150 ms")
    ]
    rows.append(Row("codel-150", ratio(measured["codel 150 ms"]["rtt"], (0.35,)), EXCEPT, MORE))
    for aqm, name in AQMS.items():
        goodputs = [measured[f"{aqm} {at}"]["goodput"] for at in TARGETS]
        rows.append(Row("goodput", in_order(goodputs), ORDERED, MOSTLY, name))
    for aqm in ("codel", "pie"):
        cases = [measured[f"{aqm} each {at}"] for at in INTERVALS]
        gain = ratio(cases[-1]["goodput"], cases[0]["goodput"])
        rows.append(Row("interval-delay", in_order([case["delay"] for case in cases]), ORDERED, MOSTLY, AQMS[aqm]))
        rows.append(Row("interval-goodput", gain, SLIGHTLY, THE_SAME, AQMS[aqm]))
    return sorted(rows, key=lambda row: [*published].index(row.claim))
