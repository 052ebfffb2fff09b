"""The rule of rfc8290-fqcodel: how long short transfers take beside long flows."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "linux")
MEASURES = {"time": "fct_mean_s"}

#: The claims are orders: the bands have no width of their own.
LESS, ANY = (-inf, 1.0), (-inf, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two cases."""
    return engine != "linux" or case in ("FQ-CoDel", "CoDel")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """FQ-CoDel over both others."""
    fair = measured["FQ-CoDel"]["time"]
    return [
        Row("isolation", ratio(fair, measured["CoDel"]["time"]), LESS, ANY),
        Row("fifo", ratio(fair, measured["drop tail"]["time"]), LESS, ANY),
    ]
