"""The loss events of a run: how many packets each lost, which flows it hit first, and what each flow was doing.

An event is a congestion epoch (`metrics.epoch`): losses of which each follows the one before within one RTT. A flow's
rate is its window over its RTT at the last sample before the event, its growth what its window gained
in the five round trips before that (windows are whole packets), or between two samples if that is longer; what a
reduction took away is not set off. Flows that lost within two of their round trips before are not of the event: they
hear of that loss in one, and have recovered from it in the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.metrics import epoch
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
