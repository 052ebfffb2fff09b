"""The rule of R6.8–6.14: response times of short downloads beside an upload, with and without small UDP packets."""

from collections.abc import Callable, Mapping
from math import inf

import polars as pl

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.reproductions.transfers import completion_of

ENGINES = ("packet", "linux")
BENCH = {"50 %": 0.5, "17 %": 0.17}
LINES = (*BENCH, "ADSL 1/s", "ADSL 6/s")

#: The down link is the first; 1448 of 1500 bytes are payload.
DOWN, PAYLOAD = 0, 1448 / 1500

#: A load with a heavy tail in 1000 s: within a quarter; within a factor of three it is of its kind.
SAME_LOAD, ALIKE_LOAD = (0.75, 1.25), (1 / 3, 3.0)

#: “The lowest”; up to a tenth more it is close.
LOWEST, CLOSE = (0.0, 1.0), (0.0, 1.1)

#: “Identical”: within a tenth; within a third it is of its kind.
IDENTICAL, OF_ITS_KIND = near(1.0, 0.1), near(1.0, 1 / 3)

#: “Noticeably lower”: by a fifth at least; lower.
NOTICEABLY, LOWER = (0.0, 0.8), (0.0, 1.0)

#: “Similar”: within a fifth; within two fifths it is of its kind.
SIMILAR, ALIKE = near(1.0, 0.2), near(1.0, 0.4)

#: “Halved”: 0.4 to 0.6; a quarter to nine tenths.
HALVED, LESS = (0.4, 0.6), (0.25, 0.9)

#: “More than 40 %”; less at all.
BY_40, AT_ALL = (0.0, 0.6), (0.0, 1.0)

#: “Never negative”: not more than a fiftieth; than a fifth.
NOT_WORSE, HARDLY_WORSE = (0.0, 1.02), (0.0, 1.2)

#: “Absurd”: not a twentieth less; not a fifth less.
NO_GAIN, HARDLY_A_GAIN = (0.95, inf), (0.8, inf)

#: “Far above”: by a quarter at least; above.
FAR_ABOVE, ABOVE = (1.25, inf), (1.0, inf)


def load(view: RunView) -> float:
    """Return the downloads' goodput as a share of the down link's payload rate."""
    downloads = view.flows.filter(pl.col("size_bytes").is_not_null())
    return 8 * float(downloads["measured_bytes"].sum()) / view.measured_s / (view.plan.links[DOWN].rate_bps * PAYLOAD)


MEASURES = {"load": load, "response": completion_of(most=100)}


def runs(engine: str, case: str) -> bool:
    """The kernel runs what is claimed of small packets: with Vegas on the ADSL lines, with the others on the bench."""
    return engine == "packet" or (("ADSL" in case) == ("Vegas" in case) and "half" not in case)


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim; response times are of downloads of up to 100 segments."""

    def time(line: str, up: str, beside: str = "alone") -> Values:
        return measured[f"{line} {up} {beside}"]["response"]

    def better(line: str) -> Values:
        return _each(min, time(line, "Reno"), time(line, "CUBIC"))

    def udp(line: str, up: str) -> Values:
        return ratio(time(line, up, "UDP"), time(line, up))

    rows = []
    for at, value in BENCH.items():
        same, alike = ((value * low, value * high) for low, high in (SAME_LOAD, ALIKE_LOAD))
        rows.append(Row("load", measured[f"{at} Reno alone"]["load"], same, alike, at, aside=True))
    rows += [Row("vegas", ratio(time(at, "Vegas"), better(at)), LOWEST, CLOSE, at) for at in LINES]
    rows += [Row("same", ratio(time(at, "CUBIC"), time(at, "Reno")), IDENTICAL, OF_ITS_KIND, at) for at in BENCH]
    rows += [
        Row(
            "same",
            ratio(time(at, "half CUBIC"), time(at, "Reno")),
            IDENTICAL,
            OF_ITS_KIND,
            f"{at}, keeps .5",
            aside=True,
        )
        for at in BENCH
    ]
    for up in ("Reno", "CUBIC"):
        rows += [
            Row("lower", udp("50 %", up), NOTICEABLY, LOWER, up),
            *(Row("as-vegas", ratio(time(at, up, "UDP"), time(at, "Vegas")), SIMILAR, ALIKE, f"{at}, {up}")
              for at in BENCH),
            Row("halved", udp("17 %", up), HALVED, LESS, up),
            Row("adsl", udp("ADSL 1/s", up), BY_40, AT_ALL, up),
            Row("six", udp("ADSL 6/s", up), NOT_WORSE, HARDLY_WORSE, up),
        ]  # fmt: skip
    rows += [Row("pointless", udp(at, "Vegas"), NO_GAIN, HARDLY_A_GAIN, at) for at in LINES]
    worse = _each(max, time("ADSL 6/s", "CUBIC"), time("ADSL 6/s", "Vegas"))
    rows.append(Row("reno-six", ratio(time("ADSL 6/s", "Reno"), worse), FAR_ABOVE, ABOVE))
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _each(choose: Callable[[tuple[float, ...]], float], *columns: Values) -> Values:
    """Seed by seed."""
    seeds = ([value for value in seed if value is not None] for seed in zip(*columns, strict=True))
    return tuple(choose(tuple(seed)) if len(seed) == len(columns) else None for seed in seeds)
