"""The rule of B5.7–5.9: 100 flows at 10 ms, CUBIC beside New Reno."""

from collections.abc import Mapping
from math import inf

from ackclock.campaigns.reproduce import Measured, Row, ratio
from ackclock.campaigns.reproduce.entry import Published
from ackclock.reproductions.measures import synchronised_flows, window_fall

ENGINES = ("packet", "linux")
MEASURES = {"fall": window_fall, "losses": "losses_per_epoch", "flows": synchronised_flows}

#: “Less than 20%”; up to 25 % it could be read so from the figure.
LESS_THAN_20, ABOUT_20 = (-inf, 0.20), (-inf, 0.25)

#: “Approaches the one of TCP New Reno”: within a quarter of it; within a factor of two they are of the same kind.
CLOSE, ALIKE = (1 / 1.25, 1.25), (1 / 2, 2)


def runs(engine: str, case: str) -> bool:
    """The kernel runs what counts; New Reno as it was in 2014 is not in it any more."""
    return engine != "linux" or "2014" not in case


def looks(engine: str, case: str) -> bool:
    """For a short look the kernel runs CUBIC."""
    return engine != "linux" or case == "cubic"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim, and as asides those of a kernel of 2014."""
    rows = [*_rows(measured, ""), *_rows(measured, " 2014")]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _rows(measured: Measured, kernel: str) -> list[Row]:
    cubic, reno = (measured[f"{name}{kernel}"] for name in ("cubic", "reno"))
    at, aside = ("kernel of 2014", True) if kernel else ("", False)
    return [
        Row("cubic-fall", cubic["fall"], LESS_THAN_20, ABOUT_20, at, aside),
        Row("losses", ratio(cubic["losses"], reno["losses"]), CLOSE, ALIKE, at, aside),
        Row("flows", ratio(cubic["flows"], reno["flows"]), CLOSE, ALIKE, at, aside),
    ]
