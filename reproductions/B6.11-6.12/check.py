"""The rule of B6.11–6.12: delay and goodput of three AQMs by base RTT."""

from collections.abc import Callable, Mapping
from math import inf

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import served_bps, waiting_quantile

ENGINES = ("packet", "linux")
MEASURES = {"median": waiting_quantile(0.5), "goodput": served_bps}
AQMS = ("ared", "codel", "pie")
RTTS = ("5 ms", "100 ms", "500 ms")

#: “Most AQMs”: two of three; one of them.
MOST, ONE = (0.66, 1.0), (0.33, 1.0)

#: “Better” delay: by a twentieth at least; up to a tenth more they are the same.
BETTER, THE_SAME = (0.0, 0.95), (0.0, 1.1)

#: “Almost the same” goodput: within 3 %; within a tenth.
ALMOST, NEAR = 0.03, 0.1

#: “A small degradation”: up to 15 %; up to a half, or none.
SMALL, SOME = (0.85, 0.999), (0.5, 1.02)

#: “Significantly better”: by 2 %; up to 2 % less they are the same.
SIGNIFICANTLY, ALIKE = (1.02, inf), (0.98, inf)


def is_quick(engine: str, case: str) -> bool:
    """A quick run has no guests."""
    del case
    return engine == "packet"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim and base RTT."""
    del published

    def of(aqm: str, at: str, measure: str) -> Values:
        return measured[f"{aqm} {at}"][measure]

    medians = {aqm: [of(aqm, at, "median") for at in RTTS] for aqm in AQMS}
    lowest = [_each(lambda seed: float(seed[1] == min(seed)), *columns) for columns in medians.values()]
    delay = _each(min, of("codel", "100 ms", "median"), of("ared", "100 ms", "median"))
    goodput = _each(_mean, of("codel", "100 ms", "goodput"), of("ared", "100 ms", "goodput"))
    others = {at: _each(max, of("codel", at, "goodput"), of("pie", at, "goodput")) for at in RTTS}
    long = ratio(of("pie", "500 ms", "goodput"), of("pie", "100 ms", "goodput"))
    return [
        Row("medium", _each(_mean, *lowest), MOST, ONE),
        Row("pie-delay", ratio(of("pie", "100 ms", "median"), delay), BETTER, THE_SAME),
        Row("pie-goodput", ratio(of("pie", "100 ms", "goodput"), goodput), near(1.0, ALMOST), near(1.0, NEAR)),
        Row("pie-long", long, SMALL, SOME),
        *(Row("ared-goodput", ratio(of("ared", at, "goodput"), others[at]), SIGNIFICANTLY, ALIKE, at) for at in RTTS),
    ]


def _mean(seed: tuple[float, ...]) -> float:
    return sum(seed) / len(seed)


def _each(function: Callable[[tuple[float, ...]], float], *columns: Values) -> Values:
    """Seed by seed."""
    seeds = ([value for value in seed if value is not None] for seed in zip(*columns, strict=True))
    return tuple(function(tuple(seed)) if len(seed) == len(columns) else None for seed in seeds)
