"""An agent on this machine, which needs no ssh: the same script, the same guard."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import testbeds

from ackclock.errors import InputError
from ackclock.hosts import agent
from ackclock.hosts.agent import Agent, agents

pytestmark = pytest.mark.skipif(not [*testbeds.AGENTS.glob("ackclock-agent-*")], reason="no agent: `make agent`")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that agents are copied to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_local_agent_responds_and_leaves_no_files(places: Path):
    with agents({"this host": None}) as there:
        assert list(places.iterdir())
        (kind,) = there["this host"].read_files("/proc/sys/kernel/ostype")
        assert kind == "Linux\n"
        assert there["this host"].end() == []
    assert not list(places.iterdir())


def test_a_waiting_agent_receives_keep_alives(monkeypatch: pytest.MonkeyPatch):
    """Its guard would end it after a second."""
    start = Agent.start

    def late(self: Agent, patience_s: int) -> None:
        time.sleep(1.6 if self.name == "late" else 0.0)
        start(self, patience_s)

    monkeypatch.setattr(agent, "ALIVE_S", 0.2)
    monkeypatch.setattr(Agent, "start", late)
    with agents({"early": None, "late": None}, patience_s=1) as there:
        assert [each.end() for each in there.values()] == [[], []]


def test_a_processor_without_an_agent_is_rejected(places: Path, monkeypatch: pytest.MonkeyPatch):
    known = agent.program
    monkeypatch.setattr(agent, "program", lambda _: known("pdp11"))
    said = "found no agent for pdp11 machines; expected .*: `make agent` builds"
    with pytest.raises(InputError, match=said), agents({"this host": None}):
        pass
    assert not list(places.iterdir())
