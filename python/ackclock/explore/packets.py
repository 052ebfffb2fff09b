"""A moment of a run packet by packet, for slow motion: what waited, was sent, arrived or was dropped at the bottleneck.

The run is repeated with the per-packet log up to the end of the moment, which does not change it.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any

import polars as pl

from ackclock import metrics
from ackclock.engines.engine import Progress, no_progress
from ackclock.errors import InputError
from ackclock.experiments.runner import run
from ackclock.explore.runs import ENGINE, packets
from ackclock.figures import curves
from ackclock.plan import Plan

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
