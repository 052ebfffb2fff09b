"""Analysis of variance of a factorial experiment, with any numbers of levels, complete or a fraction.

The model is a mean, a main effect for each factor, an effect for each pair of factors, and if given one for each block
(G. E. P. Box, J. S. Hunter, W. G. Hunter: Statistics for Experimenters, 2nd edition 2005, chapters 4 to 6). What pairs
do is left out where the design cannot tell it apart. Sums of squares are those that a term takes off beside all others
(type III), so cells may have different numbers of values; where they have the same these are the classical ones.

Errors are estimated

- from repeated values at the same levels, if every cell has some: less the blocks, what still differs there;
- else from what the model leaves, which is right if three factors or more do nothing together;
- else, if it leaves nothing, without pairs, which is right if pairs do nothing either.

Without any of these, effects have no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

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
