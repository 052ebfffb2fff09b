"""A plan on the hosts of a testbed: the parts that none supports, and the run specification of each host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ackclock.engines import features
from ackclock.engines.linux import disciplines
from ackclock.engines.linux.process import REAL
from ackclock.engines.linux.script import LOST
from ackclock.engines.linux.testbed import settings
from ackclock.engines.linux.testbed.layout import RECEIVER, ROUTER, SENDER, Host, Testbed
from ackclock.plan import RECEIVERS, SENDERS, Plan, TrafficPlan

#: UDP sources that have ports of their own: 20000 to 31999.
MAX_DATAGRAMS = 12_000


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield what no hosts support, or not these."""
    testbed = Testbed.of(plan)
    yield from settings.differences(plan, testbed)
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
    losses = [{"link": 0, "namespace": host.name, "device": settings.LOSING, "handle": LOST}]
    routes = host.role == ROUTER
    return {
        "plan": plan.engine_input(),
        "seed": seed,
        "clock": REAL,
        "here": {"host": host.name, "first_port": first_port, "source": None, "sink": None},
        "setup": [],
        "changes": settings.router_changes(plan, testbed) if routes else [],
        "sockets": settings.sockets(plan),
        "flows": [asdict(ends) for ends in ways.flows],
        "datagrams": [asdict(ends) for ends in ways.datagrams],
        "traffic": [[asdict(ends) for ends in of] for of in ways.traffic],
        "queues": queues if routes else [],
        "losses": losses if routes and settings.loses(plan) else [],
        "app_interval_s": options["app_interval_s"],
        "reader": options["reader"],
        "writer": options["writer"],
        "result": "",
        "captures": [f"{number}.pcap" for number in range(captures)],
    }
