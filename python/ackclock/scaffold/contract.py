"""The contract of an algorithm: its spec, its parameters, its behaviour in random histories, a run.

The laws of a congestion control algorithm's windows are the packet engine's own
(`crates/ackclock-congestion/src/contract.rs`). All is checked in the code that is built; nothing is compiled here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from ackclock import _core, algorithms
from ackclock.algorithms import AlgorithmSpec, Parameter, code
from ackclock.errors import AckclockError, InputError
from ackclock.input.fields import shown
from ackclock.plan import Plan

#: Random histories of a connection for each set of parameters.
HISTORIES = 500

#: A short run, long enough for slow start, losses and recovery.
SCENARIO = """
duration = "20s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = {queue}
[[flows]]
count = 2
congestion = "{congestion}"
start = {{ jitter = "100ms" }}
stop = "15s"
"""

#: The rate of the scenario's bottleneck.
RATE_BPS = 10e6

#: Values for parameters without a default.
REQUIRED = {"bytes": "64KB", "packets": "10p"}

#: Raises `ValueError` for parameters (JSON) that the code does not accept.
Accept: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of the contract, and its violations."""

    text: str
    violations: tuple[str, ...]


def congestion_clauses(name: str) -> Iterator[Clause]:
    """Yield each part of a congestion control algorithm's contract, checked. Raises `InputError` if it has no code."""
    spec = algorithms.spec("congestion", name)
    if missing := code.missing(spec):
        raise InputError(missing)
    if name not in (*_core.CONGESTION_CONTROLS, *algorithms.in_python()):
        raise InputError(f"NAME: found {shown(name)}, which only real kernels have; expected one of the packet engine")
    accept = partial(_core.check_congestion, name)
    text = SCENARIO.format(queue='{ discipline = "pfifo", limit = "1bdp" }', congestion=name)
    complete = {"the spec is complete, its defaults within their ranges": partial(spec_errors, spec)}
    return _checked(
        {
            **({} if spec.in_python else complete),
            "the code takes the spec's parameters and no others": partial(
                _parameter_errors, accept, partial(_parameter_sets, spec)
            ),
            f"windows, thresholds and rates are valid in {HISTORIES} random histories": partial(_window_errors, spec),
            "two flows share a link, with the same result twice": partial(_run_errors, text),
        }
    )


def queue_clauses(name: str) -> Iterator[Clause]:
    """Yield each part of a queue discipline's contract, checked. Raises `InputError` if it has no code."""
    spec = algorithms.spec("queue", name)
    if name not in _core.QUEUE_DISCIPLINES:
        raise InputError(f"NAME: found {shown(name)}, whose Rust file is not compiled; `make setup` builds it")
    given = {key: REQUIRED[parameter.kind] for key, parameter in spec.parameters.items() if parameter.required}
    table = ", ".join(f'{key} = "{value}"' for key, value in {"discipline": name, **given}.items())
    text = SCENARIO.format(queue=f"{{ {table} }}", congestion="cubic")

    def accept(parameters: str) -> None:
        _core.check_queue(name, parameters, RATE_BPS)

    def parameter_sets() -> Iterator[tuple[str, dict[str, Any]]]:
        queue = _plan(text).bottleneck_link.queue
        assert queue is not None
        yield "", dict(queue.parameters)

    return _checked(
        {
            "the spec is complete, its defaults within their ranges": partial(spec_errors, spec),
            "the code takes the spec's parameters and no others": partial(_parameter_errors, accept, parameter_sets),
            "two flows share a link, with the same result twice": partial(_run_errors, text),
        }
    )


def _checked(clauses: Mapping[str, Callable[[], Iterator[str]]]) -> Iterator[Clause]:
    return (Clause(text, tuple(errors())) for text, errors in clauses.items())


def spec_errors(spec: AlgorithmSpec) -> Iterator[str]:
    """Yield the errors of an algorithm's spec, of any family."""
    if not spec.summary.strip():
        yield "found no summary"
    if not spec.references:
        yield "found no [[references]]; expected a paper, an RFC or other documentation"
    for name, parameter in spec.parameters.items():
        yield from (f"parameters.{name}: {error}" for error in _parameter_spec_errors(parameter))
    for name, variant in spec.variants.items():
        if not variant.parameters:
            yield f"variants.{name}: found no parameters"
        for key, value in variant.parameters.items():
            yield from (f"variants.{name}.{key}: {error}" for error in _value_errors(spec.parameters.get(key), value))


def _parameter_spec_errors(parameter: Parameter) -> Iterator[str]:
    for key in ("description", "source"):
        if not getattr(parameter, key):
            yield f"found no {key}"
    has_range = parameter.kind not in ("boolean", "choice", "text")
    for key in ("minimum", "maximum"):
        if (getattr(parameter, key) is not None) != has_range:
            yield f"found {'no' if has_range else 'a'} {key}; expected {'one' if has_range else 'none'}"
    if (parameter.kind == "choice") != bool(parameter.choices):
        yield "found choices and another kind, or none; expected both or neither"
    if (parameter.kind == "text") != bool(parameter.pattern):
        yield "found a pattern and another kind, or none; expected both or neither"
    if parameter.default is not None:
        yield from _value_errors(parameter, parameter.default)


def _value_errors(parameter: Parameter | None, value: object) -> Iterator[str]:
    from pydantic import ValidationError

    if parameter is None:
        yield "found no parameter of this name"
        return
    try:
        parameter.read(value)
    except ValidationError:
        yield f"found {shown(value)}; expected a value of the parameter's own range"


def _parameter_sets(spec: AlgorithmSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parameters as the engine gets them: the spec's defaults, then those of each variant."""
    for variant in (None, *spec.variants):
        values = spec.complete({}, variant)
        yield variant or "", {spec.key(name): value for name, value in values.items()}


def _parameter_errors(accept: Accept, sets: Callable[[], Iterator[tuple[str, dict[str, Any]]]]) -> Iterator[str]:
    for variant, values in sets():
        if error := _rejection(accept, values):
            yield f"the values of {variant or 'the spec'} are rejected: {error}"
        for wrong, what in _wrong_values(values):
            if not _rejection(accept, wrong):
                yield f"{what} is accepted; expected an error"


def _wrong_values(values: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield values that the spec does not allow, and what is wrong with them."""
    yield {**values, "no_such_parameter": 1}, "a parameter that is not in the spec"
    for key, value in values.items():
        if value is not None:  # optional parameters may be left out
            yield {name: other for name, other in values.items() if name != key}, f"nothing for {key}"
        yield {**values, key: "no such value"}, f"a text for {key}"


def _rejection(accept: Accept, values: Mapping[str, Any]) -> str:
    try:
        accept(json.dumps(values))
    except ValueError as error:
        return str(error)
    return ""


def _window_errors(spec: AlgorithmSpec) -> Iterator[str]:
    for variant, values in _parameter_sets(spec):
        error = _contract_error(spec, values)
        if error:
            yield f"{variant}: {error}" if variant else error


def _contract_error(spec: AlgorithmSpec, values: Mapping[str, Any]) -> str | None:
    if not spec.in_python:
        return _core.check_contract(spec.name, json.dumps(values), HISTORIES)
    from ackclock.algorithms import prototype

    try:
        with prototype.reported([spec.name]):
            return _core.check_contract(spec.name, json.dumps(values), HISTORIES)
    except InputError as error:
        return str(error)


def _plan(text: str) -> Plan:
    from ackclock.scenario import planning

    return planning.loads(text, "a short run").plan()


def _run_errors(text: str) -> Iterator[str]:
    from ackclock.engines.packet import PacketEngine

    try:
        plan = _plan(text)
        first, second = (PacketEngine().run(plan, 1) for _ in range(2))
    except AckclockError as error:
        yield str(error)
        return
    for table in ("flows", "flow_samples"):
        if not getattr(first, table).equals(getattr(second, table)):
            yield f"two runs with the same seed differ in the table {table}"
    for flow, delivered in enumerate(first.flows["delivered_bytes"]):
        if not delivered:
            yield f"flow {flow} delivered nothing"
