"""The rule of rfc9438-scalability: what CUBIC gains over Reno on a short and a long path."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "linux")
MEASURES = {"goodput": "goodput_bps"}

#: The claim is an order: the bands have no width of their own.
ANY = (0.0, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two cases."""
    return engine != "linux" or case in ("100 ms CUBIC", "100 ms Reno")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """CUBIC over Reno, by the round trip."""
    return [
        Row("ratio", ratio(measured[f"{rtt} CUBIC"]["goodput"], measured[f"{rtt} Reno"]["goodput"]), ANY, ANY, rtt)
        for rtt in ("10 ms", "100 ms")
    ]
