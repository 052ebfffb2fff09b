"""`ackclock fit`: what a result's losses say of how models of many flows should lose theirs.

`events` takes the loss events out of a dataset; this module finds the parameters with their intervals and writes them
as the tables `[fluid]` and `[meanfield]` of a scenario.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ackclock import repr_format
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.experiments.fit.events import Event, losses
from ackclock.metrics.summary import NORMAL_QUANTILE
from ackclock.metrics.view import Array

__all__ = ["Fitted", "fit"]


#: Fewer events than this say nothing with an interval.
MIN_EVENTS = 10

#: Losses that follow each other within so many RTTs are of one burst: nothing was heard of the first by then.
BURST_RTTS = 0.1

#: Exponents beyond this are refused by the engines: who loses is then certain.
MAX_EXPONENT = 20.0

#: Range in which ρ is searched: outside, every event hits one flow, or all.
BOUNDS = (1e-3, 1e3)

#: Step of the numerical derivatives of the log-likelihood, in each parameter.
STEP = 1e-4

#: An estimate with the ends of its interval.
Interval: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Fitted parameters, as estimate, low, high.

    Attributes:
        runs: how many runs there were.
        events: how many loss events.
        flows: mean number of flows in an event.
        lost_p: mean packets lost in an event.
        share: mean share of the flows that an event hits; interval of the mean.
        interval_s: mean time from an event to the next.
        excess_p: mean packets that the windows were growing by in a round trip, in an event.
        fluid_loss_weight: ρ of the fluid engine.
        field_loss_weight: ρ of the mean field.
        rate: γ beside δ.
        growth: δ; None where all grow alike, so that nothing tells.
        loss_rate_exponent: γ with δ = 0.
        gap: RTTs of a pause that ends an event; None where pauses are of one kind.
    """

    runs: int
    events: int
    flows: float
    lost_p: float
    excess_p: float
    share: Interval
    interval_s: float
    fluid_loss_weight: Interval
    field_loss_weight: Interval
    rate: Interval
    growth: Interval | None
    loss_rate_exponent: Interval
    gap: Interval | None

    def toml(self, names: Iterable[str]) -> str:
        """Return the tables `[fluid]` and `[meanfield]`, with comments that say the intervals."""
        growth, exponent = self.growth, self.loss_rate_exponent
        weights = f"rate = {self.rate[0]:.4g}" + (f", growth = {growth[0]:.4g}" if growth else "")
        gap = f"pauses of {_text_of(self.gap)} RTTs separate them" if self.gap else "pauses are of one kind"
        lines = [
            f"# ackclock fit {' '.join(names)}",
            f"# {self.events} loss events in {repr_format.counted(self.runs, 'run')}, {self.flows:.3g} flows and "
            f"{self.lost_p:.3g} lost packets each, one in {self.interval_s:.3g} s; {gap}",
            f"# share of the flows hit: {_text_of(self.share)}; intervals are of 95 %",
            "",
            "[fluid]",
            f"# loss_weight: {_text_of(self.fluid_loss_weight)}",
            f'synchronisation = {{ kind = "losses", loss_weight = {self.fluid_loss_weight[0]:.4g} }}',
            f"# rate: {_text_of(self.rate)}" + (f"; growth: {_text_of(growth)}" if growth else ""),
            f'loss_assignment = {{ kind = "weighted", {weights} }}',
            "",
            "[meanfield]",
            f"# loss_weight: {_text_of(self.field_loss_weight)}; loss_rate_exponent: {_text_of(exponent)}",
            f"loss_weight = {self.field_loss_weight[0]:.4g}",
            f"loss_rate_exponent = {exponent[0]:.4g}",
            "recovery = false  # loss_weight was fitted for it",
        ]
        return "".join(f"{line}\n" for line in lines)

    def as_json(self) -> str:
        """Return one line of JSON: estimates as {"estimate", "low", "high"}."""
        named = {
            name: dict(zip(("estimate", "low", "high"), value, strict=True)) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        return json.dumps(named) + "\n"


def _text_of(interval: Interval) -> str:
    estimate, low, high = interval
    return f"{estimate:.3g} ({low:.3g} to {high:.3g})"


def fit(results: Mapping[str, Dataset] | Sequence[Path | str]) -> Fitted:
    """Fit the parameters to the runs of some results together: folders, or datasets by name.

    Raises:
        InputError: a result lacks a table, or all together have too few events.
    """
    named = results if isinstance(results, Mapping) else {str(folder): Dataset.read(folder) for folder in results}
    found = [one for name, data in named.items() for one in losses(data, name)]
    events = [event for one in found for event in one.events]
    if len(events) < MIN_EVENTS:
        names = ", ".join(named) or "no results"
        raise InputError(f"{names}: found {len(events)} loss events; expected {MIN_EVENTS} or more: run it longer")
    if all(event.flows < 2 for event in events):
        raise InputError(f"{', '.join(named)}: found one flow; expected several, of which an event hits some")
    rate, growth = _both(events)
    intervals_s = np.concatenate([one.intervals_s for one in found])
    return Fitted(
        runs=len(found),
        events=len(events),
        flows=float(np.mean([event.flows for event in events])),
        lost_p=float(np.mean([event.lost_p for event in events])),
        excess_p=float(np.mean([event.excess_p for event in events])),
        share=_mean(np.array([event.share for event in events])),
        interval_s=float(intervals_s.mean()) if intervals_s.size else float("nan"),
        fluid_loss_weight=loss_weight(events, np.array([event.excess_p for event in events])),
        field_loss_weight=loss_weight(events, np.array([event.lost_p for event in events])),
        rate=rate,
        growth=growth,
        loss_rate_exponent=weights(events, (True, False))[0],
        gap=gap(np.concatenate([one.pauses for one in found])),
    )


def _mean(values: Array) -> Interval:
    return _around(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size))


def _around(at: float, error: float) -> Interval:
    return at, at - NORMAL_QUANTILE * error, at + NORMAL_QUANTILE * error


def _both(events: Sequence[Event]) -> tuple[Interval, Interval | None]:
    """γ and δ together; δ alone falls where growth does not tell flows apart."""
    if all(np.ptp(event.growths) < 1e-9 for event in events if event.growths.size):
        return weights(events, (True, False))[0], None
    rate, growth = weights(events, (True, True))
    return rate, growth


# ---- how many ----


def loss_weight(events: Sequence[Event], packets: Array) -> Interval:
    """ρ for events of so many packets, a draw of none counted as one as the engine does."""
    from scipy.optimize import minimize_scalar  # it takes long to import

    flows = np.array([event.flows for event in events], dtype=np.float64)
    free = np.array([event.free for event in events], dtype=np.float64)
    hit = np.array([event.hit.size for event in events], dtype=np.float64)
    lost = np.maximum(packets, 1e-9)

    def each(logarithm: float) -> Array:
        meant = np.exp(logarithm) * lost / flows
        spared = (hit - free) * meant
        some = np.log(-np.expm1(-meant)) * hit + spared
        one_or_none = np.logaddexp(np.log(free) + some, -free * meant)
        return np.asarray(np.where(hit == 1, one_or_none, some))

    best = minimize_scalar(lambda at: -each(at).sum(), bounds=tuple(np.log(BOUNDS)), method="bounded")
    error = _sandwich(lambda at: each(at[0]), np.array([best.x]))[0]
    best_log, low_log, high_log = _around(float(best.x), float(error))
    return math.exp(best_log), math.exp(low_log), math.exp(high_log)


def _sandwich(each: Callable[[Array], Array], best: Array) -> Array:
    """Standard errors of parameters, from the log-likelihoods of the events near the best ones."""
    moves = np.eye(best.size) * STEP
    scores = np.array([each(best + move) - each(best - move) for move in moves]) / (2 * STEP)
    bent = np.array(
        [
            [(each(best + a + b) - each(best + a - b) - each(best - a + b) + each(best - a - b)).sum() for b in moves]
            for a in moves
        ]
    ) / (4 * STEP**2)
    inverse = np.linalg.pinv(bent)
    return np.asarray(np.sqrt(np.diag(inverse @ (scores @ scores.T) @ inverse)))


# ---- which ----


def weights(events: Sequence[Event], wanted: tuple[bool, bool]) -> list[Interval]:
    """The exponents of rate and growth that are wanted, the others 0."""
    from scipy.optimize import minimize  # it takes long to import

    telling = [event for event in events if 0 < event.hit.size < event.rates.size or event.hit.size > 1]
    features = [np.array([event.rates, event.growths])[list(wanted)] for event in telling]
    centred = [one - one.mean(axis=1, keepdims=True) for one in features]

    def each(at: Array) -> Array:
        return np.array([_placed(at @ one, event) for one, event in zip(centred, telling, strict=True)])

    count = sum(wanted)
    if not telling:
        return [(0.0, -MAX_EXPONENT, MAX_EXPONENT)] * count
    bounds = [(-MAX_EXPONENT, MAX_EXPONENT)] * count
    start: Array = np.zeros(count)
    best = minimize(lambda at: -float(each(at).sum()), start, bounds=bounds, method="L-BFGS-B").x  # type: ignore[call-overload]
    errors = _sandwich(each, best)
    return [_around(float(at), float(error)) for at, error in zip(best, errors, strict=True)]


def _placed(logs: Array, event: Event) -> float:
    """The log-likelihood of an order of the flows hit, by log weights: each against all that are left."""
    first = logs[event.hit]
    rest = np.logaddexp.reduce(np.delete(logs, event.hit)) if event.hit.size < logs.size else -np.inf
    left = np.logaddexp.accumulate(np.concatenate([[rest], first[::-1]]))[1:][::-1]
    return float((first - left).sum())


# ---- how they merge ----


def gap(pauses: Array) -> Interval | None:
    """The threshold of pauses, in RTTs, with the ends of the stretch in which there is none."""
    logs = np.sort(np.log(pauses[pauses > BURST_RTTS]))
    if logs.size < MIN_EVENTS or np.ptp(logs) < 1e-9:
        return None
    below = np.arange(1, logs.size)
    sums = np.cumsum(logs)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (logs.size - below)
    cut = int(np.argmax(below * (logs.size - below) * (high - low) ** 2))
    ends = np.exp(logs[[cut, cut + 1]])
    return float(np.sqrt(ends[0] * ends[1])), float(ends[0]), float(ends[1])
