"""The results that the page draws: a scenario's runs as curves on one time axis, as numbers, and as sentences.

A request is answered in parts: pictures of ever longer beginnings of a long run, the picture of all of it, the numbers,
and the models if they are asked for. The same request gives the same parts.

`moment` is for slow motion, packet by packet: what waited, was sent, arrived or was dropped at the bottleneck. The run
is repeated with the per-packet log up to the end of the moment, which does not change it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ackclock import engines, metrics
from ackclock.dataset import Dataset
from ackclock.engines.engine import Progress, RunOptions, no_progress
from ackclock.errors import InputError, UnsupportedError
from ackclock.experiments import guards
from ackclock.experiments.runner import run, shortened
from ackclock.figures import curves, numbers, summary_text
from ackclock.figures.figure_spec import MAX_LINES
from ackclock.metrics import METRICS, RunView
from ackclock.metrics.view import Array
from ackclock.plan import Plan
from ackclock.scenario.planning import Loaded, loads

#: Limits of a request: packets of all bottlenecks and seeds, samples of flows and links, flows, and seeds.
MAX_PACKETS, MAX_SAMPLES, MAX_FLOWS, MAX_SEEDS = 50_000_000, 3_000_000, 500, 20

#: A run of more packets than this is drawn progressively: first at most so many, then four times as many, and so on.
FIRST_PACKETS, STEP = 150_000, 4

#: Points of a curve: more than a panel has pixels. Bins of drops and marks.
POINTS, BINS = 800, 160

#: Instants that are apart by more than this multiple of the usual distance have a pause between them.
PAUSE = 4

#: Engines that are laid over the packets', where they support the plan.
MODELS = ("fluid", "theory")

#: Engine of the page.
ENGINE = "packet"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked request: the scenario, and the plan that is run."""

    loaded: Loaded
    plan: Plan


def prepared(text: str, name: str = "scenario") -> Prepared:
    """Check a scenario's text. Raises `ScenarioError`, `UnsupportedError`, and `InputError` for too large a run."""
    loaded = loads(text, name)
    plan = loaded.plan()
    plan = replace(plan, record=replace(plan.record, packets=False, pcap=False))
    if reasons := engines.unsupported(engines.engine(ENGINE), plan):
        raise UnsupportedError(reasons)
    if excess := _excess(plan):
        raise InputError(excess)
    return Prepared(loaded, plan)


def packets(plan: Plan) -> float:
    """Return how many packets all bottlenecks can carry in all runs, on which the cost of a request depends."""
    rates_bps = sum(link.rate_bps for link in plan.links if link.bottleneck)
    return rates_bps * plan.duration_s / (8 * plan.packet_bytes) * len(plan.seeds)


def _excess(plan: Plan) -> str | None:
    """Return a sentence if a run is too large for the page."""
    samples = (len(plan.flows) + len(plan.links)) * plan.duration_s / plan.record.interval_s * len(plan.seeds)
    for found, limit, what, remedy in (
        (packets(plan), MAX_PACKETS, "packets (rate × duration × seeds)", "the rate, the duration or the seeds"),
        (samples, MAX_SAMPLES, "samples", "the duration, the flows or the seeds, or make record.interval longer"),
        (len(plan.flows), MAX_FLOWS, "flows", "the number of flows"),
        (len(plan.seeds), MAX_SEEDS, "seeds", "the number of seeds"),
    ):
        if found > limit:
            return (
                f"found a run of up to {numbers.value(round(found), '')} {what}; expected at most {limit:,} on this "
                f"page: lower {remedy} (ackclock run has no such limit)"
            )
    return None


def parts(prepared: Prepared, progress: Progress = no_progress, *, models: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the parts of an answer. What `progress` raises ends them."""
    plan = prepared.plan
    for beginning in _beginnings(plan):
        try:
            yield picture(run(beginning, ENGINE, progress=progress), plan.duration_s)
        except (InputError, ValueError):  # as where nothing starts in so short a time
            continue
    data = run(plan, ENGINE, progress=progress)
    yield picture(data, plan.duration_s)
    yield {"part": "numbers", **_numbers(data, plan)}
    if models:
        yield {"part": "models", "models": [_model(name, plan, progress) for name in MODELS]}


def _beginnings(plan: Plan) -> list[Plan]:
    """Return ever longer beginnings of a long run, with the first seed alone; none of a short run."""
    first = replace(plan, seeds=plan.seeds[:1])
    beginnings, factor = [first] if len(plan.seeds) > 1 else [], 1
    while packets(first) / factor > FIRST_PACKETS:
        factor *= STEP
        beginnings.append(shortened(first, factor))
    return beginnings[::-1] if packets(plan) > FIRST_PACKETS else []


# --- the picture


def picture(data: Dataset, duration_s: float) -> dict[str, Any]:
    """Return the curves of a result for a time axis of `duration_s`; a band where there are several runs.

    Times in s, windows in segments, goodput in Mb/s, delays in ms; drops and marks are counts by bin. A panel that has
    nothing to draw is null.
    """
    views = list(metrics.runs(data))
    windows, queue = _possible(lambda: curves.windows(views[0])), _possible(lambda: curves.queue(views[0]))
    return {
        "part": "picture",
        "engine": data.manifest["engine"],
        "until_s": data.plan.duration_s,
        "duration_s": duration_s,
        "warmup_s": data.plan.warmup_s,
        "seeds": len(views),
        "groups": list(data.plan.group_names),
        "cwnd": windows and _windows(windows),
        "goodput": _possible(lambda: _goodput(views)),
        "queue": queue and _queue(queue, views),
        "events": _events(views[0], duration_s),
        "phase": windows and queue and _phase(windows, queue),
    }


def _possible(make: Callable[[], Any]) -> Any:
    """Return what a function makes; None where there is nothing to draw."""
    try:
        return make()
    except InputError:
        return None


def listed(values: Array, digits: int = 4) -> list[float | None]:
    """Return an array for JSON, rounded to so many digits of its greatest value; NaN is null."""
    greatest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
    decimals = digits - 1 - math.floor(math.log10(greatest)) if greatest else 0
    rounded = np.round(values, decimals)
    return [value if finite else None for value, finite in zip(rounded.tolist(), np.isfinite(rounded), strict=True)]


def _instants(count: int) -> slice:
    """Return every n-th of so many instants, the last among them."""
    step = max(1, -(-count // POINTS))
    return slice((count - 1) % step, None, step)


def _windows(lines: curves.Lines) -> dict[str, Any]:
    """Return some flows' windows; flows of each group in turn, so that no group is without a line."""
    chosen, at = _of_each_group(lines.groups), _instants(lines.times_s.size)
    return {
        "t": listed(lines.times_s[at], 6),
        "flows": lines.count,
        "lines": [
            {"label": lines.labels[n], "group": lines.groups[n], "y": listed(lines.values[at, n])} for n in chosen
        ],
    }


def _of_each_group(groups: Sequence[str]) -> list[int]:
    """Return the numbers of at most `MAX_LINES` lines, the first of each group first, then the second."""
    ranks: dict[str, int] = {}
    ranked = []
    for number, group in enumerate(groups):
        ranks[group] = ranks.get(group, 0) + 1
        ranked.append((ranks[group], number))
    return sorted(number for _, number in sorted(ranked)[:MAX_LINES])


def _goodput(views: Sequence[RunView]) -> dict[str, Any]:
    """Return the goodput of each group: the mean over the runs, and the least and greatest."""
    runs = [_with_pauses(curves.goodputs(view)) for view in views]
    times_s = runs[0].times_s
    totals: dict[str, list[Array]] = {}
    for lines in runs:
        for name, own in lines.by_group():
            totals.setdefault(name, []).append(np.interp(times_s, own.times_s, own.total()) / 1e6)
    at = _instants(times_s.size)
    rate_bps = curves.link_rate(views[0])
    return {
        "t": listed(times_s[at], 6),
        "rate": rate_bps and rate_bps / 1e6,
        "groups": [{"group": name, **_band([values[at] for values in runs])} for name, runs in totals.items()],
    }


def _with_pauses(lines: curves.Lines) -> curves.Lines:
    """Return lines that are zero where no flow was sampled for long: between the rounds of an incast."""
    steps_s = np.diff(lines.times_s)
    step_s = float(np.median(steps_s)) if steps_s.size else 0.0
    pauses = np.flatnonzero(steps_s > PAUSE * step_s)
    ends_s = np.stack([lines.times_s[pauses] + step_s, lines.times_s[pauses + 1] - step_s], axis=1).ravel()
    places = np.repeat(pauses + 1, 2)
    return replace(
        lines,
        times_s=np.insert(lines.times_s, places, ends_s),
        values=np.insert(lines.values, places, 0.0, axis=0),
    )


def _queue(queue: curves.Queue, views: Sequence[RunView]) -> dict[str, Any]:
    """Return the queueing delay with its peaks in the first run; the band is that of all runs.

    An empty queue from which nothing departed since the last sample delays nothing.
    """
    times_s, delay_s = curves.thinned(queue.times_s, np.nan_to_num(queue.sojourn_s), POINTS)
    runs = [1e3 * delay_s]
    for view in views[1:]:
        other = curves.queue(view, queue.link)
        runs.append(1e3 * np.interp(times_s, other.times_s, np.nan_to_num(other.sojourn_s)))
    return {"t": listed(times_s, 6), "where": queue.where, **_band(runs)}


def _band(runs: Sequence[Array]) -> dict[str, Any]:
    """Return the mean over the runs as `y`; of several runs `low` and `high` too."""
    if len(runs) == 1:
        return {"y": listed(runs[0])}
    every = np.stack(runs)
    return {"y": listed(every.mean(axis=0)), "low": listed(every.min(axis=0)), "high": listed(every.max(axis=0))}


def _events(view: RunView, duration_s: float) -> dict[str, Any]:
    """Return how many packets were dropped, lost at random and marked in each bin of the first run."""
    edges = np.linspace(0.0, duration_s, BINS + 1)
    counts = {}
    for kind in ("drop", "loss", "mark"):
        counts[kind] = np.histogram(view.events(kind)["time_s"], edges)[0].tolist()
    return {"t": listed((edges[:-1] + edges[1:]) / 2, 6), "width_s": duration_s / BINS, **counts}


def _phase(windows: curves.Lines, queue: curves.Queue) -> dict[str, Any]:
    """Return the sum of all windows against the backlog, in packets, in the order of time."""
    at = _instants(windows.times_s.size)
    times_s = windows.times_s[at]
    backlog_p = np.interp(times_s, queue.times_s, np.nan_to_num(queue.backlog_p))
    return {"t": listed(times_s, 6), "window": listed(windows.total()[at]), "backlog": listed(backlog_p)}


# --- numbers


def _numbers(data: Dataset, plan: Plan) -> dict[str, Any]:
    """Return who got what, the main metrics, and the warnings, as text; the metrics' means as numbers too."""
    table = data.metrics()
    heads, rows = summary_text.group_table(table["groups"])
    each = [one["metrics"] for one in table["runs"]]
    return {
        "groups": {"heads": heads, "rows": rows},
        "metrics": _main(table["summary"]),
        "values": {name: table["summary"][name]["mean"] for name in metrics.main("table")},
        "warnings": guards.warnings([guards.Setting("", plan, ENGINE, each, data)]),
    }


def _main(summary: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return names, labels and texts of the main metrics that have a value, with half their intervals."""
    return [
        [
            name,
            METRICS[name].label,
            numbers.estimate(row["mean"], row["ci95_low"], row["ci95_high"], METRICS[name].unit),
        ]
        for name in metrics.main("table")
        if (row := summary[name])["mean"] is not None
    ]


def _model(name: str, plan: Plan, progress: Progress) -> dict[str, Any]:
    """Return a model's curves and metrics; where it does not support the plan, why."""
    engine = engines.engine(name)
    if reasons := engines.unsupported(engine, plan):
        return {"engine": name, "why": str(reasons[0]), "picture": None, "metrics": []}
    try:
        data = engine.run(engines.resolve_inputs(engine, plan), plan.seeds[0], RunOptions(progress=progress))
    except (InputError, UnsupportedError) as error:
        return {"engine": name, "why": str(error), "picture": None, "metrics": []}
    return {
        "engine": name,
        "why": "",
        "picture": picture(data, plan.duration_s),
        "metrics": _main(data.metrics()["summary"]),
    }


#: Longest log that is made, and packets of a moment, both in packets of the bottlenecks.
MAX_LOGGED, MAX_SHOWN = 2_000_000, 1500

#: A moment's length in base RTTs, if it does not have too many packets; and how long before it packets may have come
#: that are still in the queue, in seconds.
RTTS, BEFORE_S = 6, 2.0


@dataclass(slots=True)
class Passage:
    """A data packet at the bottleneck: when it came to the queue, left the link, arrived, or was dropped, in s."""

    flow: int
    entered_s: float
    left_s: float | None = None
    arrived_s: float | None = None
    dropped_s: float | None = None

    @property
    def end_s(self) -> float:
        """The instant from which nothing is left of the packet; infinite if the log has none."""
        ends_s = (self.arrived_s, self.dropped_s)
        return next((end_s for end_s in ends_s if end_s is not None), math.inf)


def moment(plan: Plan, from_s: float, progress: Progress = no_progress) -> dict[str, Any]:
    """Return the packets at the busiest bottleneck from an instant on, and the ACKs, as JSON.

    `packets` are [flow, entered, left, arrived, dropped], `acks` [flow, sent, arrived], times in s; an ACK's time of
    sending is half a base RTT before its arrival. Raises `InputError` for an instant that is outside the run, or too
    late to log all packets until then.
    """
    if not (math.isfinite(from_s) and 0 <= from_s < plan.duration_s):
        raise InputError(f"from: found {from_s:g} s; expected an instant of the run, 0 s to {plan.duration_s:g} s")
    part = _until(plan, min(plan.duration_s, from_s + _span_s(plan)))
    if (logged := packets(part)) > MAX_LOGGED:
        raise InputError(
            f"from: found {logged:,.0f} packets until then; expected at most {MAX_LOGGED:,}: begin earlier"
        )
    data = run(part, ENGINE, progress=progress)
    link = curves.busiest(next(metrics.runs(data))) or 0
    log = data.packets.filter(pl.col("time_s") >= from_s - BEFORE_S)
    flows = {row["flow"]: row for row in data.flows.iter_rows(named=True)}
    return {
        "from_s": from_s,
        "until_s": part.duration_s,
        "link": part.links[link].name,
        "groups": {number: part.groups[row["group"]].name for number, row in flows.items()},
        "packets": [list(astuple(each)) for each in passages(log, link) if each.end_s >= from_s][: 4 * MAX_SHOWN],
        "acks": [
            [flow, at_s - (flows[flow]["base_rtt_s"] or 0.0) / 2, at_s]
            for flow, at_s in log.filter(kind="ack", what="arrive").select("flow", "time_s").iter_rows()
            if at_s >= from_s
        ],
    }


def _span_s(plan: Plan) -> float:
    """Return a moment's length: some base RTTs, unless the bottlenecks carry too many packets in them."""
    return min(RTTS * plan.mean_base_rtt_s, plan.duration_s * MAX_SHOWN / packets(replace(plan, seeds=(1,))))


def _until(plan: Plan, until_s: float) -> Plan:
    """Return the plan of the first run up to an instant, with the log."""
    record = replace(plan.record, packets=True, interval_s=min(plan.record.interval_s, until_s))
    return replace(plan, duration_s=until_s, warmup_s=0.0, seeds=plan.seeds[:1], record=record)


def passages(log: pl.DataFrame, link: int) -> list[Passage]:
    """Return the passages of data packets through a link, from a log in the order of time.

    Copies of a segment are told apart by their order. A packet that is dropped as it comes never waited.
    """
    waiting: dict[tuple[int, int], list[Passage]] = {}
    flying: dict[tuple[int, int], list[Passage]] = {}
    made: list[Passage] = []
    here = log.filter((pl.col("kind") == "data") & ((pl.col("link") == link) | (pl.col("what") == "arrive")))
    for flow, sequence, at_s, what in here.select("flow", "sequence", "time_s", "what").iter_rows():
        key = (flow, sequence)
        if what == "arrive":
            if flying.get(key):
                flying[key].pop(0).arrived_s = at_s
            continue
        present = waiting[key].pop(0) if what != "enqueue" and waiting.get(key) else Passage(flow, at_s)
        if present.entered_s == at_s:
            made.append(present)
        if what == "enqueue":
            waiting.setdefault(key, []).append(present)
        elif what == "dequeue":
            present.left_s = at_s
            flying.setdefault(key, []).append(present)
        else:
            present.dropped_s = at_s
    return made
