"""The rule of R6.t1: an ADSL line with and without small UDP packets."""

from collections.abc import Callable, Mapping

import polars as pl

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet",)

#: The up link is the second.
UP = 1

#: Goodputs of a line that is measured: within a twentieth; within a fifth they are of their kind.
SAME, ALIKE = 0.05, 0.2

#: Waits, printed with deviations of a quarter and of two fifths: within a tenth; within two fifths.
SAME_WAIT, ALIKE_WAIT = 0.1, 0.4

#: “Nearly 10 %”: within 4 points; more at all, up to a fifth.
GAIN, ANY_GAIN = (1.05, 1.13), (1.0, 1.2)


def goodput_of(label: str) -> Callable[[RunView], float | None]:
    """A measure: what the flow of this label delivers; null where there is none."""

    def goodput(view: RunView) -> float | None:
        bytes_of = dict(zip(_labels(view), view.flows["measured_bytes"], strict=True))
        return 8 * float(bytes_of[label]) / view.measured_s if label in bytes_of else None

    return goodput


def wait_s(view: RunView) -> float:
    """Mean wait of a packet in the up queue."""
    return float(view.links.filter(pl.col("link") == UP)["sojourn_mean_s"].item())


def _labels(view: RunView) -> list[str | None]:
    return [view.plan.groups[group].name for group in view.flows["group"]]


MEASURES = {"wait": wait_s, "upload": goodput_of("upload"), "download": goodput_of("download")}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The table's cells. What a download has by itself says how packets are counted on the line."""
    found = {
        "alone": measured["download"]["download"],
        "delay": measured["upload"]["wait"],
        "delay-udp": measured["upload, UDP"]["wait"],
        "upload": measured["upload"]["upload"],
        "upload-udp": measured["upload, UDP"]["upload"],
        "download": measured["both"]["download"],
        "download-udp": measured["both, UDP"]["download"],
    }
    rows = []
    for claim, values in found.items():
        same, alike = (SAME_WAIT, ALIKE_WAIT) if claim.startswith("delay") else (SAME, ALIKE)
        value = published[claim].value or 0.0
        rows.append(Row(claim, values, near(value, same), near(value, alike)))
    return [*rows, Row("gain", ratio(found["download-udp"], found["download"]), GAIN, ANY_GAIN)]
