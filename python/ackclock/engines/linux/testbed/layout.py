"""Who is who on a testbed, who sends to whom, and what each host is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ackclock.engines.linux import disciplines, stack
from ackclock.engines.linux.network import End, Ends, mtu_bytes
from ackclock.engines.linux.order import REAL
from ackclock.engines.linux.script import FLYING_P, shaper
from ackclock.plan import RECEIVERS, SENDERS, PathPairsPlan, Plan

#: The option of a plan that says where its testbed is, and the kernel that is its hosts'.
TESTBED, HOSTS = "testbed", "hosts"

SENDER, RECEIVER, ROUTER = "sender", "receiver", "router"

#: Workloads whose next transfer waits for one before it, which may have been another host's.
WAITING = frozenset({"sources", "web", "incast"})


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
    """The machines of a plan; `rtt_s` is the delay that is added, None if the path's own is not known."""

    hosts: tuple[Host, ...]
    rtt_s: float | None
    ssh_config: Path | None

    @staticmethod
    def of(plan: Plan) -> Testbed:
        """That of a plan which has one."""
        given = plan.options[TESTBED]
        config = given["ssh_config"]
        hosts = tuple(Host(**host) for host in given["hosts"])
        return Testbed(hosts, given["rtt_s"], Path(config) if config else None)

    @property
    def router(self) -> Host:
        """The host between the others."""
        return next(host for host in self.hosts if host.role == ROUTER)

    def role(self, role: str) -> list[Host]:
        """The hosts with a role."""
        return [host for host in self.hosts if host.role == role]

    @property
    def destinations(self) -> dict[str, str]:
        """How ssh reaches each, by name."""
        return {host.name: host.address for host in self.hosts}

    def ways(self, plan: Plan) -> Ways:
        """The sources of a plan take the senders in turn, and the receivers."""
        senders, receivers = self.role(SENDER), self.role(RECEIVER)

        def ends(number: int) -> Ends:
            source, sink = senders[number % len(senders)], receivers[number % len(receivers)]
            return Ends(End(source.name, str(source.data)), End(sink.name, str(sink.data)))

        traffic = [len(item.population.paths) for item in plan.traffic if isinstance(item.population, PathPairsPlan)]
        return Ways([ends(number) for number in range(len(plan.flows))], [[*map(ends, range(of))] for of in traffic])


@dataclass(frozen=True, slots=True)
class Ways:
    """The two hosts of each flow, and of each source of traffic."""

    flows: list[Ends]
    traffic: list[list[Ends]]


def beyond(plan: Plan) -> Iterator[str]:
    """What of a plan cannot be on a testbed."""
    if plan.datagrams:
        yield "UDP on a testbed"
    if len({stack.settings(group) for group in plan.groups}) > 1:
        yield "several settings of TCP on a testbed"
    testbed = Testbed.of(plan)
    for role, vantage in ((SENDER, SENDERS), (RECEIVER, RECEIVERS)):
        if vantage in plan.record.vantages and len(testbed.role(role)) > 1:
            yield f"a packet capture at several {vantage} of a testbed"
    several = max(len(testbed.role(SENDER)), len(testbed.role(RECEIVER))) > 1
    if several and any(item.workload["arrivals"]["kind"] in WAITING for item in plan.traffic):
        yield "traffic that waits for transfers, between more than two hosts of a testbed"
    if any(value for value in (group.tcp and not group.tcp.batches for group in plan.groups)):
        yield "senders that send no batches, on a testbed"


def order(plan: Plan, seed: int, testbed: Testbed, host: Host, first_port: int, captures: int) -> dict[str, Any]:
    """What the agent of a host is told, for `crates/ackclock-linux`: the same for all but for whose it is."""
    options, ways = plan.options["linux"], testbed.ways(plan)
    queues = [{"link": 0, "namespace": host.name, "device": host.to_receivers, "handle": disciplines.HANDLE}]
    return {
        "plan": plan.engine_input(),
        "seed": seed,
        "clock": REAL,
        "here": {"host": host.name, "first_port": first_port},
        "setup": [],
        "changes": [],
        "sockets": [stack.socket(group) for group in plan.groups],
        "flows": [asdict(ends) for ends in ways.flows],
        "datagrams": [],
        "traffic": [[asdict(ends) for ends in of] for of in ways.traffic],
        "queues": queues if host.role == ROUTER else [],
        "losses": [],
        "serve_s": options["serve_s"],
        "reader": options["reader"],
        "writer": options["writer"],
        "result": "",
        "captures": [f"{number}.pcap" for number in range(captures)],
    }


def router_commands(plan: Plan, testbed: Testbed) -> list[dict[str, Any]]:
    """What makes the rate and the queue towards the receivers, and the delay towards the senders; and undoes it."""
    router, link = testbed.router, plan.links[0]
    assert router.to_receivers is not None and router.to_senders is not None
    there, back = router.to_receivers, router.to_senders
    lines = [*shaper(link, there, mtu_bytes(plan), live=True), *disciplines.commands(link, there, _priorities(plan))]
    made = [_tc(line, there if number == 0 else None) for number, line in enumerate(lines)]
    if testbed.rtt_s:
        delay = f"qdisc add dev {back} root handle 1: netem limit {FLYING_P} delay {disciplines.time(testbed.rtt_s)}"
        made.append(_tc(delay, back))
    return made


def _tc(line: str, of: str | None) -> dict[str, Any]:
    """A command of tc's; what undoes all that stands at the root of the interface `of`."""
    undo = ["tc", "qdisc", "del", "dev", of, "root"] if of else None
    return {"run": ["tc", *line.split()], "undo": undo}


def sysctls(plan: Plan) -> dict[str, str]:
    """The settings of senders and receivers, by name."""
    settings = stack.settings(plan.groups[0])
    given: Mapping[str, Any] = plan.options["linux"]["sysctls"]
    return {f"net.ipv4.{name}": value for name, value in settings.sysctls} | {
        name: str(value) for name, value in given.items()
    }


def metrics(plan: Plan, mtu: int) -> dict[str, str]:
    """Of the routes of senders and receivers, what is not the kernel's default."""
    usual = {"initcwnd": "10", "rto_min": "200ms", "advmss": str(mtu - 40)}
    wanted = dict(stack.settings(plan.groups[0]).metrics)
    return {name: value for name, value in wanted.items() if usual.get(name) != value}


def peers(testbed: Testbed, host: Host) -> list[str]:
    """The data's addresses at the other side."""
    others = {SENDER: RECEIVER, RECEIVER: SENDER}.get(host.role)
    return [str(other.data) for other in testbed.role(others)] if others else []


def _priorities(plan: Plan) -> set[int]:
    return {flow.priority for flow in plan.flows} | {traffic.priority for traffic in plan.traffic}
