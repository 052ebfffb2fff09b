"""Rows: values measured by case and seed, beside what a paper says, with a verdict by two bands.

A row's value is the mean over its runs. Inside the inner band it *agrees* with the paper; inside the outer one it
*differs*: what the paper says still holds in kind, not in size; outside both it *contradicts* the paper. A row of
which no run has a value is *not measured*. It is *undetermined* what a row says whose 95 % interval reaches from what
agrees to what contradicts, or that has another verdict in its perturbed runs (`experiments.phase_effects`).
The bands are the entry's, written as numbers beside the paper's words in its `check.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.metrics import METRICS, RunView, value
from ackclock.metrics.summary import Summary, summarise

#: A value for each seed, in their order; None where there was nothing to measure.
Values: TypeAlias = tuple[float | None, ...]

#: Case → measure → values: `measured["cubic"]["losses"]`.
Measured: TypeAlias = Mapping[str, Mapping[str, Values]]

#: A metric's name, or a function of one run.
Measure: TypeAlias = str | Callable[[RunView], float | None]

AGREES, DIFFERS, UNDETERMINED = "agrees", "differs", "undetermined"
NOT_MEASURED, CONTRADICTS = "not measured", "contradicts"

#: From the least to the greatest value that a band holds; ±infinity where it is open.
Band: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Row:
    """One reproduced value beside a published claim.

    `claim` is its row in `published.csv`, `at` the case, if the claim is about several. `aside` marks a row that is
    shown but does not count for the entry's verdict: another interpretation of the set-up, say. `because` says why a
    row has no value, where that is known. `limits` are what
    the value can be at all, where an interval is cut; a lower bound of 0 and an upper one of 1 that both bands have are
    such limits anyway. `perturbed` are the values in the perturbed run, where that was made.
    """

    claim: str
    values: Values
    agrees: Band
    differs: Band
    at: str = ""
    aside: bool = False
    because: str = ""
    limits: Band = (-math.inf, math.inf)
    perturbed: Values = ()

    @property
    def summary(self) -> Summary:
        """Mean and 95 % interval over the runs."""
        return summarise(self.values)

    @property
    def verdict(self) -> str:
        """Agrees, differs, contradicts, undetermined or not measured."""
        if (mean := self.summary.mean) is None:
            return NOT_MEASURED
        return UNDETERMINED if self._reaches or self._locked else self._of(mean)

    def _of(self, mean: float) -> str:
        return AGREES if _inside(mean, self.agrees) else DIFFERS if _inside(mean, self.differs) else CONTRADICTS

    @property
    def _reaches(self) -> bool:
        """Return True if the interval reaches from what agrees to what contradicts."""
        found = self.summary
        if found.ci95_low is None or found.ci95_high is None:
            return False
        least, most = self.limits
        if self.agrees[0] == self.differs[0] == 0:
            least = max(least, 0.0)
        if self.agrees[1] == self.differs[1] == 1:
            most = min(most, 1.0)
        low, high = max(found.ci95_low, least), min(found.ci95_high, most)
        agrees = low <= self.agrees[1] and high >= self.agrees[0]
        return agrees and (low < self.differs[0] or high > self.differs[1])

    @property
    def _locked(self) -> bool:
        """Return True if the perturbed run has another verdict."""
        here, there = self.summary.mean, summarise(self.perturbed).mean if self.perturbed else None
        return here is not None and there is not None and self._of(here) != self._of(there)

    def why(self, unit: str) -> str:
        """The reason of the verdict: where the value lies, with the bounds in `unit`."""
        bands = {
            NOT_MEASURED: self.because or "without a value in any run",
            AGREES: f"{_band_text(self.agrees, unit)}",
            DIFFERS: f"not {_band_text(self.agrees, unit)}, but {_band_text(self.differs, unit)}",
            UNDETERMINED: self._doubt(unit),
            CONTRADICTS: f"not {_band_text(self.differs, unit)}",
        }
        return bands[self.verdict]

    def _doubt(self, unit: str) -> str:
        here, there = self.summary.mean, summarise(self.perturbed).mean if self.perturbed else None
        if self._locked and here is not None and there is not None:
            noisy = f"{self._of(there)}, {numbers.value(there, unit)}, where hosts take time for packets"
            return f"phase-locked: {self._of(here)} here; {noisy}"
        return f"the interval reaches from {_band_text(self.agrees, unit)} to beyond {_band_text(self.differs, unit)}"


def near(published: float, tolerance: float) -> Band:
    """The band of values that are off by at most this share of the published one."""
    return published - tolerance * abs(published), published + tolerance * abs(published)


def _inside(value: float, band: Band) -> bool:
    return band[0] <= value <= band[1]


def _band_text(band: Band, unit: str) -> str:
    low, high = (_bound(bound, unit) if math.isfinite(bound) else "" for bound in band)
    if low and high:
        return f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else "any"


def _bound(value: float, unit: str) -> str:
    """`15 %` for 0.15, as a rule is written: without the zeros of a measured value."""
    return re.sub(r"(\.\d*?)0+(?!\d)", r"\1", numbers.value(value, unit)).replace(". ", " ").removesuffix(".")


def ratio(above: Values, below: Values) -> Values:
    """Seed by seed, `above` / `below`; None where either is missing or `below` is 0.

    A single value, as of a deterministic engine, stands for every seed.
    """
    runs = max(len(above), len(below))
    pairs = zip(_each(above, runs), _each(below, runs), strict=True)
    return tuple(None if one is None or not other else one / other for one, other in pairs)


def in_order(columns: Sequence[Values]) -> Values:
    """Seed by seed, the share of the pairs of columns in which the later is greater; None where a value is missing."""
    return tuple(map(_share_in_order, zip(*columns, strict=True)))


def _share_in_order(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    pairs = [low < high for low, high in combinations(known, 2)]
    return sum(pairs) / len(pairs) if len(known) == len(values) else None


def _each(values: Values, runs: int) -> Values:
    """Return a value for each run; of an engine that ran nothing, None."""
    return (values or (None,)) * runs if len(values) <= 1 else values


def of_run(view: RunView, measures: Mapping[str, Measure]) -> dict[str, float | None]:
    """Every measure of one run; None where it is missing or not a number. Raises `InputError` for an unknown metric."""
    return {name: _one(view, measure) for name, measure in measures.items()}


def _one(view: RunView, measure: Measure) -> float | None:
    if not isinstance(measure, str):
        measured = measure(view)
        return None if measured is None or math.isnan(measured) else measured
    if measure not in METRICS or METRICS[measure].per_flow:
        raise InputError(f"MEASURES: found {measure!r}; expected a function of a run, or a metric with one value")
    found = value(view, measure)
    return None if isinstance(found, list) else found
