"""Approximate Bayesian computation of the parameters that a paper does not print, from the numbers that it does.

Tables `[[infer]]` of a paper's file name entries, whose rows with printed numbers are the data, and parameters with the
range in which each may lie:

    [[infer]]
    name = "the line of table 6.2"
    entries = ["R6.t2"]
    tolerance = 0.05
    [[infer.parameter]]
    name = "up queue"
    key = "network.up.queue.limit"
    low = 10
    high = 150
    unit = "p"

The prior is uniform. A set of parameters fits if the root mean square of ln(ours / printed) over all rows is within the
tolerance (rejection: J. K. Pritchard and others, Molecular Biology and Evolution 16(12), 1999). Later draws come from a
kernel density of the nearest ones so far, and all draws count by the prior over the mixture that they came from
(adaptive multiple importance sampling: J.-M. Cornuet and others, Scandinavian Journal of Statistics 39(4), 2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ackclock.errors import InputError
from ackclock.gallery import ablation_runner, cases
from ackclock.gallery.cases import NONE, Interpretation
from ackclock.gallery.claims import Paper
from ackclock.gallery.entry import Entry, find
from ackclock.input.fields import shown
from ackclock.plan import Plan

#: Engine of the runs: the fastest that has packets.
ENGINE = "packet"

#: Rounds of draws; the first is a Latin hypercube of the prior.
ROUNDS = 8

#: Share of the draws so far around which the next ones are made, and share of these that come from the prior, so that
#: no weight exceeds its inverse.
NEAREST, FROM_PRIOR = 0.1, 0.1

#: Below so many fitting sets an interval of 95 % has no meaning.
MIN_FITTING = 10

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scenario key and its range; of the cases with the value `at` alone, if given."""

    name: str
    key: str
    low: float
    high: float
    unit: str = ""
    at: str = ""
    integer: bool = True

    def value(self, share: float) -> float:
        """Return the value at a share of the range."""
        value = self.low + share * (self.high - self.low)
        return float(round(value)) if self.integer else value

    def changes(self, share: float, plan: Plan) -> Any:
        """Return what it changes in a case with this plan."""
        return ablation_runner.Varied(self.key, self.low, self.high, self.unit).changes(self.value(share), plan)


@dataclass(frozen=True, slots=True)
class Inference:
    """One table `[[infer]]`: `reading` is the interpretation that is varied, `quick` the entries' reduced scale."""

    name: str
    entries: Sequence[Entry]
    parameters: Sequence[Parameter]
    tolerance: float
    reading: str = ""
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws of the parameters, each with its weight, its distance and ln(ours / printed) of each row."""

    inference: Inference
    values: Points
    weights: Points
    distances: Points
    residuals: Sequence[Mapping[str, float]]

    @property
    def fitting(self) -> NDArray[np.bool_]:
        """The draws within the tolerance."""
        return self.distances <= self.inference.tolerance

    @property
    def fits(self) -> bool:
        """True if enough draws fit for an interval."""
        return int(self.fitting.sum()) >= MIN_FITTING

    @property
    def nearest(self) -> int:
        """The draw with the least distance."""
        return int(np.argmin(self.distances))

    def interval(self, number: int) -> tuple[float, float, float]:
        """Return median and 95 % interval of a parameter's posterior."""
        low, middle, high = _quantiles(self.values[self.fitting, number], self.weights[self.fitting])
        return middle, low, high


def inferences(paper: Paper) -> list[Inference]:
    """Return a paper's tables `[[infer]]`. Raises `InputError` for mistakes, and for a paper without any."""
    if not paper.inferences:
        raise InputError(f"PAPER: found {paper.id}, whose file has no table [[infer]]; expected another paper")
    return [_inference(paper, table) for table in paper.inferences]


def infer(inference: Inference, draws: int, report: Callable[[float], object] = lambda _: None) -> Posterior:
    """Return the posterior of `draws` sets of parameters. The same draws give the same posterior.

    `report` is called with the share that is done. Raises `InputError` for entries without a printed number.
    """
    from scipy.stats import qmc

    dimensions = len(inference.parameters)
    rng = np.random.default_rng(1)
    each = max(draws // ROUNDS, 1)
    points = qmc.LatinHypercube(dimensions, rng=rng).random(draws - each * (ROUNDS - 1))
    mixture = [_Source(len(points), None, 1.0)]
    residuals = [_residuals(inference, point) for point in points]
    while len(points) < draws:
        source, more = _draw(points, _distances(residuals), each, rng)
        points, mixture = np.vstack([points, more]), [*mixture, source]
        residuals += [_residuals(inference, point) for point in more]
        report(len(points) / draws)
    values = np.array(
        [[of.value(share) for of, share in zip(inference.parameters, point, strict=True)] for point in points]
    )
    return Posterior(inference, values, _weights(points, mixture), _distances(residuals), residuals)


@dataclass(frozen=True, slots=True)
class _Source:
    """A density that draws came from: the prior, or a kernel's, truncated to the prior, of which it has `inside`."""

    count: int
    kernel: Any
    inside: float

    def density(self, points: Points) -> Points:
        prior = np.ones(len(points))
        if self.kernel is None:
            return prior
        around: Points = self.kernel(points.T) / self.inside
        return FROM_PRIOR * prior + (1 - FROM_PRIOR) * around


def _draw(points: Points, distances: Points, count: int, rng: np.random.Generator) -> tuple[_Source, Points]:
    """Draw around the nearest points so far."""
    from scipy.stats import gaussian_kde

    dimensions = points.shape[1]
    enough = max(int(NEAREST * len(points)), 2 * dimensions + 2)
    nearest = points[np.argsort(distances, kind="stable")[:enough]]
    kernel = gaussian_kde(nearest.T)
    candidates = kernel.resample(50 * count, seed=rng).T
    within = candidates[((candidates >= 0) & (candidates < 1)).all(axis=1)]
    uniform = rng.random((count, dimensions))
    chosen = np.where(rng.random((count, 1)) < FROM_PRIOR, uniform, np.resize(within, (count, dimensions)))
    return _Source(count, kernel, len(within) / len(candidates)), chosen


def _weights(points: Points, mixture: Sequence[_Source]) -> Points:
    """Return the weight of each draw: the prior, which is 1, over the density of the mixture; they sum to 1."""
    total = sum(source.count for source in mixture)
    density = np.sum([source.count / total * source.density(points) for source in mixture], axis=0)
    weights: Points = 1 / density / np.sum(1 / density)
    return weights


def _distances(residuals: Sequence[Mapping[str, float]]) -> Points:
    """Return the root mean square of each draw's residuals."""
    return np.array([math.sqrt(math.fsum(each**2 for each in of.values()) / len(of)) for of in residuals])


def _residuals(inference: Inference, point: Points) -> dict[str, float]:
    """Return ln(ours / printed) of each row of the entries, run with these parameters."""
    found: dict[str, float] = {}
    for entry in inference.entries:
        reading = _reading(entry, inference.reading)
        plans = dict(_plans(entry, reading, inference, point))
        for row in ablation_runner.rows_of_plans(entry, {ENGINE: plans}, reading)[ENGINE]:
            printed, ours = entry.published[row.claim].value, row.summary.mean
            if printed and printed > 0:
                # What is not measured, or nothing, is far from every printed number.
                found[f"{entry.id}: {row.claim} {row.at}".strip()] = math.log(ours / printed) if ours else math.inf
    if not found:
        raise InputError(f"infer: {inference.name}: found no row with a printed number; expected one")
    return found


def _plans(entry: Entry, reading: Interpretation, inference: Inference, point: Points) -> Iterator[tuple[str, Plan]]:
    """Yield the plans of each case, with one seed."""
    every = cases.contents(entry.folder, engine=ENGINE, quick=inference.quick, reading=reading)
    for case, content in every.items():
        if entry.runs(ENGINE, case, quick=inference.quick):
            alone = {key: value for key, value in content.items() if key not in ("seeds", "repeats")}
            plan = cases.plan(entry.folder, case, alone)
            for of, share in zip(inference.parameters, point, strict=True):
                if not of.at or of.at in case.split():
                    alone = cases.merged(alone, of.changes(share, plan))
            yield case, cases.plan(entry.folder, case, alone)


def _reading(entry: Entry, name: str) -> Interpretation:
    every = entry.readings.every
    return next((each for each in every if each.name == name), every[0] if every else NONE)


def _inference(paper: Paper, table: Mapping[str, Any]) -> Inference:
    where = f"{paper.path}: infer {table.get('name', '')}"
    rest = {key: value for key, value in table.items() if key not in ("parameter", "entries")}
    _check(where, {**table, "parameters": 0}, Inference, ("parameter",), ("name", "entries", "parameter", "tolerance"))
    parameters = []
    for each in table["parameter"]:
        _check(f"{where}: parameter {each.get('name', '')}", each, Parameter, (), ("name", "key", "low", "high"))
        if not each["low"] < each["high"]:
            found = f"low = {each['low']} and high = {each['high']}"
            raise InputError(f"{where}: parameter {each['name']}: found {found}; expected low below high")
        parameters.append(Parameter(**each))
    return Inference(
        entries=[find(name, paper.all_entries) for name in table["entries"]], parameters=parameters, **rest
    )


def _check(where: str, table: Mapping[str, Any], kind: type, more: Sequence[str], needed: Sequence[str]) -> None:
    """Reject keys that a table cannot have, and its lack of some. Raises `InputError`."""
    keys = [*(each.name for each in fields(kind)), *more]
    if unknown := [key for key in table if key not in keys]:
        raise InputError(f"{where}: found the key {shown(unknown[0])}; expected of {', '.join(keys)}")
    if missing := [key for key in needed if key not in table]:
        raise InputError(f"{where}: found no {missing[0]}; expected it")


def _quantiles(values: Points, weights: Points) -> tuple[float, float, float]:
    """Return the weighted quantiles 0.025, 0.5 and 0.975."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order]) / weights.sum()
    low, middle, high = (values[order][np.searchsorted(cumulated, share)] for share in (0.025, 0.5, 0.975))
    return float(low), float(middle), float(high)
