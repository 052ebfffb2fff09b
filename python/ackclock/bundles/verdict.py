"""Comparison of a rerun with the bundled result, metric by metric.

A metric is *equal* if all its values are, *within* if the difference of the means has zero in its 95 % interval
(Welch's, as between engines), else it *differs*. One run, or one without chance in it, has no interval: its values may
be apart by the rounding of a sum that another machine or library adds up in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.experiments.comparison import Sample, difference
from ackclock.metrics import METRICS

#: Verdicts, the worst last.
EQUAL, WITHIN, DIFFERS = "equal", "within", "differs"

#: Relative difference of two sums of the same 64-bit numbers in different orders: 2⁻⁵³ × ten million of them.
ROUNDING = 1e-9

#: No metric is greater: its square is a number yet.
GREATEST = 1e150

#: Metrics of a run by their names.
Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric's means, of what was given and of what was run again, and the verdict. `where`: of which part."""

    name: str
    given: float | None
    rerun: float | None
    verdict: str
    where: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name, "given": self.given, "again": self.rerun, "verdict": self.verdict, "where": self.where,
        }  # fmt: skip


def metrics(given: Sequence[Run], again: Sequence[Run], *, exact: bool = False, where: str = "") -> list[Metric]:
    """The metrics that either has, in their order; `exact` if chance has no part in them."""
    scalars = [metric.name for metric in METRICS.values() if not metric.per_flow]
    return [
        Metric(name, _mean(before), _mean(now), _verdict(before, now, exact), where)
        for name in scalars
        if (before := _values(given, name)) + (now := _values(again, name))
    ]


def worst(found: Iterable[Metric]) -> str:
    """The worst verdict of several; equal if there are none."""
    order = (EQUAL, WITHIN, DIFFERS)
    return max((metric.verdict for metric in found), key=order.index, default=EQUAL)


def _values(runs: Sequence[Run], name: str) -> list[float]:
    values = [run.get(name) for run in runs]
    return [float(value) for value in values if isinstance(value, (int, float)) and abs(value) <= GREATEST]


def _mean(values: Sequence[float]) -> float | None:
    return Sample(values).mean if values else None


def _verdict(given: Sequence[float], again: Sequence[float], exact: bool) -> str:
    if given == again:
        return EQUAL
    apart = difference(Sample(given, exact), Sample(again, exact))
    if apart is None:
        return DIFFERS
    if apart.ci95_low is not None and apart.ci95_high is not None and apart.ci95_low <= 0.0 <= apart.ci95_high:
        return WITHIN
    return WITHIN if abs(apart.mean) <= ROUNDING * abs(Sample(given).mean) else DIFFERS
