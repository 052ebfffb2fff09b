"""The rule of B5.4–5.6: 100 flows at 200 ms, CUBIC beside New Reno."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import synchronised_flows, window_fall

ENGINES = ("packet", "linux")
MEASURES = {"fall": window_fall, "losses": "losses_per_epoch", "flows": synchronised_flows}
BUFFERS = ("0.1 BDP", "0.3 BDP", "0.6 BDP", "1 BDP")

#: “Closes to 20%”: a fall of 15 to 25 % would be read so from a figure; one of 10 to 30 % is still of its kind.
CLOSE_TO_20, ABOUT_20 = (0.15, 0.25), (0.10, 0.30)

#: “Clearly smaller than 50%”: at most 40 %; at 50 % all flows would have lost.
CLEARLY_BELOW_50, BELOW_50 = (-inf, 0.40), (-inf, 0.50)

#: “Higher values for TCP Cubic”: by a tenth at least; within a tenth of each other they are the same.
HIGHER, THE_SAME = (1.1, inf), (1 / 1.1, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs what the figure shows."""
    return engine != "linux" or case.endswith(" 1 BDP")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim and buffer."""
    rows = [row for buffer in BUFFERS for row in _rows(measured, buffer)]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _rows(measured: Measured, at: str) -> list[Row]:
    cubic, reno = (measured[f"{name} {at}"] for name in ("cubic", "reno"))
    return [
        Row("cubic-fall", cubic["fall"], CLOSE_TO_20, ABOUT_20, at),
        Row("reno-fall", reno["fall"], CLEARLY_BELOW_50, BELOW_50, at),
        Row("losses", ratio(cubic["losses"], reno["losses"]), HIGHER, THE_SAME, at),
        Row("flows", ratio(cubic["flows"], reno["flows"]), HIGHER, THE_SAME, at),
    ]
