"""Roles of the hosts on a testbed, and who sends to whom.

Used by the other modules of a testbed, and by `doctor host network`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ackclock.engines.linux.network import End, Ends
from ackclock.plan import PathPairsPlan, Plan

#: The option of a plan that says where its testbed is, and the kernel that is its hosts'.
TESTBED, HOSTS = "testbed", "hosts"

SENDER, RECEIVER, ROUTER = "sender", "receiver", "router"

#: Table → column → values, as `_core.linux_result` gives them.
Tables: TypeAlias = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of a testbed."""

    name: str
    address: str
    role: str
    data: str | None
    to_receivers: str | None
    to_senders: str | None


@dataclass(frozen=True, slots=True)
class Testbed:
    """The machines of a plan; `rtt_s` is the delay that is added, None if the path's own is not known.

    Where the path is left as it is, there is no router.
    """

    hosts: tuple[Host, ...]
    existing_path: bool
    rtt_s: float | None
    ssh_config: Path | None

    @staticmethod
    def of(plan: Plan) -> Testbed:
        """Return the testbed of a plan."""
        given = plan.options[TESTBED]
        config = given["ssh_config"]
        hosts = tuple(Host(**host) for host in given["hosts"])
        return Testbed(hosts, given["existing_path"], given["rtt_s"], Path(config) if config else None)

    @property
    def router(self) -> Host:
        """The host between the others."""
        return next(host for host in self.hosts if host.role == ROUTER)

    def role(self, role: str) -> list[Host]:
        """The hosts with a role."""
        return [host for host in self.hosts if host.role == role]

    @property
    def destinations(self) -> dict[str, str]:
        """Return the ssh destination of each host by name."""
        return {host.name: host.address for host in self.hosts}

    def ways(self, plan: Plan) -> Ways:
        """The sources of a plan take the senders in turn, and the receivers."""
        senders, receivers = self.role(SENDER), self.role(RECEIVER)

        def ends(number: int) -> Ends:
            source, sink = senders[number % len(senders)], receivers[number % len(receivers)]
            return Ends(End(source.name, str(source.data)), End(sink.name, str(sink.data)))

        traffic = [len(item.population.paths) for item in plan.traffic if isinstance(item.population, PathPairsPlan)]
        flows, datagrams, *others = ([*map(ends, range(of))] for of in (len(plan.flows), len(plan.datagrams), *traffic))
        return Ways(flows, datagrams, others)


@dataclass(frozen=True, slots=True)
class Ways:
    """The two hosts of each flow, of each UDP source, and of each source of traffic."""

    flows: list[Ends]
    datagrams: list[Ends]
    traffic: list[list[Ends]]


def peers(testbed: Testbed, host: Host) -> list[str]:
    """The data's addresses at the other side."""
    others = {SENDER: RECEIVER, RECEIVER: SENDER}.get(host.role)
    return [str(other.data) for other in testbed.role(others)] if others else []
