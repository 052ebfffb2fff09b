"""The rule of B6.14–6.15: delay and goodput of three AQMs by their target, on a testbed."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from math import inf

from ackclock.gallery import Measured, Row, Values, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet", "linux")
AQMS = {"ared": "ARED", "codel": "CoDel", "pie": "PIE"}
TARGETS = ("1 ms", "5 ms", "10 ms", "20 ms", "30 ms")

#: “All increase with target delay”: in nine of ten pairs of targets; in half it is a trend.
ORDERED, MOSTLY = (0.9, 1.0), (0.5, 1.0)

#: “Smaller”: by a twentieth at least; within a twentieth they are the same.
SMALLER, NOT_LARGER = (0.0, 0.95), (0.0, 1.05)

#: “Always above 9Mbps”; 8.5 Mb/s could be read so from a box.
ABOVE_9, ABOUT_9 = (9e6, inf), (8.5e6, inf)

#: “Larger for all target delay values”; within 2 % it is as large.
LARGER, AS_LARGE = (1.0, inf), (0.98, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs the least and the greatest target of one AQM."""
    return engine != "linux" or case in ("codel 1 ms", "codel 30 ms")


def rtt_s(view: RunView) -> float | None:
    """The median of the flows' smoothed round-trip times."""
    value = view.measured_samples["srtt_s"].quantile(0.5, interpolation="linear")
    return None if value is None else float(value)


MEASURES = {"rtt": rtt_s, "delay": "queue_delay_mean_s", "goodput": "goodput_bps"}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim and AQM."""
    del published
    others = {aqm: name for aqm, name in AQMS.items() if aqm != "ared"}
    return [
        *(
            Row("delay", _in_order(_by_target(measured, aqm, "rtt")), ORDERED, MOSTLY, name)
            for aqm, name in AQMS.items()
        ),
        *(Row("ared-delay", _shorter(measured, aqm), SMALLER, NOT_LARGER, name) for aqm, name in others.items()),
        *(
            Row("goodput", _lowest(_by_target(measured, aqm, "goodput")), ABOVE_9, ABOUT_9, name)
            for aqm, name in AQMS.items()
        ),
        Row(
            "ared-goodput", _lowest(_advantage(measured, target, tuple(others)) for target in TARGETS), LARGER, AS_LARGE
        ),
    ]


def _by_target(measured: Measured, aqm: str, measure: str) -> list[Values]:
    return [measured[f"{aqm} {target}"][measure] for target in TARGETS]


def _in_order(medians: Iterable[Values]) -> Values:
    pairs = [list(combinations(seed, 2)) for seed in _present(medians)]
    return tuple(sum(low < high for low, high in each) / len(each) if each else None for each in pairs)


def _shorter(measured: Measured, aqm: str) -> Values:
    pairs = zip(_by_target(measured, "ared", "delay"), _by_target(measured, aqm, "delay"), strict=True)
    return tuple(sum(seed) / len(seed) if seed else None for seed in _present(ratio(*pair) for pair in pairs))


def _advantage(measured: Measured, target: str, others: Iterable[str]) -> Values:
    """ARED's goodput over the best of the others', at one target."""
    best = tuple(max(seed, default=None) for seed in _present(measured[f"{aqm} {target}"]["goodput"] for aqm in others))
    return ratio(measured[f"ared {target}"]["goodput"], best)


def _lowest(values: Iterable[Values]) -> Values:
    return tuple(min(seed, default=None) for seed in _present(values))


def _present(cases: Iterable[Values]) -> list[list[float]]:
    """For each seed the values of the cases that have one."""
    return [[value for value in seed if value is not None] for seed in zip(*cases, strict=True)]
