"""One run as the metrics see it: its tables, and its measured part.

The measured part is from the warm-up's end to the run's end, or the part that was asked for; every metric looks at
nothing else unless its docstring notes it. Flows are TCP's, and those that started: a flow whose start was still to
come when the run ended is in no metric, and datagrams are not judged by TCP's metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.errors import InputError, first_line
from ackclock.input import arguments
from ackclock.input.arguments import checked, one_of, optional
from ackclock.metrics.epoch_rules import RULES
from ackclock.metrics.protocols import Piece, Recorded
from ackclock.metrics.rows import Array, Block, Choice, FlowLifetimes, Grid, Rows, flow_lifetimes, is_bottleneck, is_of
from ackclock.partial_plan import PartialPlan

__all__ = ["Array", "Block", "FlowLifetimes", "Grid", "Rows", "RunView", "flow_lifetimes", "group_name", "runs"]

Result = TypeVar("Result")

#: Value of `congestion` for a UDP flow.
DATAGRAMS = "udp"

#: Name of the group of all flows, in whatever groups they are.
ALL_FLOWS = "*"

#: Tables whose rows have a time.
TIMED = ("flow_samples", "cubic_samples", "delays", "frames", "queue_samples", "events", "packets", "transmissions")

#: Tables whose rows are flows'; metrics look at those of TCP.
OF_FLOWS = ("flow_samples", "cubic_samples", "delays", "paths")

#: Columns of `links` that say which link it is; the others count over the measured part or the whole run.
LINK_NAMES = ("run", "link", "name", "bottleneck", "rate_bps")

#: A link that carries this share of what it can limits flows.
MIN_BUSY = 0.9

#: A direction of a captured connection is a flow beside the other with this share of its data, and so many segments.
MIN_SHARE, MIN_SEGMENTS = 0.1, 10


@dataclass(frozen=True, slots=True)
class _Of:
    """The rows of one run in a part that has others too."""

    piece: Piece
    run: int

    @property
    def height(self) -> int:
        """Return the number of rows at most."""
        return self.piece.height

    def read(self, first: int, count: int, columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return rows of the part without those of other runs."""
        result = Block(self.piece.read(first, count, ["run", *columns] if columns else ()))
        return result.masked(result["run"] == self.run).frame


@dataclass(frozen=True, slots=True)
class _Nothing:
    """An empty part with a table's columns."""

    rows: pl.LazyFrame
    height: int = 0

    def read(self, first: int, count: int, columns: Sequence[str] = ()) -> pl.DataFrame:
        return self.rows.head(0).collect()


@dataclass(frozen=True, eq=False)
class RunView:
    """One run of a dataset, or with `between` (seconds, from and to) a part of it. Tables are read when first used.

    `rows(table)` has the rows that metrics look at as NumPy columns: the TCP flows that started and their samples, the
    bottleneck's queue samples, the bottleneck links; `measured(table)` those of the measured part. The other properties
    have them as Polars frames.

    Of a capture's connections, the direction that only carries requests is not among the flows: see `requests`.

    `given` are metrics that the engine itself gave, for want of tables (closed forms); of a part there are none.
    What the engine counted over the whole measured part is null in a part: the metrics take samples and events.

    `epochs` is the rule of what a congestion epoch is, if another than the plan's.

    `group` is the name of the groups whose flows are looked at (`*`: all, as one), `link` the number of the bottleneck.
    """

    data: Recorded
    run: int
    seed: int | None
    between: tuple[float, float] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    epochs: str | None = None
    group: str | None = None
    link: int | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    _runs_of_pieces: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict, repr=False)

    def cached(self, function: Callable[[RunView], Result]) -> Result:
        """Return the function of this run, computed at the first call only."""
        if function not in self._cache:
            self._cache[function] = function(self)
        return cast("Result", self._cache[function])

    def of_group(self, name: str) -> RunView | None:
        """Return the view of the flows of one group, or of all as one group (`*`); None if the plan has no such group.

        Links and their queues stay those of all. Groups of one name are one; the last word of their name is enough.
        """
        if name != ALL_FLOWS and not self.plan.groups_of(name):
            return None
        if ("group", name) not in self._cache:
            self._cache["group", name] = replace(self, group=name, given={}, _cache={})
        return cast("RunView", self._cache["group", name])

    def of_link(self, name: str) -> RunView | None:
        """Return the view in which one of the plan's bottlenecks is the only one; None if it has none of this name."""
        number = self.plan.link_number(name)
        if number is not None and ("link", name) not in self._cache:
            self._cache["link", name] = replace(self, link=number, given={}, _cache={})
        return self._cache.get(("link", name))

    @property
    def _groups(self) -> npt.NDArray[np.uint32] | None:
        """Numbers of the plan's groups that are looked at; None: all."""
        if self.group is None or self.group == ALL_FLOWS:
            return None
        return np.array(self.plan.groups_of(self.group), np.uint32)

    @property
    def plan(self) -> PartialPlan:
        """Return the known parts of the run's plan."""
        return self.data.plan

    @property
    def rule(self) -> str:
        """Return the definition of a congestion epoch: see `epoch_rules`."""
        rule = self.epochs or self.plan.epochs
        if rule not in RULES:
            raise InputError(f"plan: epochs: found {rule!r}; expected {' or '.join(map(repr, RULES))}")
        return rule

    @property
    def name(self) -> str:
        """Return a label of the run: its seed, else its number."""
        return f"run {self.run}" if self.seed is None else f"seed {self.seed}"

    @cached_property
    def run_end_s(self) -> float:
        """Return when the run ended: as planned; without a plan, at the last record."""
        planned_s = self.plan.duration_s
        return self._last_record_s() if planned_s is None else float(planned_s)

    @cached_property
    def duration_s(self) -> float:
        """Return the end of the measured part."""
        return self.run_end_s if self.between is None else self.between[1]

    @cached_property
    def warmup_s(self) -> float:
        """Return the start of the measured part."""
        return float(self.plan.warmup_s) if self.between is None else self.between[0]

    @property
    def measured_s(self) -> float:
        """Return the length of the measured part."""
        return self.duration_s - self.warmup_s

    def _last_record_s(self) -> float:
        flows = ("start_s", "established_s", "end_s", pl.col("start_s") + pl.col("fct_s"))
        latest = {table: pl.col("time_s") for table in TIMED} | {"flows": pl.max_horizontal(*flows)}
        rows = {table: self.data.scan(table).filter(pl.col("run") == self.run) for table in latest}
        last_times_s = [
            _collected(table, rows[table].select(result.max().alias("at_s"))) for table, result in latest.items()
        ]
        return max((float(at_s.item()) for at_s in last_times_s if at_s.item() is not None), default=0.0)

    # ---- the rows of the tables ----

    def rows(self, table: str) -> Rows:
        """Return the rows of a table that metrics use, warm-up included; of a part of a run, until its end."""
        if table not in self._cache:
            rows = Rows(self._pieces(table), self._choice(table), *ORDERS.get(table, ()))
            is_cut = self.between is not None and table in TIMED
            self._cache[table] = rows.between(-np.inf, self.duration_s) if is_cut else rows
        return cast("Rows", self._cache[table])

    def measured(self, table: str) -> Rows:
        """Return the rows of the measured part, of a table whose rows have a time."""
        if ("measured", table) not in self._cache:
            self._cache["measured", table] = self.rows(table).between(self.warmup_s, self.duration_s)
        return cast("Rows", self._cache["measured", table])

    def events(self, *kinds: str, at: Sequence[int] | None = None) -> Rows:
        """Return events of these kinds, warm-up included, in time order; with `at` those of some links."""

        def mask(block: Block) -> npt.NDArray[np.bool_]:
            is_kind = np.logical_or.reduce([block.equals("kind", kind) for kind in kinds])
            return np.asarray(is_kind if at is None else is_kind & np.isin(block["link"], at))

        return Rows(self._pieces("events"), Choice(("kind", "link"), mask))

    @cached_property
    def dropped(self) -> Rows:
        """Return drops by the bottleneck's queue in the measured part, in time order.

        A capture does not know the queue: all losses that it tells of, at the times at which their packets passed it.
        """
        result = self._losses() if self.is_capture else self.events("drop", at=self.bottlenecks)
        return result.between(self.warmup_s, self.duration_s)

    def _losses(self) -> Rows:
        requests = self.requests

        def mask(block: Block) -> npt.NDArray[np.bool_]:
            return np.asarray(block.equals("kind", "loss") & ~np.isin(block["flow"], requests))

        return Rows(self._pieces("events"), Choice(("kind", "flow"), mask))

    @property
    def is_capture(self) -> bool:
        """Return True if the result is a capture's."""
        return "capture" in self.data.manifest

    @cached_property
    def requests(self) -> npt.NDArray[np.uint32]:
        """Return a capture's directions that only carry requests for the data of the other direction.

        Those with less data than the other way, if that is less than a tenth of it or fewer than ten segments. To
        compare them with the others as flows would say of each download that it is unfair to its requests.
        """
        if not self.is_capture:
            return np.empty(0, dtype=np.uint32)
        rows = self.data.scan("captured").filter(pl.col("run") == self.run)
        data, segments = pl.col("payload_bytes").fill_null(0), pl.col("data_segments").fill_null(0)
        largest = data.max().over("connection")
        is_small = (data < MIN_SHARE * largest) | (segments < MIN_SEGMENTS)
        result = _collected("captured", rows.filter((data < largest) & is_small).select("flow"))
        return result["flow"].to_numpy()

    def _choice(self, table: str) -> Choice:
        """Return the selection of rows of a table, and the columns that are unknown in a part of a run.

        What a choice calls does not know the view, which keeps the rows: a cycle would keep both, with all the run's
        samples, until Python looks for cycles, and it counts objects rather than bytes.
        """
        is_part = self.between is not None
        if table == "flows":
            hidden = (lambda name: name.startswith("measured_")) if is_part else None
            until_s = self.duration_s if is_part else np.inf
            columns = ("flow", "start_s", "congestion", "group")
            return Choice(columns, partial(_started, until_s, self.requests, self._groups), hidden)
        if table == "links":
            hidden = (lambda name: name not in LINK_NAMES) if is_part else None
            is_chosen = is_bottleneck if self.link is None else partial(is_of, [self.link])
            return Choice(("bottleneck", "link"), is_chosen, hidden)
        if table in OF_FLOWS and self._groups is not None:
            datagrams = self._datagrams["flow"] if table == "delays" else ()
            own = np.union1d(self.rows("flows")["flow"], datagrams)
            return Choice(("flow",), lambda block: np.isin(block["flow"], own))
        if table in OF_FLOWS:
            others = np.union1d(self._datagrams["flow"], self.requests)
            return Choice(("flow",), lambda block: ~np.isin(block["flow"], others)) if others.size else Choice()
        if table == "frames":
            media = self._datagrams["flow"]
            return Choice(("flow",), lambda block: np.isin(block["flow"], media))
        return Choice(("link",), partial(is_of, self.bottlenecks))

    def _pieces(self, table: str) -> Sequence[Piece]:
        pieces = self.data.parts.get(table, ())
        if len(self.data.runs) > 1:
            pieces = [one for number, piece in enumerate(pieces) if (one := self._of_run(table, number, piece))]
        return pieces or [_Nothing(self.data.scan(table))]

    def _of_run(self, table: str, number: int, piece: Piece) -> Piece | None:
        """Return the rows of this run in a part; None if there are none."""
        if (table, number) not in self._runs_of_pieces:
            numbers = Block(piece.read(0, piece.height, ["run"]))["run"]
            self._runs_of_pieces[table, number] = int(numbers.min(initial=2**32 - 1)), int(numbers.max(initial=0))
        first, last = self._runs_of_pieces[table, number]
        if first <= self.run <= last:
            return piece if first == last else _Of(piece, self.run)
        return None

    # ---- as Polars frames ----

    @property
    def flows(self) -> pl.DataFrame:
        """Return the run's TCP flows that started, in their order."""
        return self.rows("flows").frame()

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """Return the run's UDP flows, in their order. Only the bottleneck's metrics count them."""
        return self._datagrams.frame()

    @property
    def has_datagrams(self) -> bool:
        """True if the run has UDP flows."""
        return bool(self._datagrams["flow"].size)

    def datagram_sum(self, column: str) -> float | None:
        """Return a column's sum over the UDP flows with data; None without them, in a part, or where one is unknown."""
        if self.between is not None or not self.has_datagrams:
            return None
        sends = pl.col("sent_packets").is_not_null() | pl.col("measured_bytes").is_not_null()
        values = self.datagrams.filter(sends)[column]
        is_unknown = values.is_empty() or values.null_count() > 0
        return None if is_unknown else float(values.cast(pl.Float64).sum())

    @cached_property
    def _datagrams(self) -> Rows:
        udp = Choice(("congestion", "group"), partial(_is_datagrams, self._groups))
        return Rows(self._pieces("flows"), udp, "flow")

    @property
    def flow_samples(self) -> pl.DataFrame:
        """Return all samples of the TCP flows, warm-up included; of a part of a run, until its end."""
        return self.rows("flow_samples").frame()

    @cached_property
    def datagram_samples(self) -> pl.DataFrame:
        """Return the samples of the UDP flows."""
        others = self._datagrams["flow"]
        udp = Choice(("flow",), lambda block: np.isin(block["flow"], others))
        return Rows(self._pieces("flow_samples"), udp).between(-np.inf, self.duration_s).frame()

    @cached_property
    def pings(self) -> Rows:
        """Return the samples of the UDP flows in the measured part: of imports, the round trips of pings."""
        others = self._datagrams["flow"]
        udp = Choice(("flow",), lambda block: np.isin(block["flow"], others))
        return Rows(self._pieces("flow_samples"), udp).between(self.warmup_s, self.duration_s)

    @property
    def measured_samples(self) -> pl.DataFrame:
        """Return flow samples of the measured part."""
        return self.measured("flow_samples").frame()

    @cached_property
    def grid(self) -> Grid:
        """Return all flow samples as matrices."""
        return Grid.of(self.flow_samples)

    @property
    def links(self) -> pl.DataFrame:
        """Return the plan's bottleneck links."""
        return self.rows("links").frame()

    @property
    def queue_samples(self) -> pl.DataFrame:
        """Return queue samples of the bottleneck links in the measured part."""
        return self.measured("queue_samples").frame()

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Return drops by the bottleneck's queue in the measured part, in time order."""
        return self.dropped.frame()

    def events_of(self, *kinds: str) -> pl.DataFrame:
        """Return events of these kinds on all links and of all flows, warm-up included, in time order."""
        return self.events(*kinds).frame()

    # ---- what several metrics need ----

    @cached_property
    def bottlenecks(self) -> list[int]:
        """Return the numbers of the bottleneck links."""
        return [int(link) for link in self.rows("links")["link"]] or self.plan.bottlenecks

    @cached_property
    def limiting(self) -> list[int]:
        """Return the numbers of the bottleneck links that limited flows in this run, in order.

        Of several links that the plan calls bottlenecks, those that dropped, marked or lost packets, or that were used
        for nine tenths of what they can carry; if none did, the one used most. All, where nothing was counted.
        """
        if self.link is not None:
            return [self.link]
        columns = ("departed_bytes", "dropped_p", "marked_p", "lost_p")
        links = Rows(self._pieces("links"), Choice(("bottleneck",), is_bottleneck), *ORDERS["links"])
        numbers = [int(number) for number in links["link"]]
        departed_bytes, *refused = (links[column] for column in columns)
        if len(numbers) < 2 or np.isnan(departed_bytes).any() or np.isnan(refused[0]).any():
            return numbers or self.plan.bottlenecks
        counted_s = self.run_end_s - float(self.plan.warmup_s)
        carried = np.divide(8 * departed_bytes, self.capacities_bps(links) * counted_s)
        is_full = (carried >= MIN_BUSY) | (np.nansum(refused, axis=0) > 0)
        if not is_full.any():
            is_full = carried >= carried.max()
        return [number for number, full in zip(numbers, is_full, strict=True) if full]

    def capacities_bps(self, links: Rows) -> Array:
        """Return what links can carry in the measured part: their rates, or less behind a token bucket."""
        pairs = zip(links["link"], links["rate_bps"], strict=True)
        return np.array([self.plan.capacity_bps(int(link), float(rate_bps)) for link, rate_bps in pairs], np.float64)

    def at_bottleneck(self, table: str) -> Rows:
        """Return `links`, or `queue_samples` of the measured part, of the links that limited flows."""
        if ("bottleneck", table) not in self._cache:
            choice = replace(self._choice(table), columns=("link",), mask=partial(is_of, self.limiting))
            rows = Rows(self._pieces(table), choice, *ORDERS.get(table, ()))
            rows = rows.between(self.warmup_s, self.duration_s) if table in TIMED else rows
            self._cache["bottleneck", table] = rows
        return cast("Rows", self._cache["bottleneck", table])

    @cached_property
    def ends_s(self) -> Array:
        """Return when each flow's transfer was over (infinity: not in this run), in the order of `flows`."""
        return flow_lifetimes(self.rows("flows").as_block).ends_s

    @property
    def starts_s(self) -> Array:
        """Return when each flow started, in the order of `flows`."""
        return self.rows("flows")["start_s"]

    @cached_property
    def sampled(self) -> FlowLifetimes:
        """Return the flows with samples of what they delivered: generated traffic has none by default."""
        numbers = np.empty(0, dtype=np.uint32)
        for block in self.rows("flow_samples").blocks("flow", "delivered_bytes"):
            valid = block["flow"][~np.isnan(block["delivered_bytes"])]
            numbers = np.union1d(numbers, valid)
        result = [
            flow_lifetimes(block).of(np.isin(block["flow"], numbers))
            for block in self.rows("flows").blocks(*FlowLifetimes.COLUMNS)
        ]
        joined = [np.concatenate([getattr(part, name) for part in result]) for name in FlowLifetimes.__slots__]
        return FlowLifetimes(*joined).of(np.argsort(joined[0], kind="stable"))

    @cached_property
    def rtt_s(self) -> float:
        """Return the mean RTT: of smoothed RTTs in the measured part, else of the base RTTs, else NaN."""
        for rows, column in ((self.measured("flow_samples"), "srtt_s"), (self.rows("flows"), "base_rtt_s")):
            mean = rows.mean(column)
            if mean is not None:
                return mean
        return float("nan")


#: Sort columns of tables without times.
ORDERS: Mapping[str, tuple[str | None]] = {"flows": ("flow",), "links": (None,), "paths": (None,)}


def _started(
    until_s: float, requests: npt.NDArray[np.uint32], groups: npt.NDArray[np.uint32] | None, block: Block
) -> npt.NDArray[np.bool_]:
    """Return which of all flows are TCP flows that started, and no requests; of some groups, if they are given."""
    started = ~block.equals("congestion", DATAGRAMS) & (block["start_s"] < until_s)
    if groups is not None:
        started &= np.isin(block["group"], groups)
    return np.asarray(started & ~np.isin(block["flow"], requests) if requests.size else started)


def _is_datagrams(groups: npt.NDArray[np.uint32] | None, block: Block) -> npt.NDArray[np.bool_]:
    found = block.equals("congestion", DATAGRAMS)
    return found if groups is None else np.asarray(found & np.isin(block["group"], groups))


def group_name(row: Mapping[str, Any], plan: PartialPlan) -> str:
    """Return the name of the flow's group in the plan, else its CCA."""
    group = int(row["group"])
    return (plan.groups[group].name if group < len(plan.groups) else None) or str(row["congestion"])


def _collected(table: str, rows: pl.LazyFrame) -> pl.DataFrame:
    try:
        return rows.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"the table {table!r} cannot be read: {first_line(error)}") from error


@checked(data=arguments.RECORDED, between=optional(arguments.BETWEEN), epochs=optional(one_of(*RULES)))
def runs(data: Recorded, between: tuple[float, float] | None = None, epochs: str | None = None) -> Iterator[RunView]:
    """Yield views of the dataset's runs, in the manifest's order; with `between`, of that part of each (seconds).

    `epochs` is the rule of what a congestion epoch is: "gap", "first" or "per RTT"; None: as the scenario gives.
    Raises `InputError` if a run has no such part, `TypeError` for an argument of another type.
    """
    runs_of_pieces: dict[tuple[str, int], tuple[int, int]] = {}
    for run in data.runs:
        number, given = int(run["run"]), run.get("metrics") or {}
        view = RunView(data, number, run.get("seed"), None, given, epochs, None, None, {}, runs_of_pieces)
        if between is not None and not 0 <= between[0] < between[1] <= view.duration_s:
            raise InputError(
                f"between: found {between[0]:g} s to {between[1]:g} s; expected a part of 0 s to {view.duration_s:g} s"
            )
        yield replace(view, between=between, given=given if between is None else {}, _cache={})
