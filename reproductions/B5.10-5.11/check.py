"""The rule of B5.10–5.11: 100 flows at 500 ms, CUBIC beside New Reno."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import synchronised_flows

ENGINES = ("packet", "linux")
MEASURES = {"flows": synchronised_flows}

#: “Close to 100”: at least 90; with 70 or more, most flows lose together.
CLOSE_TO_100, MOST = (90, inf), (70, inf)

#: “Below 30”; with fewer than half, most flows do not lose together.
BELOW_30, FEWER_THAN_HALF = (-inf, 30), (-inf, 50)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs CUBIC."""
    return engine != "linux" or case == "cubic"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim."""
    return [
        Row("cubic-flows", measured["cubic"]["flows"], CLOSE_TO_100, MOST),
        Row("reno-flows", measured["reno"]["flows"], BELOW_30, FEWER_THAN_HALF),
    ]
