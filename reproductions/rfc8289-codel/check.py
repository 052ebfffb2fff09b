"""The rule of rfc8289-codel: delay and goodput, beside drop tail."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "linux")
MEASURES = {"delay": "queue_delay_mean_s", "goodput": "goodput_bps"}
FLOWS = ("2 flows", "10 flows", "50 flows")

#: The claims are orders: the bands have no width of their own.
ANY = (-inf, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two cases."""
    return engine != "linux" or case in ("2 flows CoDel", "2 flows drop tail")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """CoDel over drop tail, by the number of flows."""
    return [
        Row(claim, ratio(measured[f"{n} CoDel"][claim], measured[f"{n} drop tail"][claim]), ANY, ANY, n)
        for claim in ("delay", "goodput")
        for n in FLOWS
    ]
