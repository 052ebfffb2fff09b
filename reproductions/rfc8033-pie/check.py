"""The rule of rfc8033-pie: the mean delay beside the target."""

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
    """For a short look the kernel runs one case."""
    return engine != "linux" or case == "2 flows PIE"


#: RFC 8033's target.
TARGET_S = 0.015


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The delay over the target, with PIE and with drop tail, by the number of flows."""
    return [
        Row(claim, ratio(measured[f"{n} {queue}"]["delay"], (TARGET_S,)), ANY, ANY, n)
        for claim, queue in (("target", "PIE"), ("drop-tail", "drop tail"))
        for n in FLOWS
    ]
