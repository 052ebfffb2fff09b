"""Helpers for tests of networks: a scenario of one network, its plan or its mistakes."""

from __future__ import annotations

import pytest

from ackclock.errors import ScenarioError
from ackclock.plan import EndsPlan, Plan
from ackclock.scenario import planning

QUEUE = 'queue = { discipline = "pfifo", limit = "100p" }'


def plan(network: str, rest: str) -> Plan:
    return planning.loads(f'duration = "1s"\n[network]\n{network}\n{rest}', "x.toml").plan()


def rejections(network: str, rest: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        plan(network, rest)
    return str(caught.value).split("\n")


def names(made: Plan, ends: EndsPlan | None) -> tuple[str, str]:
    assert ends
    return made.nodes[ends.source].name, made.nodes[ends.destination].name
