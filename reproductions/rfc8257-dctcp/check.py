"""The rule of rfc8257-dctcp: queue and goodput, beside New Reno."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "linux")
MEASURES = {"queue": "queue_delay_mean_s", "goodput": "goodput_bps"}
FLOWS = ("2 flows", "10 flows", "20 flows")

#: The claims are orders: the bands have no width of their own.
ANY = (-inf, inf)


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """DCTCP over New Reno, by the number of flows."""
    return [
        Row(claim, ratio(measured[f"{n} DCTCP"][claim], measured[f"{n} Reno"][claim]), ANY, ANY, n)
        for claim in ("queue", "goodput")
        for n in FLOWS
    ]
