"""Every parameter of every spec: a value outside its range is refused in one line that names file, line and key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ackclock import algorithms
from ackclock.algorithms import NAME_KEYS, AlgorithmSpec, Parameter
from ackclock.errors import ScenarioError
from ackclock.scenario import planning

SCENARIO = """duration = "10s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = {queue}
[tcp]
stack = "{stack}"
{tcp}
[[flows]]
congestion = {congestion}
[[traffic]]
kind = "media"
congestion = {realtime}
"""
#: Each family's table: its line in the scenario and the beginning of its keys.
PLACES = {
    "queue": (6, "network.queue."),
    "congestion": (11, "flows[0].congestion."),
    "realtime": (14, "traffic[0].congestion."),
    "stack": (9, "tcp."),
}


def outside(parameter: Parameter) -> Iterator[str]:
    """Values just outside the range, and of another kind, as TOML."""
    if parameter.kind == "boolean":
        yield from ("2", '"yes"')
    elif parameter.kind in ("choice", "text"):
        yield from ('"no-such-choice"', "7")
    elif parameter.kind in ("integer", "number"):
        low, high = float(parameter.minimum), float(parameter.maximum)
        step = 1 if parameter.kind == "integer" else max(1e-9, (high - low) * 1e-6)
        values = (low - step, high + step)
        yield from (str(int(value)) if parameter.kind == "integer" else repr(value) for value in values)
        yield '"1ms"'
    elif parameter.kind == "times":
        yield from ('"1e15h"', "7", '"-1s"')
    else:
        unit = {"time": "h", "rate": "Tbit", "bytes": "TB", "packets": "p"}[parameter.kind]
        yield from (f'"1e15{unit}"' if unit != "p" else '"99999999999999p"', "7", '"-1s"')


def scenario(spec: AlgorithmSpec, name: str, value: str) -> str:
    given = {n: '"64KB"' if p.kind == "bytes" else '"10p"' for n, p in spec.parameters.items() if p.required}
    given = {**given, name: value}
    keys = ", ".join(f"{key} = {text}" for key, text in given.items())
    parts = {"queue": '{ discipline = "pfifo", limit = "50p" }', "tcp": "", "stack": "linux"}
    parts |= {"congestion": '"reno"', "realtime": '"gcc"'}
    if spec.family == "stack":
        parts |= {"stack": spec.name, "tcp": keys}
    else:
        parts[spec.family] = f'{{ {NAME_KEYS[spec.family]} = "{spec.name}", {keys} }}'
    return SCENARIO.format(**parts)


@pytest.mark.parametrize("spec", algorithms.every(), ids=lambda spec: f"{spec.family}/{spec.name}")
def test_a_value_outside_the_range_is_rejected_at_its_line(spec):
    line, prefix = PLACES[spec.family]
    for name, parameter in spec.parameters.items():
        for value in outside(parameter):
            with pytest.raises(ScenarioError) as caught:
                planning.loads(scenario(spec, name, value), "x.toml").plan()
            (problem,) = str(caught.value).splitlines()
            assert problem.startswith(f"x.toml:{line}: {prefix}{name}: found "), (spec.name, name, value, problem)
            assert "; expected " in problem


@pytest.mark.parametrize("spec", algorithms.every(), ids=lambda spec: f"{spec.family}/{spec.name}")
def test_what_is_at_the_ends_of_the_range_is_accepted(spec):
    for parameter in spec.parameters.values():
        for end in (parameter.minimum, parameter.maximum):
            if end is not None:
                parameter.read(end)
