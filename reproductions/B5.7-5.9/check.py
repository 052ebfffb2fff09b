"""The rule of B5.7–5.9: 100 flows at 10 ms, CUBIC beside New Reno."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import synchronised_flows, window_fall

ENGINES = ("packet", "linux")
MEASURES = {"fall": window_fall, "losses": "losses_per_epoch", "flows": synchronised_flows}

#: “Less than 20%”; up to 25 % it could be read so from the figure.
LESS_THAN_20, ABOUT_20 = (-inf, 0.20), (-inf, 0.25)

#: “Approaches the one of TCP New Reno”: within a quarter of it; within a factor of two they are of the same kind.
CLOSE, ALIKE = (1 / 1.25, 1.25), (1 / 2, 2)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs CUBIC."""
    return engine != "linux" or case == "cubic"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim."""
    cubic, reno = measured["cubic"], measured["reno"]
    return [
        Row("cubic-fall", cubic["fall"], LESS_THAN_20, ABOUT_20),
        Row("losses", ratio(cubic["losses"], reno["losses"]), CLOSE, ALIKE),
        Row("flows", ratio(cubic["flows"], reno["flows"]), CLOSE, ALIKE),
    ]
