"""Fitted parameters as the tables of a scenario and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from ackclock.experiments.fit.estimate import Fitted, Interval


def toml(found: Fitted, names: Iterable[str]) -> str:
    """The tables `[fluid]` and `[meanfield]`, with comments that say the intervals."""
    growth = found.growth
    weights = f"rate = {found.rate[0]:.4g}" + (f", growth = {growth[0]:.4g}" if growth else "")
    gap = f"pauses of {_text_of(found.gap)} RTTs separate them" if found.gap else "pauses are of one kind"
    lines = [
        f"# ackclock fit {' '.join(names)}",
        f"# {found.events} loss events in {_counted(found.runs, 'run')}, {found.flows:.3g} flows and "
        f"{found.lost_p:.3g} lost packets each, one in {found.interval_s:.3g} s; {gap}",
        f"# share of the flows hit: {_text_of(found.share)}; intervals are of 95 %",
        "",
        "[fluid]",
        f"# loss_weight: {_text_of(found.fluid_loss_weight)}",
        f'synchronisation = {{ kind = "losses", loss_weight = {found.fluid_loss_weight[0]:.4g} }}',
        f"# rate: {_text_of(found.rate)}" + (f"; growth: {_text_of(growth)}" if growth else ""),
        f'loss_assignment = {{ kind = "weighted", {weights} }}',
        "",
        "[meanfield]",
        f"# loss_weight: {_text_of(found.field_loss_weight)}; loss_rate_exponent: {_text_of(found.loss_rate_exponent)}",
        f"loss_weight = {found.field_loss_weight[0]:.4g}",
        f"loss_rate_exponent = {found.loss_rate_exponent[0]:.4g}",
        "recovery = false  # loss_weight was fitted for it",
    ]
    return "".join(f"{line}\n" for line in lines)


def as_json(found: Fitted) -> str:
    """One line: estimates as {"estimate", "low", "high"}."""
    named = {
        name: dict(zip(("estimate", "low", "high"), value, strict=True)) if isinstance(value, tuple) else value
        for name, value in asdict(found).items()
    }
    return json.dumps(named) + "\n"


def _text_of(interval: Interval) -> str:
    estimate, low, high = interval
    return f"{estimate:.3g} ({low:.3g} to {high:.3g})"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
