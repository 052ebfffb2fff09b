"""Curves of a run as numbers, for all back ends of the figures.

Curves are thinned by minimum and maximum: an axis cannot show more than a few thousand points, so the time is cut into
buckets and each keeps its first, lowest, highest and last point. Peaks and valleys survive; averages should be taken
from the tables.

Many samples are thinned while they are read (`thinned_blocks`), so memory does not depend on their number. Only some
instants are kept: of each stretch of so many, the first and the last, and those at which a curve or the sum of all is
lowest and highest. What is kept was sampled at one time, so sums over the curves are right.

Used by the figure specs (`run_figures`, `result_figures`), by figures of the gallery, and by the page of `explore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.errors import InputError
from ackclock.metrics import completion, dynamics, epoch, flow_series
from ackclock.metrics.distributions import DISTRIBUTIONS
from ackclock.metrics.flow_series import instants
from ackclock.metrics.view import Array, Grid, Rows, RunView, group_name
from ackclock.partial_plan import PartialLink

#: Points a bucket keeps.
KEPT = 4

#: Quantities that are distributions of samples, and which.
SAMPLES = {"rtt_s": ("flow_samples", "srtt_s"), "cwnd": ("flow_samples", "cwnd")}


@dataclass(frozen=True, slots=True)
class Lines:
    """Several quantities over the same times: `values` is times × lines, with NaN where there is none."""

    times_s: Array
    values: Array
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    def join(self, other: Lines) -> Lines:
        """Join these lines and others over the same times."""
        values = np.concatenate([self.values, other.values], axis=1)
        return Lines(self.times_s, values, self.labels + other.labels, self.groups + other.groups)

    @property
    def count(self) -> int:
        """Number of lines."""
        return int(self.values.shape[1])

    def with_values(self) -> Lines:
        """Return the lines that have a value: of a program's refused connection nothing is known."""
        kept = np.flatnonzero(~np.isnan(self.values).all(axis=0))
        labels, groups = ([names[column] for column in kept] for names in (self.labels, self.groups))
        return Lines(self.times_s, self.values[:, kept], tuple(labels), tuple(groups))

    def by_group(self) -> list[tuple[str, Lines]]:
        """Return the lines of each group, with its name."""
        result = []
        for name in dict.fromkeys(self.groups):
            chosen = [column for column, group in enumerate(self.groups) if group == name]
            labels = tuple(self.labels[column] for column in chosen)
            result.append((name, Lines(self.times_s, self.values[:, chosen], labels, (name,) * len(chosen))))
        return result

    def total(self) -> Array:
        """Sum over the lines at each time, missing values as 0."""
        return np.asarray(np.nansum(self.values, axis=1))

    def mean(self) -> Array:
        """Mean over the lines that exist at each time (NaN where none does)."""
        valid = np.sum(~np.isnan(self.values), axis=1)
        nothing = np.full(valid.shape, np.nan)
        return np.asarray(np.divide(self.total(), valid, out=nothing, where=valid > 0))

    def quantiles(self, *shares: float) -> list[Array]:
        """Quantiles over the lines at each time, on a thinned set of times; the first array is those times."""
        step = max(1, self.times_s.size // 600)
        rows = self.values[::step]
        valid = ~np.isnan(rows).all(axis=1)
        return [self.times_s[::step][valid], *np.nanquantile(rows[valid], shares, axis=1)]


@dataclass(frozen=True, slots=True)
class Queue:
    """The bottleneck's queue over time; `limit_p` is None where the plan has no packet limit.

    `link` is its number, `where` names it: *the bottleneck*, or the link where there are several.
    """

    link: int
    where: str
    times_s: Array
    backlog_p: Array
    sojourn_s: Array
    limit_p: float | None


def flow_count(view: RunView) -> int:
    """Return the length of an axis of flow numbers: one more than the greatest number."""
    return max((int(block["flow"].max()) + 1 for block in view.rows("flows").blocks("flow") if block.size), default=0)


def distribution(view: RunView, quantity: str) -> tuple[Array, Array]:
    """Return a quantity of `metrics.cdf` in the measured part: ascending values and the share at or below each.

    Of many, only as many as an axis can show.
    """
    if quantity in SAMPLES:
        table, column = SAMPLES[quantity]
        return distribution_of_blocks(lambda: view.measured(table).values(column))
    if quantity == "fct_s" and not view.rows("flows").is_small:
        return completion.ended_by(view, BINS)
    values, share = DISTRIBUTIONS[quantity](view)
    if values.size <= SORTED:
        return values, share
    shown = np.linspace(0, values.size - 1, BINS).astype(np.intp)
    return values[shown], share[shown]


def windows(view: RunView) -> Lines:
    """Return the congestion window of each flow (segments). Raises `InputError` if no window is known."""
    _check(view, "cwnd", "congestion windows")
    flows, count = view.cached(_sampled_flows), view.cached(instants).times_s.size
    return _lines(view, *of_flows(view.rows("flow_samples"), flows, count, "cwnd")).with_values()


def windows_to_add(view: RunView) -> Lines:
    """Return the windows if each is known at all times, so that a sum is meaningful. Captures: `InputError`."""
    if "capture" in view.data.manifest:
        raise InputError("windows of a capture are known only while they limit: they have no sum; draw pipe")
    return windows(view)


def goodputs(view: RunView, window_s: float | None = None) -> Lines:
    """Return each TCP flow's goodput over the preceding `window_s` (default: `goodput_window`), bit/s, ≤ 2,000 times.

    A connection that was rejected has samples, but is no flow: it has no line. Of a run with UDP flows only there are
    the times. Raises `InputError` if nothing tells what was delivered.
    """
    if not view.cached(instants).times_s.size and not view.datagram_samples.is_empty():
        sampled_s = Grid.of(view.datagram_samples).times_s
        sampled_s = sampled_s[:: max(1, sampled_s.size // 1000)]
        return Lines(sampled_s, np.empty((sampled_s.size, 0)), (), ())
    _check(view, "delivered_bytes", "bytes delivered")
    span_s = goodput_window(view) if window_s is None else window_s
    flows, step = view.cached(_sampled_flows), max(1, view.cached(instants).times_s.size // 1000)
    result, count = [], 0
    for times_s, rates in flow_series.goodputs(view, flows, span_s):
        chosen = slice(-count % step, None, step)
        result.append((times_s[chosen], rates[chosen]))
        count += times_s.size
    times_s, rates = (np.concatenate(parts) for parts in zip(*result, strict=True))
    return _lines(view, times_s, np.where(_is_active(view, times_s, span_s), rates, np.nan)).with_values()


def _sampled_flows(view: RunView) -> npt.NDArray[np.uint32]:
    """Return the numbers of the flows that were sampled, ascending."""
    flows = np.empty(0, dtype=np.uint32)
    for block in view.rows("flow_samples").blocks("flow"):
        flows = np.union1d(flows, block["flow"])
    return flows


def datagram_goodputs(view: RunView, times_s: Array, window_s: float) -> Lines:
    """Return the payload of each UDP flow that arrived over the `window_s` before these times, in bit/s."""
    grid = Grid.of(view.datagram_samples)
    values = np.empty((times_s.size, grid.flows.size))
    sampled_s, delivered_bytes = np.append(0.0, grid.times_s), np.pad(grid.delivered_bytes, ((1, 0), (0, 0)))
    for column, sofar in enumerate(delivered_bytes.T):
        now, before = (np.interp(at_s, sampled_s, sofar) for at_s in (times_s, times_s - window_s))
        values[:, column] = 8 * (now - before) / window_s
    rows = view.datagrams.filter(pl.col("flow").is_in(pl.Series(grid.flows).implode())).iter_rows(named=True)
    named = [(f"flow {row['flow']} {group}", group) for row in rows for group in [group_name(row, view.plan)]]
    return Lines(times_s, values, tuple(label for label, _ in named), tuple(group for _, group in named))


def _is_active(view: RunView, times_s: Array, after_s: float) -> npt.NDArray[np.bool_]:
    """Return at which times (rows) which sampled flows (columns) had started and not been over for `after_s`.

    Those that are not in the table of flows never were.
    """
    flows, known = view.cached(_sampled_flows), view.sampled
    begun, over = np.full(flows.size, np.inf), np.full(flows.size, np.inf)
    here = np.searchsorted(flows, known.flows)
    begun[here], over[here] = known.starts_s, known.ends_s
    return np.asarray((times_s[:, None] >= begun) & (times_s[:, None] <= over + after_s))


def goodput_window(view: RunView) -> float:
    """Return the averaging window of goodput curves (s): as the metrics', at most a tenth of the run."""
    sampled = view.cached(instants)
    interval_s = sampled.interval_s if sampled.times_s.size else Grid.of(view.datagram_samples).interval_s
    return min(dynamics.window(view), max(view.duration_s / 10, interval_s))


def queue(view: RunView, link: int | None = None) -> Queue:
    """Return a link's queue, warm-up included: by default the busiest bottleneck's.

    Raises `InputError` if nothing was sampled.
    """
    link = view.cached(busiest) if link is None else link
    if link is None:
        raise InputError("the result names no bottleneck link: there is no queue to draw")
    count = sum(int((block["link"] == link).sum()) for block in view.rows("queue_samples").blocks("link"))
    times_s, values = thinned_blocks(_queue_samples(view, link), count, 2)
    if not times_s.size:
        raise InputError("the result has no queue samples to draw")
    where = "the bottleneck"
    if is_shared(view):
        name = _bottleneck(view).name or f"link {link}"
        where = f"{name}, the busiest of {len(view.bottlenecks):,} bottlenecks"
    return Queue(link, where, times_s, values[:, 0], values[:, 1], queue_limit(view))


def _queue_samples(view: RunView, link: int) -> Iterator[Matrix]:
    """Yield the samples of a link's backlog (packets) and sojourn time (s), in blocks."""
    for block in view.rows("queue_samples").blocks("link", "backlog_p", "sojourn_s"):
        here = block["link"] == link
        yield block["time_s"][here], np.stack([block["backlog_p"][here], block["sojourn_s"][here]], axis=1)


def busiest(view: RunView) -> int | None:
    """Return the bottleneck with the highest use in the measured part (the first of equals); None without one."""
    links = view.links.sort("link")
    place = (links["departed_bytes"].cast(pl.Float64) / links["rate_bps"]).arg_max()
    if place is not None:
        return int(links["link"][place])
    return view.bottlenecks[0] if view.bottlenecks else None


def is_shared(view: RunView) -> bool:
    """Return True if there are several bottlenecks, so that no one rate limits the sum of the flows."""
    return len(view.bottlenecks) > 1


def queue_limit(view: RunView) -> float | None:
    """Return the bottleneck queue's limit in packets, if the plan has one."""
    queue = _bottleneck(view).queue
    limit = queue.parameters.get("limit_packets") if queue else None
    return float(limit) if isinstance(limit, (int, float)) else None


def limit_name(view: RunView) -> str:
    """Return the label of that limit: with the buffer rule that gave it, if one did."""
    queue = _bottleneck(view).queue
    rule = queue.rules.get("limit_packets") if queue else None
    return f"limit ({rule})" if rule else "limit"


def in_sight(value: float | None, peak: float) -> bool:
    """Return True if a reference line at `value` leaves a curve with this peak enough of the axis."""
    return value is not None and value <= 4 * peak


def link_rate(view: RunView) -> float | None:
    """Return the bottleneck's rate in bit/s; None where there are several."""
    if is_shared(view):
        return None
    return _bottleneck(view).rate_bps


def pipe_segments(view: RunView) -> float | None:
    """Return the BDP in full packets: bottleneck rate × mean base RTT / wire size; None if unknown."""
    rate_bps, rtt_s, packet_bytes = _bottleneck(view).rate_bps, view.plan.mean_base_rtt_s, view.plan.packet_bytes
    if rate_bps is None or rtt_s is None or packet_bytes is None:
        return None
    return rate_bps * rtt_s / (8 * packet_bytes)


def path_limits(view: RunView) -> list[tuple[float, str]]:
    """Return the known capacities of the path in segments: the BDP, and the BDP with the buffer full.

    Nothing where there are several bottlenecks: the flows' paths differ.
    """
    pipe, limit = pipe_segments(view), queue_limit(view)
    if pipe is None or is_shared(view):
        return []
    return [(pipe, "BDP")] if limit is None else [(pipe, "BDP"), (pipe + limit, "BDP + buffer")]


def loss_epochs(view: RunView) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the drops with their epoch, and the epochs (see `metrics.epoch`)."""
    return view.cached(epoch.drops_by_epoch), view.cached(epoch.epochs)


def thinned(x: Array, y: Array, points: int) -> tuple[Array, Array]:
    """Return about `points` of a curve's points, with the extremes of each bucket; gaps (NaN) are dropped."""
    valid = ~np.isnan(y)
    x, y = x[valid], y[valid]
    if x.size <= points:
        return x, y
    stretch = -(-x.size // max(1, points // KEPT))
    whole = x.size - x.size % stretch
    parts = [kept(x[part], y[part, None], stretch) for part in (slice(whole), slice(whole, None))]
    return np.concatenate([times for times, _ in parts]), np.concatenate([values[:, 0] for _, values in parts])


def _check(view: RunView, column: str, what: str) -> None:
    rows = view.rows("flow_samples")
    if not view.cached(instants).times_s.size:
        raise InputError("the result has no flow samples to draw; the figures queue and cdf need none")
    if not any(values.size for values in rows.values(column)):
        raise InputError(f"the result has no {what} to draw")


def _lines(view: RunView, times_s: Array, values: Array) -> Lines:
    """Return lines of the sampled flows."""
    return of_numbers(view, view.cached(_sampled_flows), times_s, values)


def of_numbers(view: RunView, flows: npt.NDArray[np.uint32], times_s: Array, values: Array) -> Lines:
    """Return lines of TCP flows: `flow 3`, or `flow 3 bulk` where their groups have different names."""
    valid: dict[int, Mapping[str, Any]] = {}
    for block in view.rows("flows").blocks("flow", "group", "congestion"):
        result = block.frame.select("flow", "group", "congestion").filter(np.isin(block["flow"], flows))
        valid |= {row["flow"]: row for row in result.iter_rows(named=True)}
    groups = {flow: group_name(row, view.plan) for flow, row in valid.items()}
    differ = len(set(groups.values())) > 1
    unknown = group_name({"group": 0, "congestion": ""}, view.plan)
    labels = tuple(f"flow {flow} {groups[flow]}" if differ and flow in groups else f"flow {flow}" for flow in flows)
    return Lines(times_s, values, labels, tuple(groups.get(int(flow), unknown) for flow in flows))


def _bottleneck(view: RunView) -> PartialLink:
    """Return the plan's entry of the busiest bottleneck."""
    number, links = view.cached(busiest), view.plan.links
    return links[number] if number is not None and number < len(links) else PartialLink()


#: Values that are kept of all curves together; a million are 8 MB.
CELLS = 2 << 20

#: Up to this many curves each keep their extremes; of more only their sum does: they are drawn as a cloud.
FEW = 16

#: Values above which a distribution is counted in `BINS` equal bins instead of being sorted.
SORTED = 1 << 18

#: Bins between the smallest and the greatest value, many times what an axis can show.
BINS = 1 << 16

#: Instants (T), and a matrix of T × curves with NaN where there is no sample.
Matrix: TypeAlias = tuple[Array, Array]


def of_flows(rows: Rows, flows: npt.NDArray[np.uint32], instants: int, column: str) -> Matrix:
    """Return a column of the samples of ascending flows as curves, thinned if the instants are many."""
    return thinned_blocks(_matrices(rows, flows, column), instants, flows.size)


def _matrices(rows: Rows, flows: npt.NDArray[np.uint32], column: str) -> Iterator[Matrix]:
    for block in rows.blocks("flow", column):
        times_s = block["time_s"][np.diff(block["time_s"], prepend=-np.inf) > 0]
        matrix = np.full((times_s.size, flows.size), np.nan)
        matrix[np.searchsorted(times_s, block["time_s"]), np.searchsorted(flows, block["flow"])] = block[column]
        yield times_s, matrix


def thinned_blocks(result: Iterable[Matrix], instants: int, curves: int) -> Matrix:
    """Keep some of the instants of curves that come in blocks in the order of time."""
    each = 2 * curves + 4 if curves <= FEW else 4
    stretch = 1 if instants * curves <= CELLS else -(-instants * each * curves // CELLS)
    parts = [kept(times_s, matrix, stretch) for times_s, matrix in _stretches(result, stretch)]
    if not parts:
        return np.empty(0), np.empty((0, curves))
    return np.concatenate([times_s for times_s, _ in parts]), np.concatenate([matrix for _, matrix in parts])


def distribution_of_blocks(values: Callable[[], Iterable[Array]]) -> Matrix:
    """Return ascending values and the share at or below each, of values that come in blocks.

    Of many, the values are the upper ends of bins, at which the shares are exact.
    """
    count, low, high = 0, np.inf, -np.inf
    for block in values():
        count, low, high = count + block.size, min(low, block.min(initial=low)), max(high, block.max(initial=high))
    if count <= SORTED or low == high:
        ascending = np.sort(np.concatenate([np.empty(0), *values()]), kind="stable")
        return ascending, np.arange(1, ascending.size + 1) / max(ascending.size, 1)
    edges = np.linspace(low, high, BINS)
    counts = np.zeros(BINS)
    for block in values():
        counts += np.bincount(np.searchsorted(edges, block), minlength=BINS)
    return edges[counts > 0], (np.cumsum(counts) / count)[counts > 0]


def _stretches(result: Iterable[Matrix], stretch: int) -> Iterator[Matrix]:
    """Regroup blocks into whole stretches; the rest comes at the end."""
    rest: Matrix | None = None
    for times_s, matrix in result:
        if rest is not None:
            times_s, matrix = np.concatenate([rest[0], times_s]), np.concatenate([rest[1], matrix])  # noqa: PLW2901
        complete = times_s.size - times_s.size % stretch
        if complete:
            yield times_s[:complete], matrix[:complete]
        rest = times_s[complete:], matrix[complete:]
    if rest is not None and rest[0].size:
        yield rest


def kept(times_s: Array, matrix: Array, stretch: int) -> Matrix:
    """Select the instants to keep of whole stretches, or of less than one: their ends, and where a curve is extreme."""
    if stretch == 1 or not times_s.size:
        return times_s, matrix
    stretch = min(stretch, times_s.size)
    first = np.arange(0, times_s.size, stretch)
    rows = [first, first + stretch - 1]
    total = np.nansum(matrix, axis=1)
    for curve in (total, *(matrix.T if matrix.shape[1] <= FEW else ())):
        for extreme, nothing in ((np.argmin, np.inf), (np.argmax, -np.inf)):
            valid = np.where(np.isnan(curve), nothing, curve)
            rows.append(first + extreme(valid.reshape(-1, stretch), axis=1))
    chosen = np.unique(np.concatenate(rows))
    return times_s[chosen], matrix[chosen]
