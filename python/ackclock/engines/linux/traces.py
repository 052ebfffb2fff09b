"""Links that follow a trace, in the kernel: rates become changes of the shaper, opportunities a qdisc of our own.

The shaper charges a packet at the rate that it had when the packet left the queue. So steps that each carry less than a
full packet are put together, and carry one at least: a pause lets one packet through, which arrives at its end.

Opportunities are for guests only. The module (`kernel/modules/links/opportunities.c`) is compiled for a guest's kernel
when a plan first needs it, and has a qdisc for each link. The process inside hands it the traces and the start of the
run (`crates/ackclock-linux/src/opportunities.rs`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from ackclock.engines.linux.kernel import bundled_modules, user_module
from ackclock.engines.linux.stack import insmod
from ackclock.plan import ChangePlan, LinkPlan, Plan, TracePlan

#: The module with a qdisc of opportunities.
SOURCE = bundled_modules.FOLDER / "links" / "opportunities.c"

#: A step that begins so close to the end of the run is none.
MIN_S = 1e-9


def stepped(plan: Plan) -> Plan:
    """The plan with constant rates that change, in the order of time, in place of traces of rates."""
    if not any(map(_has_rates, plan.links)):
        return plan
    links, changes = list(plan.links), list(plan.changes)
    for number, link in enumerate(plan.links):
        if link.trace and _has_rates(link):
            first, *rest = _steps(plan, link.trace)
            links[number] = replace(link, rate_bps=first.bps, trace=None)
            changes += [ChangePlan(step.begin_s, number, step.bps) for step in rest]
    return replace(plan, links=tuple(links), changes=tuple(sorted(changes, key=lambda change: change.at_s)))


def capacity_bps(plan: Plan, link: LinkPlan) -> float:
    """The mean rate of a link in the measured part."""
    if link.trace is None:
        return link.rate_bps
    since_s = plan.warmup_s
    if link.trace.has_opportunities:
        count = _before(link.trace, plan.duration_s) - _before(link.trace, since_s)
        bits_each: float = 8.0 * (link.trace.course["bytes"] + link.frame_overhead_bytes)
        return count * bits_each / (plan.duration_s - since_s)
    bits = (step.bps * max(0.0, step.end_s - max(step.begin_s, since_s)) for step in _course(plan, link.trace))
    return math.fsum(bits) / (plan.duration_s - since_s)


def _has_rates(link: LinkPlan) -> bool:
    return link.trace is not None and not link.trace.has_opportunities


def _before(trace: TracePlan, until_s: float) -> int:
    """Opportunities up to a time."""
    at_ms, period_ms = trace.course["at_ms"], round(1000 * trace.period_s)
    turns, within_ms = divmod(1000 * until_s, period_ms)
    return int(turns) * len(at_ms) + bisect_right(at_ms, within_ms)


@dataclass(frozen=True, slots=True)
class _Step:
    """A rate, from a time of the run to another."""

    begin_s: float
    end_s: float
    bps: float

    @property
    def bits(self) -> float:
        return self.bps * (self.end_s - self.begin_s)


def _course(plan: Plan, trace: TracePlan) -> Iterator[_Step]:
    """The steps of all turns until the end of the run."""
    at_s, rates = trace.course["at_s"], trace.course["rate_bps"]
    ends_s = [*at_s[1:], trace.period_s]
    for turn in range(math.ceil(plan.duration_s / trace.period_s)):
        for begin_s, end_s, bps in zip(at_s, ends_s, rates, strict=True):
            begun_s = turn * trace.period_s + begin_s
            if begun_s < plan.duration_s - MIN_S:
                yield _Step(begun_s, min(turn * trace.period_s + end_s, plan.duration_s), bps)


def _steps(plan: Plan, trace: TracePlan) -> Iterator[_Step]:
    """Yield the steps of `_course`, with neighbours that are too slow for a packet merged."""
    packet_bits = 8.0 * plan.packet_bytes
    for is_slow, steps in groupby(_course(plan, trace), lambda step: step.bits < packet_bits):
        if is_slow:
            together = [*steps]
            begin_s, end_s = together[0].begin_s, together[-1].end_s
            bits = max(packet_bits, math.fsum(step.bits for step in together))
            yield _Step(begin_s, end_s, bits / (end_s - begin_s))
        else:
            yield from steps


def links_with_opportunities(plan: Plan) -> list[int]:
    """Return the numbers of the links whose traces have delivery opportunities."""
    return [number for number, link in enumerate(plan.links) if link.trace and link.trace.has_opportunities]


def load_module(plan: Plan, kernel: Path) -> Iterator[str]:
    """Yield the command that loads the module into a guest, if a link needs it. Raises `InputError`."""
    if found := links_with_opportunities(plan):
        yield f"{insmod(_module(kernel), {})} link={','.join(map(str, found))}"


def _module(kernel: Path) -> Path:
    """Return the module for a guest's kernel. Raises `InputError`."""
    user_module.check_tools(user_module.TOOLS, "delivery opportunities in a guest")
    return user_module.compiled(user_module.read(SOURCE), kernel)


def qdisc(number: int) -> str:
    """Return the name of a link's qdisc."""
    return f"opportunity{number}"
