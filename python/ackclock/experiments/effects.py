"""Effects of swept keys on a metric: the analysis of variance of a finished sweep, and sentences about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from ackclock.errors import InputError
from ackclock.experiments.anova import Analysis, Step, Term, analyse
from ackclock.experiments.search.criteria import named
from ackclock.experiments.sweep.result import Sweep
from ackclock.figures import numbers
from ackclock.metrics import METRICS
from ackclock.scenario.points import Axis, label, short_keys

#: A term is clear if the chance that it is none is below this, shared among all terms (Bonferroni).
RISK = 0.05


#: Names of the error estimates.
ERRORS = {
    "repeats": "Intervals come from the repeats of each point",
    "model": "There are no repeats: intervals assume that no three keys interact",
    "factors": "Pairs of keys cannot be told apart: intervals assume that they do not interact",
    "none": "There are too few runs for intervals: add seeds (--repeats)",
}

#: Description of an interaction.
DEPENDS = "what one of the two does depends on the other"

#: A pair is told if it makes at least this share of the differences.
WORTH = 0.05


@dataclass(frozen=True)
class Effects:
    """`axes` are the factors, those of several values; `runs` had a value of the metric, `without` had none."""

    sweep: Sweep
    metric: str
    axes: tuple[Axis, ...]
    analysis: Analysis
    runs: int
    without: int
    seeds: bool

    @property
    def terms(self) -> list[Term]:
        """Keys and pairs, the one that matters most first."""
        return sorted(self.analysis.terms, key=lambda term: (-term.share, term.factors))

    def clear(self, term: Term) -> bool:
        """Return True if the effect is significant."""
        return term.p is not None and term.p < RISK / len(self.analysis.terms)

    def named(self, term: Term) -> str:
        """`limit`, or `limit × rtt`."""
        names = short_keys(self.axes)
        return " × ".join(names[factor] for factor in term.factors)

    def step(self, term: Term) -> Step | None:
        """Return the largest step between two values of a single key."""
        return self.analysis.steps[term.factors[0]] if len(term.factors) == 1 else None

    def values(self, step: Step) -> tuple[str, str]:
        """The two values."""
        written = self.axes[step.factor].values
        return label(written[step.low]), label(written[step.high])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ackclock effects --json` prints."""
        found = self.analysis
        return {
            "scenario": self.sweep.name,
            "engine": self.sweep.engine,
            "metric": self.metric,
            "runs": self.runs,
            "error": {"from": found.error, "freedom": found.error_freedom, "variance": found.error_variance},
            "effects": [self._as_json(term) for term in self.terms],
        }

    def _as_json(self, term: Term) -> dict[str, Any]:
        told: dict[str, Any] = {
            "keys": [self.axes[factor].key for factor in term.factors],
            "share": term.share,
            "p": term.p,
            "clear": self.clear(term),
        }
        if step := self.step(term):
            low, high = self.values(step)
            half = step.half_width
            bounds = (None, None) if half is None else (step.effect - half, step.effect + half)
            told |= {"from": low, "to": high, "effect": step.effect, "ci95_low": bounds[0], "ci95_high": bounds[1]}
        return told


def effects(sweep: Sweep, metric: str) -> Effects:
    """The analysis of one metric. Where all points were run with the same seeds, these are blocks.

    Raises `InputError` for a metric that was not computed or has no values, and for a sweep of fewer than two points,
    or one whose runs with a value do not have two values of each key.
    """
    name = _metric(sweep, metric)
    table = sweep.table.filter(pl.col(name).is_not_null())
    axes = tuple(axis for axis in sweep.axes if sweep.table[axis.key].n_unique() > 1)
    if not axes:
        raise InputError(f"{sweep.folder}: found one point; expected a sweep of two or more")
    levels = [_levels(table, axis) for axis in axes]
    if not table.height or any(len(set(column)) < 2 for column in levels):
        what = "no run with a value" if not table.height else "values at one value of a key only"
        raise InputError(f"{sweep.folder}: found {what} of {name}; expected another metric")
    seeds = _same_seeds(table)
    found = analyse(list(zip(*levels, strict=True)), table[name].to_list(), table["seed"].to_list() if seeds else None)
    return Effects(sweep, name, axes, found, table.height, sweep.table.height - table.height, seeds)


def _metric(sweep: Sweep, metric: str) -> str:
    name = named(metric, "--metric")
    if name not in sweep.metrics:
        raise InputError(
            f"--metric: found {name}, which this sweep does not have; expected {' or '.join(sweep.metrics[:6])}"
        )
    return name


def _levels(table: pl.DataFrame, axis: Axis) -> list[int]:
    """Return the level of the key in each run, as numbers."""
    kind = table[axis.key].dtype
    places = {label(value) if kind == pl.String else value: place for place, value in enumerate(axis.values)}
    return [places[value] for value in table[axis.key].to_list()]


def _same_seeds(table: pl.DataFrame) -> bool:
    """Return True if each point has the same seeds, and several."""
    sets = {tuple(group["seed"].sort()) for _, group in table.group_by("point")}
    return len(sets) == 1 and len(next(iter(sets))) > 1


def sentences(found: Effects) -> list[str]:
    """Return sentences: the largest effect, the others, what has none, and how the errors are estimated."""
    return [*_largest(found), *_others(found), *_pairs(found), *_nothing(found), _error_text(found)]


def effect(found: Effects, step: Step) -> str:
    """`+11.3 ± 0.4 ms`; of a share `+3.1 ± 0.2 percentage points`."""
    unit = METRICS[found.metric].unit
    text = numbers.signed(step.effect, unit, step.half_width)
    return text.removesuffix("%") + "percentage points" if unit == "share" else text


def share(part: float) -> str:
    """`72 %`."""
    return f"{100 * part:.1f} %" if part < 0.1 else f"{100 * part:.0f} %"


def _largest(found: Effects) -> Iterator[str]:
    title = METRICS[found.metric].label
    first = found.terms[0]
    if found.analysis.error != "none" and not any(map(found.clear, found.terms)):
        yield f"{title}: no key has a clear effect."
        return
    most = f"{title}: {found.named(first)} matters most ({share(first.share)} of the differences)"
    yield f"{most}. {_does(found, first)}" if found.step(first) else f"{most}: {DEPENDS}."


def _does(found: Effects, term: Term) -> str:
    step = found.step(term)
    assert step is not None
    low, high = found.values(step)
    return f"From {low} to {high} the mean changes by {effect(found, step)}."


def _others(found: Effects) -> Iterator[str]:
    for term in found.terms[1:]:
        if found.step(term) and found.clear(term):
            yield f"{found.named(term)} ({share(term.share)}): {_does(found, term)[0].lower()}{_does(found, term)[1:]}"


def _pairs(found: Effects) -> Iterator[str]:
    told = [term for term in found.terms[1:] if len(term.factors) == 2 and found.clear(term) and term.share >= WORTH]
    for term in told:
        yield f"{found.named(term)} ({share(term.share)}): {DEPENDS}."


def _nothing(found: Effects) -> Iterator[str]:
    if found.analysis.error == "none" or not any(map(found.clear, found.terms)):
        return
    if idle := [found.named(term) for term in found.terms if found.step(term) and not found.clear(term)]:
        yield f"No clear effect: {', '.join(idle)}."


def _error_text(found: Effects) -> str:
    text = ERRORS[found.analysis.error]
    if found.analysis.error == "repeats" and found.seeds:
        text += ", of which the same seeds are compared with each other"
    if found.without:
        text += f". {found.without} of {found.runs + found.without} runs have no value"
    return f"{text}."
