"""Impairments of links: random loss before their queues, and changes of their rates and delays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ackclock.engines.external import planned_traffic
from ackclock.plan import ChangePlan, Plan

LOSS = """
# Packets that a link loses by chance, before its queue: written as those that are dropped.
set losses [open losses w]
proc lose {link probability} {
    global ns losses in$link out$link
    set from [set in$link]
    set to [set out$link]
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ $probability
    $model ranvar [new RandomVariable/Uniform]
    [$ns link $from $to] errormodule $model
    set trace [$ns create-trace Drop $losses $from $to]
    $trace target [new Agent/Null]
    $model drop-target $trace
    puts $losses "link $link [$from id] [$to id]"
}"""


def lines(plan: Plan, used: Sequence[int]) -> Iterator[str]:
    """All of it, for links of these numbers."""
    lossy = [(number, loss["probability"]) for number in used if (loss := plan.links[number].loss)]
    if lossy:
        yield LOSS
    yield from (f"lose {number} {probability:.12g}" for number, probability in lossy)
    if plan.changes:
        yield "\n# Links that change."
    for change in plan.changes:
        yield from _change(change)


def _change(change: ChangePlan) -> Iterator[str]:
    settings = {"bandwidth_": change.rate_bps, "delay_": change.delay_s}
    for name, value in settings.items():
        if value is not None:
            link = f"[[$ns link $in{change.link} $out{change.link}] link]"
            yield f'$ns at {change.at_s:.12g} "{link} set {name} {value:.12g}"'


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the impairments that ns-2 lacks."""
    yield from planned_traffic.unsupported_losses(plan)
    if any(change.up is not None for change in plan.changes):
        yield "links that fail"
