"""Fit of models of many flows to the losses of a result (`ackclock fit`).

An event is a congestion epoch (`metrics.epoch`): losses of which each follows the one before within one RTT. `losses`
gives how many packets each lost, which flows it hit first, and what each flow was doing. A flow's rate is its window
over its RTT at the last sample before the event, its growth what its window gained in the five round trips before that
(windows are whole packets), or between two samples if that is longer; what a reduction took away is not set off. Flows
that lost within two of their round trips before are not of the event: they hear of that loss in one, and have recovered
from it in the other.

`fit` finds the parameters with their intervals and writes them as the tables `[fluid]` and `[meanfield]` of a scenario.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import metrics, repr_format
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.metrics import epoch
from ackclock.metrics.summary import NORMAL_QUANTILE
from ackclock.metrics.view import Array

#: Growth is taken over so many round trips.
GROWTH_RTTS = 5

#: A flow that lost hears of it after one round trip, and does not reduce again for one more.
IMMUNE_RTTS = 2

#: A flow grows by at least this, packets/s, as in the fluid engine's weights.
MIN_GROWTH = 1e-3


@dataclass(frozen=True, slots=True)
class Event:
    """One loss event of `flows` flows.

    Attributes:
        lost_p: packets lost.
        excess_p: packets that the windows were growing by in a round trip, which is what a full queue loses in one;
            of the fluid engine what it says itself.
        flows: flows that were there.
        free: those that could lose: without the ones that have just lost.
        hit: places in `rates` of those that lost, in the order of their first losses.
        rates: log of each sampled flow's packets/s before the event.
        growths: log of each one's growth in packets/s.
    """

    lost_p: float
    excess_p: float
    flows: int
    free: int
    hit: npt.NDArray[np.intp]
    rates: Array
    growths: Array

    @property
    def share(self) -> float:
        """Share of the flows that lost."""
        return self.hit.size / self.flows


@dataclass(frozen=True, slots=True)
class Losses:
    """The events of one run, and the pauses between one loss and the next in RTTs."""

    events: tuple[Event, ...]
    pauses: Array
    intervals_s: Array


def losses(data: Dataset, name: str) -> Iterator[Losses]:
    """Yield the losses of each run of a result.

    Raises:
        InputError: the result does not have the losses one by one, or no windows.
    """
    if data.manifest.get("engine") == "meanfield":
        raise InputError(f"{name}: found a result of meanfield, which assumes who loses; expected packets or a capture")
    for view in metrics.runs(data):
        if not epoch.is_recorded(view):
            raise InputError(f"{name}: found no losses one by one; expected the table events, as run and capture write")
        if not view.rows("flow_samples").count("cwnd"):
            raise InputError(f"{name}: found no windows; expected the table flow_samples, as run and capture write")
        yield _of(view)


def _of(view: metrics.RunView) -> Losses:
    epochs, drops = view.cached(epoch.Epochs.of), epoch.drops_by_epoch(view).drop_nulls("flow")
    samples = _samples(view)
    times_s = view.dropped["time_s"]
    pauses = np.diff(times_s) / epoch.rtt_at(view, times_s)[1:] if times_s.size else times_s
    counts = view.data.manifest.get("engine") == "fluid"
    lost_s = np.full(samples.flows.size, -np.inf)
    found = []
    for rows in drops.partition_by("epoch", maintain_order=True):
        told_p, number = _reported_packets(rows) if counts else None, int(rows["epoch"][0])
        found.append(_event(rows, told_p, int(epochs.flows_active[number]), samples, lost_s))
    return Losses(tuple(event for event in found if event.hit.size), pauses, np.diff(epochs.start_s))


@dataclass(frozen=True, slots=True)
class _Samples:
    """Windows and RTTs as matrices: instants by flows, with NaN where there is no sample."""

    times_s: Array
    flows: npt.NDArray[np.uint32]
    windows: Array
    rtts_s: Array

    def last_before(self, at_s: float) -> int:
        """The last instant before a time; the first if there is none."""
        return max(int(np.searchsorted(self.times_s, at_s)) - 1, 0)

    def some_before(self, now: int) -> int:
        """The instant from which growth is taken."""
        from_s = self.times_s[now] - GROWTH_RTTS * np.nanmean(self.rtts_s[now])
        return max(min(int(np.searchsorted(self.times_s, from_s)), now - 1), 0)

    def growths(self, now: int) -> Array:
        """Return the growth of each window by an instant, in packets/s."""
        then = self.some_before(now)
        gained = np.maximum(np.diff(self.windows[then : now + 1], axis=0), 0.0).sum(axis=0)
        return np.asarray(gained / max(self.times_s[now] - self.times_s[then], 1e-9))

    def grown_p(self, now: int) -> float:
        """Return the total growth of all windows in a mean round trip, in packets."""
        return float(np.nansum(self.growths(now)) * np.nanmean(self.rtts_s[now]))

    def places(self, flows: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
        """The columns of those flows that have samples."""
        return np.searchsorted(self.flows, flows[np.isin(flows, self.flows)])


def _samples(view: metrics.RunView) -> _Samples:
    rows = view.flow_samples.select("time_s", "flow", "cwnd", "srtt_s").drop_nulls("cwnd")
    times_s, at = np.unique(rows["time_s"].to_numpy(), return_inverse=True)
    flows, whose = np.unique(rows["flow"].to_numpy(), return_inverse=True)
    windows, rtts_s = np.full((2, times_s.size, flows.size), np.nan)
    windows[at, whose], rtts_s[at, whose] = rows["cwnd"].to_numpy(), rows["srtt_s"].to_numpy()
    return _Samples(times_s, flows, windows, rtts_s)


def _event(rows: pl.DataFrame, told_p: float | None, flows: int, samples: _Samples, lost_s: Array) -> Event:
    """An event; `lost_s`, when each flow lost last, moves on."""
    now = samples.last_before(rows["time_s"][0])
    rates, growths = _logs(samples, now)
    just_lost = lost_s + IMMUNE_RTTS * samples.rtts_s[now] > rows["time_s"][0]
    known = np.flatnonzero(np.isfinite(rates) & np.isfinite(growths) & ~just_lost)
    order = rows["flow"].unique(maintain_order=True).to_numpy()
    hit = _ranks(known, samples.places(order))
    _move_on(lost_s, rows, samples)
    flows = max(flows, order.size)
    free = max(flows - int(just_lost.sum()), hit.size)
    excess_p = samples.grown_p(now) if told_p is None else told_p
    return Event(float(rows.height), excess_p, flows, free, hit, rates[known], growths[known])


def _move_on(lost_s: Array, rows: pl.DataFrame, samples: _Samples) -> None:
    """The flows' last losses are these."""
    known = rows.filter(pl.col("flow").is_in(samples.flows.tolist()))
    lost_s[samples.places(known["flow"].to_numpy())] = known["time_s"].to_numpy()


def _logs(samples: _Samples, now: int) -> tuple[Array, Array]:
    """Return the logarithms of rates and growths."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(samples.windows[now] / samples.rtts_s[now]), np.log(_at_minimum(samples.growths(now)))


def _at_minimum(growths: Array) -> Array:
    return np.maximum(growths, MIN_GROWTH)


def _ranks(known: npt.NDArray[np.intp], places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the positions of places among the sampled ones, in their order."""
    return np.searchsorted(known, places[np.isin(places, known)])


def _reported_packets(rows: pl.DataFrame) -> float | None:
    """Return the packets that the fluid engine's rows report for an event: one row for each flow hit."""
    values = rows.select("time_s", "value").drop_nulls().filter(pl.col("value").is_finite())
    if values.height < rows.height:
        return None
    return float(values.group_by("time_s", maintain_order=True).agg(pl.col("value").first())["value"].sum())


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
