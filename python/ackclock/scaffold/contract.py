"""What must hold of a congestion control: its card, its parameters, its windows under any history, a run.

The laws of its windows are the packet engine's own (`crates/ackclock-congestion/src/contract.rs`); they are tried in
the code that is built, so that nothing is compiled here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ackclock import _core, algorithms
from ackclock.algorithms import Card, Parameter, code
from ackclock.errors import AckclockError, InputError
from ackclock.input.fields import shown

#: Random histories of a connection that each set of parameters goes through.
HISTORIES = 500

#: A short run: enough for slow start, losses and what comes after.
SCENARIO = """
duration = "20s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = {{ discipline = "pfifo", limit = "1bdp" }}
[[flows]]
count = 2
congestion = "{name}"
start = {{ jitter = "100ms" }}
stop = "15s"
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A part of the contract: what it says, and in words what breaks it; nothing if it holds."""

    says: str
    broken: tuple[str, ...]


def kept(name: str) -> Iterator[Kept]:
    """Each part of the contract, tried when it is asked for. Raises `InputError` for what the packet engine has not."""
    card = algorithms.card("congestion", name)
    if missing := code.missing(card):
        raise InputError(missing)
    if name not in _core.CONGESTION_CONTROLS:
        raise InputError(f"NAME: found {shown(name)}, which only real kernels have; expected one of the packet engine")
    parts: Mapping[str, Callable[[], Iterator[str]]] = {
        "the card is complete, its defaults within their ranges": partial(of_card, card),
        "the code takes the card's parameters and no others": partial(_of_parameters, card),
        f"windows, thresholds and rates stay sane in {HISTORIES} random histories": partial(_of_windows, card),
        "two flows share a link, with the same result twice": partial(_of_run, name),
    }
    return (Kept(says, tuple(tried())) for says, tried in parts.items())


def of_card(card: Card) -> Iterator[str]:
    """What of a card, of any family, is not as it has to be."""
    if not card.summary.strip():
        yield "found no summary"
    if not card.references:
        yield "found no [[references]]; expected a paper, an RFC or other documentation"
    for name, parameter in card.parameters.items():
        yield from (f"parameters.{name}: {what}" for what in _of_parameter(parameter))
    for name, variant in card.variants.items():
        if not variant.parameters:
            yield f"variants.{name}: found no parameters"
        values = variant.parameters.items()
        yield from (f"variants.{name}.{key}: {what}" for key, value in values for what in _read(card, key, value))


def _of_parameter(parameter: Parameter) -> Iterator[str]:
    for key in ("description", "source"):
        if not getattr(parameter, key):
            yield f"found no {key}"
    ranged = parameter.kind not in ("boolean", "choice", "text")
    for key in ("minimum", "maximum"):
        if (getattr(parameter, key) is not None) != ranged:
            yield f"found {'no' if ranged else 'a'} {key}; expected {'one' if ranged else 'none'}"
    if (parameter.kind == "choice") != bool(parameter.choices):
        yield "found choices and another kind, or none; expected both or neither"
    if (parameter.kind == "text") != bool(parameter.pattern):
        yield "found a pattern and another kind, or none; expected both or neither"
    if parameter.default is not None:
        yield from _accepted(parameter, parameter.default)


def _read(card: Card, name: str, value: object) -> Iterator[str]:
    if name in card.parameters:
        return _accepted(card.parameters[name], value)
    return iter(["found no parameter of this name"])


def _accepted(parameter: Parameter, value: object) -> Iterator[str]:
    from pydantic import ValidationError

    try:
        parameter.read(value)
    except ValidationError:
        yield f"found {shown(value)}; expected a value of the parameter's own range"


def _sets(card: Card) -> Iterator[tuple[str, dict[str, Any]]]:
    """The card's parameters as the engine gets them: its defaults, then those of each variant."""
    for variant in (None, *card.variants):
        values = card.complete({}, variant)
        yield variant or "", {card.key(name): value for name, value in values.items()}


def _of_parameters(card: Card) -> Iterator[str]:
    for variant, values in _sets(card):
        if refused := _refused(card, values):
            yield f"the values of {variant or 'the card'} are refused: {refused}"
        for wrong, what in _wrong(values):
            if not _refused(card, wrong):
                yield f"{what} is accepted; expected a refusal"


def _wrong(values: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Values that are not the card's, and what is wrong with them."""
    yield {**values, "no_such_parameter": 1}, "a parameter that is not on the card"
    for key, value in values.items():
        if value is not None:  # what the card leaves open may be left out
            yield {name: other for name, other in values.items() if name != key}, f"nothing for {key}"
        yield {**values, key: "no such value"}, f"a text for {key}"


def _refused(card: Card, values: Mapping[str, Any]) -> str:
    try:
        _core.check_congestion(card.name, json.dumps(values))
    except ValueError as error:
        return str(error)
    return ""


def _of_windows(card: Card) -> Iterator[str]:
    for variant, values in _sets(card):
        if broken := _core.try_congestion(card.name, json.dumps(values), HISTORIES):
            yield f"{variant}: {broken}" if variant else broken


def _of_run(name: str) -> Iterator[str]:
    from ackclock.engines.packet import PacketEngine
    from ackclock.scenario import planning

    try:
        plan = planning.loads(SCENARIO.format(name=name), "a short run").plan()
        once, again = (PacketEngine().run(plan, 1) for _ in range(2))
    except AckclockError as error:
        yield str(error)
        return
    for table in ("flows", "flow_samples"):
        if not getattr(once, table).equals(getattr(again, table)):
            yield f"two runs with the same seed differ in the table {table}"
    for flow, delivered in enumerate(once.flows["delivered_bytes"]):
        if not delivered:
            yield f"flow {flow} delivered nothing"
