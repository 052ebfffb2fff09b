"""The rule of B5.23–5.24: 100 flows of CUBIC, LinCubic and AccuCubic, with fast convergence and without."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import synchronised_flows

ENGINES = ("packet", "linux", "ns2")
MEASURES = {"flows": synchronised_flows}

#: “Noticeably decreases the number of synchronized flows”: by a tenth at least; within a tenth it is the same.
FEWER, NOT_MORE = (-inf, 0.9), (-inf, 1.1)

#: “Only LinCubic performs better”: AccuCubic does not, by more than a tenth; by three tenths it clearly would.
NOT_FEWER, NOT_CLEARLY_FEWER = (0.9, inf), (0.7, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs what one row needs; ns-2 has nothing of what a row needs."""
    looked = {"linux": ("cubic FC off", "lincubic FC off"), "ns2": ("lincubic FC off",)}
    return engine not in looked or case in looked[engine]


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    return [
        Row("lincubic-on", _relative_to_cubic(measured, "lincubic", "FC on"), FEWER, NOT_MORE),
        Row("accucubic-on", _relative_to_cubic(measured, "accucubic", "FC on"), FEWER, NOT_MORE),
        Row("lincubic-off", _relative_to_cubic(measured, "lincubic", "FC off"), FEWER, NOT_MORE),
        Row("accucubic-off", _relative_to_cubic(measured, "accucubic", "FC off"), NOT_FEWER, NOT_CLEARLY_FEWER),
    ]


def _relative_to_cubic(measured: Measured, control: str, fc: str) -> tuple[float | None, ...]:
    return ratio(measured[f"{control} {fc}"]["flows"], measured[f"cubic {fc}"]["flows"])
