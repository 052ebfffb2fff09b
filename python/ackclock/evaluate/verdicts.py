"""Verdicts: is the candidate more harmful than the standards-track algorithms in its place? By intervals, not points.

*Harm* (R. Ware, M. Mukerjee, S. Seshan, J. Sherry: Beyond Jain's Fairness Index, HotNets 2019) is the share of what a
victim has by itself that a competitor takes: (x − y) / x of a goodput x that becomes y, (y − x) / y of a delay or a
loss. A change for the better is negative harm, with the same denominator mirrored, so harm lies between −1 and 1. What
is too small to matter does no harm: a loss is compared with at least `FLOORS`.

*Excess* is the candidate's harm minus that of a reference algorithm in the same run: same seed, starts, transfers and
random losses (common random numbers). Where there is no victim, the excess is the harm of what the run has with the
candidate relative to what it has with the reference.

*Verdict.* Each excess has a Student interval over the seeds. *More harmful*: the interval lies above `MARGIN` for every
reference. *No more harmful*: it lies below for one of them at least, since one standards-track algorithm that does as
much is precedent (RFC 9743 section 5.2). Else *undecided*, and more seeds are run. Both decisions are therefore about
10 % of harm, and both need an interval that is narrow enough to show it.

*Error rate.* A verdict that is wrong, in either direction, has a probability of at most `RISK`: each look at more seeds
has an equal part of it, and so has each reference (Bonferroni). The rate is that of a verdict, not of all together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ackclock.metrics import METRICS
from ackclock.metrics.summary import student_quantile

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Rules for findings read from a file, in pydantic's words.
READ: Any = {"allow_inf_nan": False, "extra": "forbid"}

#: Harm that is still accepted in excess of a reference's: a tenth of what the victim has.
MARGIN = 0.1

#: Probability that a verdict is wrong.
RISK = 0.01

#: Least value that a harm is a share of, by metric or unit: the limit of circuit breakers; one packet in a hundred, a
#: packet in ten round trips, one timeout.
FLOORS = {"breaker_load": 1.0, "share": 0.01, "packets": 0.1, "": 1.0}

#: Verdicts, and the kinds of findings.
VERDICTS = WORSE, NO_WORSE, UNDECIDED = "more harmful", "no more harmful", "undecided"
KINDS = ("harm", "performance")


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean of `n` values and the interval on which a verdict rests; without ends for one value that chance has made."""

    __pydantic_config__ = READ

    mean: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Finding:
    """A verdict on one metric at one point of a case.

    `values` are the means of the metric by variant, `excess` the intervals by reference, `by_seed` the excess over the
    seeds. `kind` is "harm" to others, or "performance" of the tested flows.
    """

    __pydantic_config__ = READ

    engine: str
    case: str
    section: str
    point: Mapping[str, str]
    kind: str
    metric: str
    verdict: str
    values: Mapping[str, float | None]
    excess: Mapping[str, Interval]
    by_seed: Mapping[str, Mapping[int, float]]

    @property
    def key(self) -> tuple[str, ...]:
        """Return what identifies the question, whatever the candidate."""
        return (self.engine, self.case, self.metric, self.kind, *(f"{k}={v}" for k, v in self.point.items()))

    @property
    def smallest(self) -> Interval | None:
        """Return the excess over the reference that the candidate is closest to."""
        return min(self.excess.values(), key=lambda found: found.mean, default=None)

    @property
    def sentence(self) -> str:
        """Return the verdict; of performance in other words."""
        return (
            self.verdict if self.kind == "harm" else {WORSE: "worse", NO_WORSE: "no worse"}.get(self.verdict, UNDECIDED)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            **asdict(self),
            "by_seed": {name: {str(s): e for s, e in some.items()} for name, some in self.by_seed.items()},
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Finding:
        """Return the finding that `as_dict` gave. Raises `TypeError` or `ValueError` for any other."""
        found: Finding = _reader().validate_json(json.dumps(content), strict=True)
        excesses = (each for some in found.by_seed.values() for each in some.values())
        if found.verdict not in VERDICTS or found.kind not in KINDS or not all(abs(each) <= 2 for each in excesses):
            raise ValueError("found no verdict, or an excess that is no difference of two harms")
        return found


@cache
def _reader() -> TypeAdapter[Finding]:
    from pydantic import TypeAdapter

    return TypeAdapter(Finding)


def harm(before: float, after: float, metric: str) -> float:
    """Return the harm done to a metric, from −1 (all for the better) to 1 (nothing is left)."""
    about = METRICS[metric]
    is_more = about.better == "more"
    scale = max(before, after, 0.0 if is_more else FLOORS.get(about.name, FLOORS.get(about.unit, 0.0)))
    return 0.0 if scale == 0 else (before - after if is_more else after - before) / scale


def interval(values: Sequence[float], risk: float, *, exact: bool = False) -> Interval:
    """Return Student's interval whose ends are each wrong with probability `risk`.

    Values that are all the same, or a single `exact` one, have no chance in them: the interval is their mean.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Interval(mean, mean if exact else None, mean if exact else None, n)
    squares = math.fsum((value - mean) ** 2 for value in values)
    if squares <= (1e-12 * max(abs(mean), 1e-12)) ** 2 * n:
        return Interval(mean, mean, mean, n)
    half = student_quantile(n - 1, 1 - risk) * math.sqrt(squares / (n - 1) / n)
    return Interval(mean, mean - half, mean + half, n)


def verdict(excess: Mapping[str, Interval]) -> str:
    """Return the verdict of the intervals by reference."""
    found = [each for each in excess.values() if each.low is not None and each.high is not None]
    if not found or len(found) < len(excess):
        return UNDECIDED
    if any(each.high is not None and each.high <= MARGIN for each in found):
        return NO_WORSE
    return WORSE if all(each.low is not None and each.low > MARGIN for each in found) else UNDECIDED


def excesses(
    metric: str,
    candidate: Mapping[int, float | None],
    references: Mapping[str, Mapping[int, float | None]],
    alone: Mapping[int, float | None] | None,
) -> dict[str, dict[int, float]]:
    """Return the excess of the candidate over each reference by seed; values are those of a metric by seed.

    `alone` has those of the victim by itself. Seeds in which a value is null are left out.
    """
    found: dict[str, dict[int, float]] = {}
    for name, reference in references.items():
        found[name] = {}
        for seed in sorted(candidate.keys() & reference.keys()):
            after, other = candidate[seed], reference[seed]
            before = other if alone is None else alone.get(seed)
            if after is None or other is None or before is None:
                continue
            own = 0.0 if alone is None else harm(before, other, metric)
            found[name][seed] = harm(before, after, metric) - own
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """A question whose answer differs between two evaluations: both verdicts, and the difference of the excess."""

    before: Finding
    after: Finding
    difference: Interval | None

    @property
    def is_significant(self) -> bool:
        """Return True if the interval of the difference excludes 0."""
        found = self.difference
        return (
            found is not None and found.low is not None and found.high is not None and not found.low <= 0 <= found.high
        )


def changes(before: Sequence[Finding], after: Sequence[Finding]) -> list[Change]:
    """Return what changed between two evaluations: other decided verdicts, or another excess by `RISK`.

    Seeds that both have are pairs. Questions that only one of them has are left out.
    """
    earlier = {finding.key: finding for finding in before}
    found = [Change(old, new, _difference(old, new)) for new in after if (old := earlier.get(new.key))]
    return [each for each in found if each.is_significant or _is_reversed(each)]


def _is_reversed(change: Change) -> bool:
    verdicts = {change.before.verdict, change.after.verdict}
    return len(verdicts) == 2 and UNDECIDED not in verdicts


def _difference(old: Finding, new: Finding) -> Interval | None:
    """Return the difference of the excess over the first reference that both have."""
    for name in new.by_seed:
        seeds = sorted(new.by_seed[name].keys() & old.by_seed.get(name, {}).keys())
        if seeds:
            return interval([new.by_seed[name][seed] - old.by_seed[name][seed] for seed in seeds], RISK / 2)
    return None
