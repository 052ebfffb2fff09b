"""The rule of B2.6: fast convergence in the model and in the simulation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf

import numpy as np

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.metrics import RunView
from ackclock.theory import single_flow

ENGINES = ("theory", "packet", "ns2")
BOTH, NONE = "both", "no fast convergence"

#: The model with both expressions matches: within 10 %; up to 25 % it is of its kind.
MATCH, ALIKE = 0.10, 0.25

#: “Less good”: further off than with both by 5 % at least; further off at all.
LESS_GOOD, NOT_BETTER = (0.05, inf), (0.0, inf)

#: “Not always at the same level”: a tenth of a packet is what a figure could show; a hundredth is not rounding.
LEVELS, ALMOST_ONE = (0.1, inf), (0.01, inf)

#: Cycles of the model with the first expression alone: some to settle, and those that are measured; so in neighbours.
SETTLING, LOOKED_AT, BESIDE = 10, 60, 20

#: Neighbours of the scenario's RTT, as parts of it, and in how many of them the levels should differ: in most.
NEIGHBOURS = np.linspace(0.96, 1.04, 201)
MOST, ANY = (0.5, 1.0), (0.0, 1.0)


def runs(engine: str, case: str) -> bool:
    """The simulation has fast convergence, as ns-2 had."""
    return engine == "theory" or case == BOTH


def first_expression(flow: single_flow.SingleFlow, window: float, last: float) -> single_flow.Epoch:
    """Fast convergence lowers w_max to (1 − β/2) W, and V = ∛(β w_max / c) as without it (equation 2.12)."""
    w_max = single_flow.after_loss(flow, window, last).plateau
    return single_flow.Epoch((1 - flow.beta) * w_max, w_max)


def model(view: RunView) -> single_flow.SingleFlow:
    """The run's flow in the model; the limit of its queue may be one in bytes."""
    link, given = view.plan.links[0], view.plan.options["theory"]["single_cubic"]
    wire_bits, limit = 8 * view.plan.packet_bytes, link.queue.parameters
    buffer_p = limit["limit_packets"] if "limit_packets" in limit else 8 * limit["limit_bytes"] / wire_bits
    return single_flow.SingleFlow(link.rate_bps / wire_bits, view.plan.mean_base_rtt_s, buffer_p, **given)


def first_cycles(flow: single_flow.SingleFlow, count: int = LOOKED_AT) -> Iterator[single_flow.Cycle]:
    """The cycles of the model with the first expression alone."""
    return islice(single_flow.cycles(flow, first_expression), SETTLING, SETTLING + count)


def first_period_s(view: RunView) -> float:
    """Their mean length."""
    return float(np.mean([cycle.end_s for cycle in first_cycles(model(view))]))


def spread_p(flow: single_flow.SingleFlow, count: int = LOOKED_AT) -> float:
    """Greatest less smallest of the windows at which they see their loss."""
    return float(np.ptp([cycle.end_window for cycle in first_cycles(flow, count)]))


def levels_p(view: RunView) -> float:
    """The same in a run's model."""
    return spread_p(model(view))


def neighbours_p(view: RunView) -> tuple[float, ...]:
    """The same at RTTs around the run's."""
    flow = model(view)
    return tuple(spread_p(replace(flow, rtt_s=flow.rtt_s * part), BESIDE) for part in NEIGHBOURS)


def median_p(view: RunView) -> float:
    """The middle one of these."""
    return float(np.median(view.cached(neighbours_p)))


def reaching(least_p: float, view: RunView) -> float:
    """The share of these that are at least so large."""
    return float(np.mean([each >= least_p for each in view.cached(neighbours_p)]))


MEASURES = {
    "period": "cwnd_period_s",
    "alone": first_period_s,
    "levels": levels_p,
    "median": median_p,
    "inner": partial(reaching, LEVELS[0]),
    "outer": partial(reaching, ALMOST_ONE[0]),
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return the rows of the model by itself, and as asides whether they depend on the RTT."""
    if NONE not in measured:
        return []
    found = measured[BOTH]
    return [
        Row("levels", found["levels"], LEVELS, ALMOST_ONE),
        Row("near-median", found["median"], LEVELS, ALMOST_ONE, aside=True),
        *(Row(f"near-{band}", found[band], MOST, ANY, aside=True) for band in ("inner", "outer")),
    ]


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """Rows of the model with each simulator."""
    if "theory" not in measured:
        return {}
    others = [engine for engine in ENGINES[1:] if engine in measured]
    return {f"theory, {engine}": _with(measured["theory"], measured[engine][BOTH]["period"]) for engine in others}


def _with(theory: Measured, simulated: Values) -> list[Row]:
    """Periods, model over simulation, and how much further off the other readings are."""
    both = ratio(theory[BOTH]["period"], simulated)
    first, none = ratio(theory[BOTH]["alone"], simulated), ratio(theory[NONE]["period"], simulated)
    return [
        Row("both", both, near(1.0, MATCH), near(1.0, ALIKE)),
        Row("alone", _further(first, both), LESS_GOOD, NOT_BETTER),
        Row("alone", _further(none, both), LESS_GOOD, NOT_BETTER, NONE, aside=True),
    ]


def _further(one: Values, other: Values) -> Values:
    """Return the distance of `one` from 1 beyond that of `other`."""
    return tuple(None if a is None or b is None else abs(a - 1) - abs(b - 1) for a, b in zip(one, other, strict=True))
