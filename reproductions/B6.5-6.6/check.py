"""The rule of B6.5–6.6: delay and goodput of three AQMs by their target."""

from collections.abc import Mapping
from math import fsum, inf

from ackclock.gallery import Measured, Row, Values, in_order, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import served_bps, waiting_quantile

ENGINES = ("packet", "linux")
MEASURES = {
    "median": waiting_quantile(0.5),
    "p95": waiting_quantile(0.95),
    "goodput": served_bps,
    "payload": "goodput_bps",
}
AQMS = {"ared": "ARED", "codel": "CoDel", "pie": "PIE"}
TARGETS = ("1 ms", "5 ms", "10 ms", "20 ms", "30 ms")

#: “Decrease proportionally to the decrease of target delay”: in nine of ten pairs of targets; in half it is a trend.
ORDERED, MOSTLY = (0.9, 1.0), (0.5, 1.0)

#: “Always above 9Mbps”; 8.5 Mb/s could be read so from a bar.
ABOVE_9, ABOUT_9 = (9e6, inf), (8.5e6, inf)

#: “No difference”: within 5 %; up to 20 % it would not be seen in a box plot of all AQMs.
NO_DIFFERENCE, HARDLY_ANY = near(1, 0.05), near(1, 0.2)

#: “Longer tail”: by a tenth at least; within a tenth they are the same.
LONGER, THE_SAME = (1.1, inf), (1 / 1.1, inf)


def runs(engine: str, case: str) -> bool:
    """The kernel's RED is not gentle."""
    return engine != "linux" or not case.startswith("ared-gentle")


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim, and AQM or target."""
    del published
    tails = {aqm: _tail(measured, aqm) for aqm in AQMS}
    gentle = {at: (measured[f"ared-gentle {at}"]["median"], measured[f"ared {at}"]["median"]) for at in TARGETS}
    return [
        *(
            Row("delay", in_order(_columns(measured, aqm, "median")), ORDERED, MOSTLY, name)
            for aqm, name in AQMS.items()
        ),
        *(Row("goodput", _lowest(measured, aqm, "goodput"), ABOVE_9, ABOUT_9, name) for aqm, name in AQMS.items()),
        *(
            Row("goodput", _lowest(measured, aqm, "payload"), ABOVE_9, ABOUT_9, f"{name}, payload", aside=True)
            for aqm, name in AQMS.items()
        ),
        *(Row("gentle", ratio(*pair), NO_DIFFERENCE, HARDLY_ANY, at) for at, pair in gentle.items()),
        *(Row("tail", ratio(tails[aqm], tails["pie"]), LONGER, THE_SAME, AQMS[aqm]) for aqm in ("codel", "ared")),
    ]


def _columns(measured: Measured, aqm: str, measure: str) -> list[Values]:
    return [measured[f"{aqm} {at}"][measure] for at in TARGETS]


def _lowest(measured: Measured, aqm: str, measure: str) -> Values:
    seeds = zip(*_columns(measured, aqm, measure), strict=True)
    return tuple(None if None in seed else min(seed) for seed in seeds)


def _tail(measured: Measured, aqm: str) -> Values:
    medians, highs = _columns(measured, aqm, "median"), _columns(measured, aqm, "p95")
    seeds = zip(zip(*medians, strict=True), zip(*highs, strict=True), strict=True)
    return tuple(
        None if None in (*median, *high) else (fsum(high) - fsum(median)) / len(TARGETS) for median, high in seeds
    )
