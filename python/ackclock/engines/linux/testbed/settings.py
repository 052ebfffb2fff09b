"""A plan on the hosts of a testbed: what none supports, the settings of each, and the run spec of each.

Settings are TCP's on the hosts, and the router's rate, queue, delay and losses.

A host has one set of sysctls, and its routes one set of metrics. So groups whose TCP differs there need hosts of their
own; the congestion control, the receive window and the packets' size are options of the sockets (tcp(7)).

The router's rate and queue are on the interface towards the receivers, the delay on that towards the senders. What is
lost at random is lost before the queue: data that arrives from the senders is led through a device of its own (ifb),
whose queue discipline loses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ackclock.engines import features
from ackclock.engines.linux import disciplines, stack
from ackclock.engines.linux.network import Ends, loss_of, mtu_bytes
from ackclock.engines.linux.process import REAL
from ackclock.engines.linux.script import FLYING_P, LOST, State, bands, htb_class, losing, shaper
from ackclock.engines.linux.stack import HostSettings
from ackclock.engines.linux.testbed.layout import RECEIVER, ROUTER, SENDER, Host, Testbed
from ackclock.plan import RECEIVERS, SENDERS, ChangePlan, GroupPlan, Plan, TrafficPlan

#: UDP sources that have ports of their own: 20000 to 31999.
MAX_DATAGRAMS = 12_000


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield what no hosts support, or not these."""
    testbed = Testbed.of(plan)
    yield from differences(plan, testbed)
    yield from _multi_host_limits(plan, testbed)
    yield from _changes(plan, testbed)
    if len(plan.datagrams) > MAX_DATAGRAMS:
        yield f"more than {MAX_DATAGRAMS:,} UDP sources on a testbed"
    if any(group.tcp and not group.tcp.tso_batching for group in plan.groups):
        yield "senders that send no batches, on a testbed"
    if any(map(features.takes_other_time, plan.groups)):
        yield f"{features.PROCESSING}, on a testbed"


def _multi_host_limits(plan: Plan, testbed: Testbed) -> Iterator[str]:
    """Yield what is limited to two hosts."""
    several = {SENDERS: len(testbed.role(SENDER)) > 1, RECEIVERS: len(testbed.role(RECEIVER)) > 1}
    captured = [vantage for vantage, found in several.items() if found and vantage in plan.record.vantages]
    yield from (f"a packet capture at several {vantage} of a testbed" for vantage in captured)
    if any(map(_waits, plan.traffic)) and several[_clients(plan)]:
        yield f"incast whose rounds wait for several {_clients(plan)} of a testbed"


def _waits(traffic: TrafficPlan) -> bool:
    """Return True if a transfer waits for those of other sources, not just for those of its own loop."""
    arrivals = traffic.workload["arrivals"]
    return bool(arrivals["kind"] == "incast" and arrivals["every_s"] is None)


def _clients(plan: Plan) -> str:
    """Return the side that begins the transfers of a waiting workload and sees their end."""
    asked = all(traffic.request_bytes is not None for traffic in plan.traffic if _waits(traffic))
    return RECEIVERS if asked else SENDERS


def _changes(plan: Plan, testbed: Testbed) -> Iterator[str]:
    if plan.changes and testbed.existing_path:
        yield "changes of a path that is left as it is"
    if any(change.up is not None for change in plan.changes):
        yield "links that fail, on a testbed"
    if any(change.medium is not None for change in plan.changes):
        yield "jitter, reordering, duplication or corruption on a testbed"


def run_spec(plan: Plan, seed: int, testbed: Testbed, host: Host, first_port: int, captures: int) -> dict[str, Any]:
    """Return the run spec of one host, which its agent (`crates/ackclock-linux`) reads; `captures` counts its files.

    The specs of a run differ in the host alone.
    """
    options, ways = plan.options["linux"], testbed.ways(plan)
    queues = [{"link": 0, "namespace": host.name, "device": host.to_receivers, "handle": disciplines.HANDLE}]
    losses = [{"link": 0, "namespace": host.name, "device": LOSING, "handle": LOST}]
    routes = host.role == ROUTER
    return {
        "plan": plan.engine_input(),
        "seed": seed,
        "clock": REAL,
        "here": {"host": host.name, "first_port": first_port, "source": None, "sink": None},
        "setup": [],
        "changes": router_changes(plan, testbed) if routes else [],
        "sockets": sockets(plan),
        "flows": [asdict(ends) for ends in ways.flows],
        "datagrams": [asdict(ends) for ends in ways.datagrams],
        "traffic": [[asdict(ends) for ends in of] for of in ways.traffic],
        "queues": queues if routes else [],
        "losses": losses if routes and loses(plan) else [],
        "app_interval_s": options["app_interval_s"],
        "reader": options["reader"],
        "writer": options["writer"],
        "result": "",
        "captures": [f"{number}.pcap" for number in range(captures)],
    }


#: A route's metric that is an option of sockets as well (TCP_MAXSEG).
MSS = "advmss"

#: The metrics that a kernel has by itself, at an MTU; the segments' size depends on that.
DEFAULTS = {"initcwnd": "10", "rto_min": "200ms"}


def sysctls(plan: Plan, testbed: Testbed, host: Host) -> dict[str, str]:
    """The settings of a sender or receiver, by name."""
    settings = dict(next((of.sysctls for of in _settings(plan, testbed, host)), ()))
    given: Mapping[str, Any] = plan.options["linux"]["sysctls"]
    return {f"net.ipv4.{name}": value for name, value in settings.items()} | {
        name: str(value) for name, value in given.items()
    }


def metrics(plan: Plan, testbed: Testbed, host: Host, mtu: int) -> dict[str, str]:
    """Return the metrics of a host's routes that are neither the kernel's default nor a socket's own."""
    wanted = dict(next((of.metrics for of in _settings(plan, testbed, host)), ()))
    usual = {**DEFAULTS, MSS: wanted.get(MSS) if _sizes(plan) > 1 else str(mtu - 40)}
    return {name: value for name, value in wanted.items() if usual.get(name) != value}


def sockets(plan: Plan) -> list[dict[str, Any] | None]:
    """The options of each group's sockets, for a run spec; with packets of several sizes, the segments' size."""
    every = [stack.socket(group) for group in plan.groups]
    if _sizes(plan) < 2:
        return every
    return [made and made | {"mss_bytes": _mss(group)} for made, group in zip(every, plan.groups, strict=True)]


def differences(plan: Plan, testbed: Testbed) -> Iterator[str]:
    """Yield settings that groups require of one host, that differ, and that sockets cannot have one by one."""
    found: dict[str, list[str]] = {}
    for host in testbed.hosts:
        if names := _clashing([_named(settings) for settings in _settings(plan, testbed, host)]):
            found.setdefault(", ".join(names), []).append(f'"{host.name}"')
    for wanted, hosts in found.items():
        yield f"room for several values of {wanted} on one host of a testbed ({', '.join(hosts)})"


def _clashing(several: Sequence[Mapping[str, str]]) -> list[str]:
    return [name for name in several[0] if len({of.get(name) for of in several}) > 1] if several else []


def _settings(plan: Plan, testbed: Testbed, host: Host) -> list[HostSettings]:
    """Return the settings of the groups that have an end on a host; of any group if none has."""
    ways = testbed.ways(plan)
    pairs = [(flow.group, ends) for flow, ends in zip(plan.flows, ways.flows, strict=True)]
    pairs += [(item.group, ends) for item, of in zip(plan.traffic, ways.traffic, strict=True) for ends in of]
    here = {number for number, ends in pairs if _has(ends, host)} or set(range(len(plan.groups)))
    chosen = [plan.groups[number] for number in sorted(here) if host.role != ROUTER]
    return list(dict.fromkeys(stack.settings(group) for group in chosen if group.tcp))


def _has(ends: Ends, host: Host) -> bool:
    return host.name in (ends.source.namespace, ends.destination.namespace)


def _named(settings: HostSettings) -> dict[str, str]:
    return dict(settings.sysctls) | {name: value for name, value in settings.metrics if name != MSS}


def _mss(group: GroupPlan) -> int | None:
    metrics = dict(stack.settings(group).metrics)
    return int(metrics[MSS]) if MSS in metrics else None


def _sizes(plan: Plan) -> int:
    return len({_mss(group) for group in plan.groups if group.tcp})


#: The device through which data goes that may be lost.
LOSING = "ackclock-loss"


def router_commands(plan: Plan, testbed: Testbed) -> list[dict[str, Any]]:
    """Return the commands for rate and queue towards the receivers and delay towards the senders, with their undo."""
    there, back = _interfaces(testbed)
    link = plan.links[0]
    lines = [*shaper(link, there, mtu_bytes(plan), live=True), *disciplines.commands(link, there, _priorities(plan))]
    made = [_tc(line, there if number == 0 else None) for number, line in enumerate(lines)]
    if delays(plan, testbed):
        made.append(_tc(f"qdisc add dev {back} {_netem(testbed, 0.0)}", back))
    return made + (_losing(plan, testbed, back) if loses(plan) else [])


def _losing(plan: Plan, testbed: Testbed, entrance: str) -> list[dict[str, Any]]:
    """Return the commands that drop incoming data: the packets of each receiver go through a lossy device."""
    to = [f"match ip dst {host.data}/32" for host in testbed.role(RECEIVER)]
    here = f"filter add dev {entrance} parent ffff: protocol ip"
    redirected = f"action mirred egress redirect dev {LOSING}"
    return [
        {"run": f"ip link add {LOSING} type ifb".split(), "undo": f"ip link del {LOSING}".split()},
        {"run": f"ip link set {LOSING} up".split(), "undo": None},
        *(_tc(line, None) for line in losing(loss_of(plan.links[0].loss), LOSING)),
        {"run": f"tc qdisc add dev {entrance} ingress".split(), "undo": f"tc qdisc del dev {entrance} ingress".split()},
        *(_tc(f"{here} u32 {match} {redirected}", None) for match in to),
    ]


def router_changes(plan: Plan, testbed: Testbed) -> list[dict[str, Any]]:
    """Return the changes for the run spec: when, which link, its rate from then on, and the commands."""
    state, made = State(plan.links[0]), []
    for change in plan.changes:
        state = state.after(change)
        lines = [f"tc {words}" for words in _changed(plan, testbed, change, state)]
        rate_bps = state.link.rate_bps
        made.append({"at_s": change.at_s, "link": 0, "rate_bps": rate_bps, "told": True, "commands": lines})
    return made


def _changed(plan: Plan, testbed: Testbed, change: ChangePlan, state: State) -> Iterator[str]:
    there, back = _interfaces(testbed)
    if change.rate_bps is not None:
        yield f"class change dev {there} {htb_class(state.link, mtu_bytes(plan), live=True)}"
    if change.delay_s is not None:
        yield f"qdisc change dev {back} {_netem(testbed, state.link.delay_s)}"
    if change.loss is not None:
        yield from (f"qdisc change dev {LOSING} {words}" for words in bands(loss_of(state.link.loss)))


def _interfaces(testbed: Testbed) -> tuple[str, str]:
    router = testbed.router
    return str(router.to_receivers), str(router.to_senders)


def delays(plan: Plan, testbed: Testbed) -> bool:
    """Return True if the router delays packets, now or later."""
    return bool(testbed.rtt_s) or any(change.delay_s is not None for change in plan.changes)


def loses(plan: Plan) -> bool:
    """Return True if the router drops packets at random, now or later."""
    return bool(plan.links[0].loss) or any(change.loss is not None for change in plan.changes)


def _netem(testbed: Testbed, more_s: float) -> str:
    """All delay is on one interface: that of the link, too."""
    delay_s = (testbed.rtt_s or 0.0) + more_s
    return f"root handle 1: netem limit {FLYING_P} delay {disciplines.time(delay_s)}"


def _tc(line: str, of: str | None) -> dict[str, Any]:
    """A command of tc's; what undoes all that stands at the root of the interface `of`."""
    undo = ["tc", "qdisc", "del", "dev", of, "root"] if of else None
    return {"run": ["tc", *line.split()], "undo": undo}


def _priorities(plan: Plan) -> set[int]:
    return {flow.priority for flow in plan.flows} | {traffic.priority for traffic in plan.traffic}
