"""Phase effects: whether a result hangs on a coincidence.

Senders with the same RTT behind clocked links stay in step, so that a few picoseconds decide whose packet finds the
queue full, again and again (S. Floyd, V. Jacobson: Traffic phase effects in packet-switched gateways, CCR 21(2), 1991).
The seeds do not tell: they move starts, which the links' clocks put in step again. A *perturbed run* does: the same
plan with the same seeds, where hosts take another time for each packet. A result is *phase-locked* if a main metric is
another one there: its 95 % intervals are apart, by more than `MIN_CHANGE` of its value.

Used by runs with `--perturb`, sweeps, searches, comparisons and the gallery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ackclock import engines
from ackclock.algorithms import default_processing
from ackclock.dataset import Dataset
from ackclock.engines.engine import Progress, no_progress
from ackclock.errors import InputError, UnsupportedError
from ackclock.experiments import runner
from ackclock.metrics import main, table
from ackclock.metrics.protocols import PHASE
from ackclock.plan import FlowPlan, GroupPlan, Parameters, Plan

#: The engines in which single packets meet at queues.
ENGINES = ("packet", "linux")

#: A smaller relative change is none, however sure it is.
MIN_CHANGE = 0.02

#: Factor of the processing times of a perturbed run's hosts.
LONGER = 1.5

#: Queues in which a packet's fate hangs on who came first.
DROP_TAIL = ("pfifo", "bfifo")


def perturbed(plan: Plan) -> Plan:
    """Return the same plan with other host processing times: measured ones, or half as long again as the plan's."""
    return replace(plan, groups=tuple(map(_noisier, plan.groups)))


def _noisier(group: GroupPlan) -> GroupPlan:
    if group.tcp is None:
        return group
    law = group.tcp.processing
    other = default_processing() if law is None else _longer(law)
    return replace(group, tcp=replace(group.tcp, processing=other))


def _longer(law: Parameters) -> Parameters:
    return {key: LONGER * value if key.endswith("s") else value for key, value in law.items()}


def check(plan: Plan, engine: str) -> None:
    """Reject what has no perturbed run. Raises `InputError`; `UnsupportedError` if the engine cannot make it."""
    if engine not in ENGINES:
        raise InputError(f"--perturb: found --engine {engine}; expected {' or '.join(ENGINES)}")
    if len(plan.seeds) < 2:
        raise InputError("--perturb: found one run; expected two or more (--repeats): one has no interval to leave")
    if reasons := engines.unsupported(engines.engine(engine), perturbed(plan)):
        raise UnsupportedError(reasons)


def having(plan: Plan, names: Sequence[str]) -> list[str]:
    """Return those engines that can make a plan's perturbed run. Raises as `check`, `InputError` if none can."""
    found = [name for name in names if name in ENGINES]
    for name in found or [",".join(names)]:  # none of them: refused as one that has no perturbed run
        check(plan, name)
    return found


def checked(
    data: Dataset, plan: Plan, engine: str, *, jobs: int | None = None, progress: Progress = no_progress
) -> Dataset:
    """Return the result with its comparison with a perturbed run, which is made for this."""
    other = runner.run(perturbed(plan), engine, jobs=jobs, progress=progress)
    return replace(data, manifest={**data.manifest, PHASE: compared(table(data)["summary"], table(other)["summary"])})


def compared(summary: Mapping[str, Any], noisy: Mapping[str, Any]) -> dict[str, Any]:
    """Compare a result with its perturbed run: is it phase-locked, and which main metrics move?"""
    moved = {
        name: {"here": _bounds(summary[name]), "twin": _bounds(noisy[name])}
        for name in main("table")
        if name in summary
        and _has_interval(summary[name])
        and _has_interval(noisy[name])
        and _moves(summary[name], noisy[name])
    }
    return {"locked": bool(moved), "moved": moved}


def _has_interval(row: Mapping[str, Any]) -> bool:
    return row["ci95_low"] is not None


def _bounds(row: Mapping[str, Any]) -> list[float]:
    return [row["mean"], row["ci95_low"], row["ci95_high"]]


def _moves(here: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    apart = here["ci95_low"] > there["ci95_high"] or there["ci95_low"] > here["ci95_high"]
    size = max(abs(here["mean"]), abs(there["mean"]))
    return bool(apart and abs(here["mean"] - there["mean"]) > MIN_CHANGE * size)


def prone(plan: Plan) -> str | None:
    """Return why a plan is known to be prone to phase effects, in words; None if it is not.

    Greedy flows of one RTT come through access links whose rate divides that of a drop-tail bottleneck, and no host
    takes any time.
    """
    if any(group.tcp and group.tcp.processing for group in plan.groups):
        return None
    if any(link.loss for link in plan.links) or plan.bottleneck_link.queue.discipline not in DROP_TAIL:
        return None
    alike = Counter(found for flow in plan.flows for found in _clocked(flow, plan))
    for (rate_bps, _), count in alike.most_common(1):
        if count > 1:
            return _in_step(count, rate_bps)
    return None


def _in_step(count: int, rate_bps: float) -> str:
    return (
        f"{count} greedy flows of one RTT behind links of {rate_bps / 1e6:g} Mbit/s, which divide the bottleneck's "
        "rate, and whose hosts take no time, stay in step, and the result may depend on it (--perturb "
        "finds out; tcp.processing breaks it up)"
    )


def _clocked(flow: FlowPlan, plan: Plan) -> Iterator[tuple[float, float]]:
    """The rate of the link before the bottleneck, if that divides the bottleneck's, and the RTT of a greedy flow."""
    links = [hop.link for hop in flow.forward.hops]
    greedy = flow.size_bytes is None and flow.application_rate_bps is None
    if greedy and plan.bottleneck in links[1:]:
        before = plan.links[links[links.index(plan.bottleneck) - 1]].rate_bps
        if before < plan.bottleneck_link.rate_bps and plan.bottleneck_link.rate_bps % before == 0:
            yield before, flow.base_rtt_s
