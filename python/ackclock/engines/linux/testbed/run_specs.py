"""Run specifications for the agent of each host, which `crates/ackclock-linux` reads. They differ in the host alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ackclock.engines.linux import disciplines
from ackclock.engines.linux.run_spec import REAL
from ackclock.engines.linux.script import LOST
from ackclock.engines.linux.testbed import router, tcp
from ackclock.engines.linux.testbed.layout import ROUTER, Host, Testbed
from ackclock.plan import Plan


def order(plan: Plan, seed: int, testbed: Testbed, host: Host, first_port: int, captures: int) -> dict[str, Any]:
    """Return the run spec of one host; its captures are files of that number."""
    options, ways = plan.options["linux"], testbed.ways(plan)
    queues = [{"link": 0, "namespace": host.name, "device": host.to_receivers, "handle": disciplines.HANDLE}]
    losses = [{"link": 0, "namespace": host.name, "device": router.LOSING, "handle": LOST}]
    routes = host.role == ROUTER
    return {
        "plan": plan.engine_input(),
        "seed": seed,
        "clock": REAL,
        "here": {"host": host.name, "first_port": first_port, "source": None, "sink": None},
        "setup": [],
        "changes": router.changes(plan, testbed) if routes else [],
        "sockets": tcp.sockets(plan),
        "flows": [asdict(ends) for ends in ways.flows],
        "datagrams": [asdict(ends) for ends in ways.datagrams],
        "traffic": [[asdict(ends) for ends in of] for of in ways.traffic],
        "queues": queues if routes else [],
        "losses": losses if routes and router.loses(plan) else [],
        "app_interval_s": options["app_interval_s"],
        "reader": options["reader"],
        "writer": options["writer"],
        "result": "",
        "captures": [f"{number}.pcap" for number in range(captures)],
    }
