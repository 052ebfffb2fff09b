"""TCP on the hosts of a testbed: what is a whole host's, and what each socket may have of its own.

A machine has one set of sysctls, and its routes one set of metrics. So groups whose TCP differs there need hosts of
their own; the congestion control, the receive window and the packets' size are options of the sockets (tcp(7)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackclock.engines.linux import stack
from ackclock.engines.linux.network import Ends
from ackclock.engines.linux.stack import HostSettings
from ackclock.engines.linux.testbed.layout import ROUTER, Host, Testbed
from ackclock.plan import GroupPlan, Plan

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
