"""One run as the metrics see it: its tables, its measured part, and its samples as matrices.

The measured part is from the warm-up's end to the run's end, or the part that was asked for; every metric looks at
nothing else unless it says so. Flows are TCP's, and those that started: a flow whose start was still to come when the
run ended is in no metric, and datagrams are not judged by TCP's metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.errors import InputError
from ackclock.known import KnownPlan
from ackclock.metrics.recorded import Recorded

Array: TypeAlias = npt.NDArray[np.float64]
Result = TypeVar("Result")

#: What the `congestion` of a flow without congestion control says.
DATAGRAMS = "udp"

#: Tables whose rows have a time.
TIMED = ("flow_samples", "queue_samples", "events", "packets")

#: Columns of `links` that say which link it is; the others count over the measured part or the whole run.
LINK_NAMES = ("run", "link", "name", "bottleneck", "rate_bps")


@dataclass(frozen=True)
class Grid:
    """Flow samples on a grid: `times_s` (T), `flows` (F), and matrices of T × F with NaN where there is no sample."""

    times_s: Array
    flows: npt.NDArray[np.uint32]
    _rows: npt.NDArray[np.intp]
    _columns: npt.NDArray[np.intp]
    _samples: pl.DataFrame

    @staticmethod
    def of(samples: pl.DataFrame) -> Grid:
        """The grid that holds all the samples of one run."""
        times, flows = samples["time_s"], samples["flow"]
        grid_times, rows = _ranked(times)
        grid_flows, columns = _ranked(flows)
        return Grid(grid_times, grid_flows, rows, columns, samples)

    def matrix(self, column: str) -> Array:
        """A column of `flow_samples` as a T × F matrix."""
        matrix = np.full((self.times_s.size, self.flows.size), np.nan)
        matrix[self._rows, self._columns] = self._samples[column].cast(pl.Float64).to_numpy()
        return matrix

    @cached_property
    def delivered_bytes(self) -> Array:
        """Bytes acknowledged so far; 0 before a flow's first sample, the last value after its last."""
        return _filled(self.matrix("delivered_bytes"))

    @property
    def interval_s(self) -> float:
        """The usual time between samples."""
        return float(np.median(np.diff(self.times_s))) if self.times_s.size > 1 else float("nan")

    def rates_bps(self, window_s: float) -> Array:
        """Each flow's goodput over the `window_s` before each sample time (shorter at the start)."""
        first = np.searchsorted(self.times_s, self.times_s - window_s * (1 + 1e-9))
        span = self.times_s - self.times_s[first]
        bits = 8 * (self.delivered_bytes - self.delivered_bytes[first])
        return np.divide(bits, span[:, None], out=np.zeros_like(bits), where=span[:, None] > 0)


def _ranked(series: pl.Series) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The different values in ascending order, and the place of each row's value among them."""
    values, found = series.unique().sort().to_numpy(), series.to_numpy()
    if found.size and np.issubdtype(found.dtype, np.integer) and int(values[-1]) < 4 * found.size:
        places = np.empty(int(values[-1]) + 1, dtype=np.intp)
        places[values] = np.arange(values.size)
        return values, places[found]
    if np.all(found[1:] >= found[:-1]):
        return values, np.cumsum(np.diff(found, prepend=found[:1]) > 0)
    return values, np.searchsorted(values, found)


def _filled(matrix: Array) -> Array:
    known = np.where(np.isnan(matrix), -1, np.arange(matrix.shape[0])[:, None])
    last = np.maximum.accumulate(known, axis=0)
    return np.where(last < 0, 0.0, np.take_along_axis(matrix, np.maximum(last, 0), axis=0))


@dataclass(frozen=True, eq=False)
class RunView:
    """One run of a dataset, or with `between` (seconds, from and to) a part of it. Tables are read when first used.

    `given` are metrics that the engine itself gave, for want of tables (closed forms); of a part there are none.
    What the engine counted over the whole measured part is null in a part: the metrics take samples and events.
    """

    data: Recorded
    run: int
    seed: int | None
    between: tuple[float, float] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    _known: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)

    def once(self, function: Callable[[RunView], Result]) -> Result:
        """The function of this run, computed at the first call only."""
        if function not in self._known:
            self._known[function] = function(self)
        return cast("Result", self._known[function])

    @property
    def plan(self) -> KnownPlan:
        """What is known of the plan of the run."""
        return self.data.plan

    @property
    def name(self) -> str:
        """What to call the run beside others: by its seed, else by its number."""
        return f"run {self.run}" if self.seed is None else f"seed {self.seed}"

    @cached_property
    def run_end_s(self) -> float:
        """When the whole run ended: as planned; of what was not planned, with the last that was seen."""
        planned_s = self.plan.duration_s
        return self._last_seen_s() if planned_s is None else float(planned_s)

    @cached_property
    def duration_s(self) -> float:
        """End of the measured part."""
        return self.run_end_s if self.between is None else self.between[1]

    @cached_property
    def warmup_s(self) -> float:
        """Start of the measured part."""
        return float(self.plan.warmup_s) if self.between is None else self.between[0]

    @property
    def measured_s(self) -> float:
        """Length of the measured part."""
        return self.duration_s - self.warmup_s

    def _last_seen_s(self) -> float:
        flows = ("start_s", "established_s", "end_s", pl.col("start_s") + pl.col("completion_s"))
        latest = {table: pl.col("time_s") for table in TIMED} | {"flows": pl.max_horizontal(*flows)}
        seen_s = [self._table(table, picked=time_s.max().alias("time_s")).item() for table, time_s in latest.items()]
        return max((float(time_s) for time_s in seen_s if time_s is not None), default=0.0)

    def _table(self, table: str, *wanted: pl.Expr, picked: pl.Expr | None = None) -> pl.DataFrame:
        lazy = self.data.scan(table).filter(pl.col("run") == self.run, *wanted)
        try:
            return lazy.select(pl.all() if picked is None else picked).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise InputError(f"the table {table!r} cannot be read: {str(error).splitlines()[0]}") from error

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The run's TCP flows that started, in their order."""
        flows = self._table("flows", pl.col("start_s").is_not_null(), pl.col("congestion") != DATAGRAMS).sort("flow")
        if self.between is None:
            return flows
        counted = [name for name in flows.columns if name.startswith("measured_")]
        return _emptied(flows.filter(pl.col("start_s") < self.duration_s), counted)

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """The run's UDP flows, in their order. No metric of flows counts them; the bottleneck's metrics do."""
        return self._table("flows", pl.col("congestion") == DATAGRAMS).sort("flow")

    @cached_property
    def flow_samples(self) -> pl.DataFrame:
        """All the samples of the TCP flows, warm-up included; of a part of a run, until its end."""
        samples = self._table("flow_samples", *self._until())
        others = self.datagrams["flow"]
        return samples.filter(~pl.col("flow").is_in(others.implode())) if others.len() else samples

    @cached_property
    def datagram_samples(self) -> pl.DataFrame:
        """Those of the UDP flows."""
        return self._table("flow_samples", pl.col("flow").is_in(self.datagrams["flow"].implode()), *self._until())

    def _until(self) -> tuple[pl.Expr, ...]:
        return () if self.between is None else (pl.col("time_s") <= self.duration_s,)

    @cached_property
    def measured_samples(self) -> pl.DataFrame:
        """Flow samples of the measured part."""
        return self.flow_samples.filter(self._measured)

    @cached_property
    def grid(self) -> Grid:
        """All the flow samples as matrices."""
        return Grid.of(self.flow_samples)

    @cached_property
    def links(self) -> pl.DataFrame:
        """The bottleneck links (what the plan calls so)."""
        links = self._table("links", pl.col("bottleneck"))
        return links if self.between is None else _emptied(links, [c for c in links.columns if c not in LINK_NAMES])

    @cached_property
    def queue_samples(self) -> pl.DataFrame:
        """Queue samples of the bottleneck links in the measured part."""
        return self._table("queue_samples", pl.col("link").is_in(self.bottlenecks), self._measured)

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Drops by the bottleneck's queue in the measured part, in time order."""
        wanted = (pl.col("kind") == "drop", pl.col("link").is_in(self.bottlenecks), self._measured)
        return self._table("events", *wanted).sort("time_s")

    def events_of(self, *kinds: str) -> pl.DataFrame:
        """Events of these kinds on all links and of all flows, warm-up included, in time order."""
        return self._table("events", pl.col("kind").is_in(kinds)).sort("time_s")

    @cached_property
    def bottlenecks(self) -> list[int]:
        """Numbers of the bottleneck links."""
        if self.links.height:
            return [int(link) for link in self.links["link"]]
        return self.plan.bottlenecks

    @property
    def _measured(self) -> pl.Expr:
        return pl.col("time_s").is_between(self.warmup_s, self.duration_s)

    @cached_property
    def ends_s(self) -> Array:
        """When each flow's transfer was over (infinity: not in this run), in the order of `flows`."""
        done = self.flows["start_s"] + self.flows["completion_s"]
        return done.fill_null(self.flows["end_s"]).fill_null(float("inf")).to_numpy()

    @cached_property
    def starts_s(self) -> Array:
        """When each flow started, in the order of `flows`."""
        return self.flows["start_s"].to_numpy()

    @cached_property
    def sampled(self) -> npt.NDArray[np.bool_]:
        """Which of `flows` have samples of what they delivered: those of generated traffic have none by default."""
        known = self.flow_samples.drop_nulls("delivered_bytes")["flow"].unique()
        return np.asarray(self.flows["flow"].is_in(known.implode()).to_numpy(), dtype=bool)

    def grid_of(self, chosen: npt.NDArray[np.bool_]) -> Grid:
        """The samples of some of `flows` as matrices."""
        if (chosen | ~self.sampled).all():
            return self.grid
        return Grid.of(self.flow_samples.filter(pl.col("flow").is_in(self.flows["flow"].filter(chosen).implode())))

    def delivered_at(self, times_s: Array, places: npt.NDArray[np.intp] | None = None) -> Array:
        """Bytes acknowledged at the sender at each instant, of the flows that are `sampled` (instants × flows).

        With `places`, one for each instant, of the sampled flow in that place only (instants). Linear between the
        flow's start, its samples and, if it has one, its end; constant afterwards.
        """
        flows = self.flows.filter(self.sampled).with_columns(pl.Series("done_s", self.ends_s[self.sampled]))
        count = pl.col("delivered_bytes").cast(pl.Float64)
        starts = flows.select("flow", pl.col("start_s").alias("time_s"), pl.lit(0.0).alias("delivered_bytes"))
        ends = flows.filter(pl.col("done_s").is_finite()).select("flow", pl.col("done_s").alias("time_s"), count)
        samples = self.flow_samples.select("flow", "time_s", count)
        known = pl.concat([starts, samples, ends]).drop_nulls().sort("flow", "time_s", maintain_order=True)
        of = np.searchsorted(flows["flow"].to_numpy(), known["flow"].to_numpy())
        at_s, values = known["time_s"].to_numpy(), known["delivered_bytes"].to_numpy()
        if places is not None:
            return _interpolated(times_s, places, of, at_s, values)
        moments_s, every = np.meshgrid(times_s, np.arange(flows.height), indexing="ij")
        return _interpolated(moments_s, every, of, at_s, values)

    @cached_property
    def rtt_s(self) -> float:
        """Mean RTT: of the smoothed RTT samples of the measured part, else of the flows' base RTTs, else NaN."""
        for series in (self.measured_samples["srtt_s"], self.flows["base_rtt_s"]):
            mean = series.mean()
            if isinstance(mean, float):
                return mean
        return float("nan")


def group_label(row: Mapping[str, Any], plan: KnownPlan) -> str:
    """The label of the flow's group in the plan, else its congestion control."""
    group = int(row["group"])
    return (plan.groups[group].label if group < len(plan.groups) else None) or str(row["congestion"])


def _interpolated(
    times_s: Array, places: npt.NDArray[np.intp], of: npt.NDArray[np.intp], at_s: Array, values: Array
) -> Array:
    """Many curves at once: curve `places` at `times_s`, linear between points sorted by curve (`of`) and time."""
    if not times_s.size:
        return np.empty(times_s.shape)
    span_s = float(max(at_s.max(), times_s.max())) + 1.0
    before = np.searchsorted(of * span_s + at_s, places * span_s + times_s, side="right") - 1
    after = np.minimum(before + 1, values.size - 1)
    gap_s = np.where(of[after] == places, at_s[after] - at_s[before], 0.0)
    share = np.divide(times_s - at_s[before], gap_s, out=np.zeros_like(gap_s), where=gap_s > 0)
    reached = values[before] + share * (values[after] - values[before])
    return np.where((before >= 0) & (of[before] == places), reached, 0.0)


def _emptied(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    return frame.with_columns(pl.lit(None, dtype=frame.schema[name]).alias(name) for name in columns)


def runs(data: Recorded, between: tuple[float, float] | None = None) -> Iterator[RunView]:
    """Views of the dataset's runs, in the manifest's order; with `between`, of that part of each (seconds).

    Raises `InputError` if a run has no such part.
    """
    for run in data.runs:
        view = RunView(data, int(run["run"]), run.get("seed"), given=run.get("metrics") or {})
        if between is not None and not 0 <= between[0] < between[1] <= view.duration_s:
            raise InputError(
                f"between: found {between[0]:g} s to {between[1]:g} s; expected a part of 0 s to {view.duration_s:g} s"
            )
        given = view.given if between is None else {}
        yield replace(view, between=between, given=given, _known={})
