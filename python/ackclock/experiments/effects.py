"""Effects of swept keys on a metric: the analysis of variance of a finished sweep, and sentences about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.errors import InputError
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


Matrix = npt.NDArray[np.float64]

#: Singular values below this share of the largest one are taken for 0.
RANK = 1e-9

#: The confidence of intervals.
SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Term:
    """A factor, or a pair, by their numbers. `share` of the sum of squares of all but the blocks.

    `p` is that of the F test; null without an estimate of errors.
    """

    factors: tuple[int, ...]
    squares: float
    freedom: int
    share: float
    p: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """Largest step of the mean between two levels of a factor.

    The interval holds for all pairs of the factor's levels together (Tukey and Kramer); of two levels it is Student's.
    """

    factor: int
    low: int
    high: int
    effect: float
    half_width: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """`terms` in the order of factors, then pairs; `steps` of each factor; how errors were estimated."""

    terms: tuple[Term, ...]
    steps: tuple[Step, ...]
    error: str
    error_freedom: int
    error_variance: float | None
    pairs: bool


def analyse(levels: Sequence[Sequence[int]], values: Sequence[float], blocks: Sequence[int] | None = None) -> Analysis:
    """The analysis of values at levels of factors: a row of `levels`, each from 0, for each value.

    `blocks` are numbers of what several values have in common, as the seed of a run. Raises `ValueError` if there is a
    factor of one level, or no value.
    """
    at, y = np.asarray(levels, int), np.asarray(values, float)
    if not len(y) or any(len(np.unique(column)) < 2 for column in at.T):
        raise ValueError("an analysis of variance needs two levels of each factor")
    codes = [_coded(column) for column in at.T]
    base = [np.ones((len(y), 1))] + ([] if blocks is None else [_coded(np.asarray(blocks))])
    mains = [(k,) for k in range(len(codes))]
    couples = list(combinations(range(len(codes)), 2))
    both = {factors: _product(codes, factors) for factors in (*mains, *couples)}
    pairs = bool(couples) and _independent([*base, *both.values()])
    error, freedom, squares = _error(at, y, base, list(both.values()) if pairs else [])
    if freedom == 0:
        pairs = False
        freedom, squares = _left([*base, *(both[main] for main in mains)], y)
        error = "factors" if freedom else "none"
    used = {factors: both[factors] for factors in ((*mains, *couples) if pairs else mains)}
    terms = tuple(_terms(base, used, y, squares / freedom if freedom else None, freedom))
    variance = squares / freedom if freedom else None
    steps = tuple(_step(k, at[:, k], y, variance, freedom) for k in range(len(codes)))
    return Analysis(terms, steps, error, freedom, variance, pairs)


def _coded(column: npt.NDArray[np.int64]) -> Matrix:
    """A factor's columns, one fewer than it has levels, which sum to 0 over the levels."""
    _, place = np.unique(column, return_inverse=True)
    count = int(place.max()) + 1
    return np.vstack([np.eye(count - 1), -np.ones((1, count - 1))])[place]


def _product(codes: Sequence[Matrix], factors: tuple[int, ...]) -> Matrix:
    found = codes[factors[0]]
    for factor in factors[1:]:
        found = (found[:, :, None] * codes[factor][:, None, :]).reshape(len(found), -1)
    return found


def _independent(columns: Sequence[Matrix]) -> bool:
    every = np.hstack(columns)
    rank = int(np.linalg.matrix_rank(every, tol=_rank_tolerance(every)))
    return bool(rank == every.shape[1])


def _rank_tolerance(matrix: Matrix) -> float:
    return RANK * float(np.linalg.norm(matrix, 2))


def _left(columns: Sequence[Matrix], y: Matrix) -> tuple[int, float]:
    """The degrees of freedom that a model leaves, and the sum of the squares."""
    every = np.hstack(columns)
    fitted, _, rank, _ = np.linalg.lstsq(every, y, rcond=RANK)
    return len(y) - int(rank), float(np.sum((y - every @ fitted) ** 2))


def _error(at: npt.NDArray[np.int64], y: Matrix, base: list[Matrix], model: list[Matrix]) -> tuple[str, int, float]:
    """Return the name of an error estimate, its degrees of freedom and its sum of squares."""
    _, cell, counts = np.unique(at, axis=0, return_inverse=True, return_counts=True)
    if counts.min() > 1:
        freedom, squares = _left([*base, _coded(cell.ravel())] if len(counts) > 1 else base, y)
        if freedom:
            return "repeats", freedom, squares
    if not model:
        return "none", 0, 0.0
    freedom, squares = _left([*base, *model], y)
    return "model", freedom, squares


def _terms(
    base: list[Matrix], used: dict[tuple[int, ...], Matrix], y: Matrix, variance: float | None, freedom: int
) -> list[Term]:
    from scipy.stats import f

    _, total = _left(base, y)
    left, whole = _left([*base, *used.values()], y)
    found = []
    for factors in used:
        without, more = _left([*base, *(other for name, other in used.items() if name != factors)], y)
        own, squares = without - left, max(more - whole, 0.0)
        p = None
        if variance is not None and own:
            p = float(f.sf(squares / own / variance, own, freedom)) if variance > 0 else float(squares == 0)
        found.append(Term(factors, squares, own, squares / total if total else 0.0, p))
    return found


def _step(factor: int, column: npt.NDArray[np.int64], y: Matrix, variance: float | None, freedom: int) -> Step:
    from scipy.stats import studentized_range, t

    kinds = np.unique(column)
    means = np.array([y[column == kind].mean() for kind in kinds])
    low, high = sorted((int(means.argmin()), int(means.argmax())))
    if low == high:
        low, high = 0, len(kinds) - 1
    half = None
    if variance is not None:
        counts = [int((column == kinds[place]).sum()) for place in (low, high)]
        error = math.sqrt(variance * sum(1 / count for count in counts))
        wide = t.ppf((1 + SHARE) / 2, freedom)
        if len(kinds) > 2:
            wide = studentized_range.ppf(SHARE, len(kinds), freedom) / math.sqrt(2)
        half = float(wide) * error
    return Step(factor, int(kinds[low]), int(kinds[high]), float(means[high] - means[low]), half)
