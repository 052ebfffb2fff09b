"""Network transfers: a run spec for each, carried out by the two agents, and its result."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import TABLES
from ackclock.doctor.network import Network, endpoints
from ackclock.doctor.network.endpoints import THIS, Endpoint, Store
from ackclock.doctor.network.test_matrix import LIMITS, LOCAL, REMOTE, TO, Cell, TestPlan
from ackclock.engines.engine import Progress
from ackclock.engines.linux import testbed
from ackclock.engines.linux.network import End, Ends
from ackclock.engines.linux.process import REAL
from ackclock.engines.linux.testbed import merge_tables
from ackclock.engines.linux.testbed.layout import RECEIVER, SENDER, Host, Tables
from ackclock.errors import InputError
from ackclock.hosts.agent import Agent, HostError, agents
from ackclock.plan import EndsPlan, FlowPlan, NodePlan, PathPlan, Plan
from ackclock.scenario import planning

ReportProgress = Callable[[float], object]

#: A receiver that opens the connection asks with so many bytes.
REQUEST_BYTES = 100

#: Samples of a transfer.
SAMPLES = 100

#: Flows begin at their own times, so many seconds for each: not all at once, and not when the others fill the path.
SPREAD_S = 0.0005

#: Scenario for the parts of the plan that agents ignore here: the network exists already.
FRAME = """\
name = "between two hosts"
duration = "1s"
[network]
topology = "dumbbell"
rate = "1Mbit"
rtt = "1ms"
queue = { discipline = "pfifo", limit = "1p" }
[[flows]]
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Both hosts, this one first, with their agents."""

    endpoints: tuple[Endpoint, Endpoint]
    agents: Mapping[str, Agent]

    def of(self, cell: Cell) -> tuple[Endpoint, Endpoint]:
        """Return the sender and the receiver."""
        return self.endpoints if cell.direction == TO else (self.endpoints[1], self.endpoints[0])


def measure(test: TestPlan, report_progress: ReportProgress = lambda _: None) -> Network:
    """Run all transfers, which takes `repeats` × cells × (`duration_s` + a second).

    Each host is left as it was. Raises `HostError`, and `InputError` for a host or addresses that cannot be used.
    """
    _frame()  # what takes long is done before agents wait for us
    with agents({test.host: test.host, THIS: None}, test.ssh_config) as remote_agents:
        pair = _inspect_hosts(test, remote_agents)
        stores = endpoints.stores(test, remote_agents)
        for endpoint in pair.endpoints:
            endpoints.make_cold(remote_agents[endpoint.name], endpoint)
        order = _schedule(test)
        rows: list[dict[str, Any]] = []
        results: list[Dataset] = []
        for number, (repeat, cell) in enumerate(order):
            row, data = _transfer(
                test, pair, stores, cell, number, partial(_report_share, report_progress, number, len(order))
            )
            rows.append({"repeat": repeat, **asdict(cell), **row})
            results.append(data)
        left = [f'host "{name}": not undone: {line}' for name, agent in remote_agents.items() for line in agent.end()]
    if left:
        raise HostError("\n".join(left))
    return Network(test, pair.endpoints, tuple(rows), Dataset.concat(results))


def _report_share(report_progress: ReportProgress, done: int, of: int, share: float) -> None:
    report_progress((done + share) / of)


def _inspect_hosts(test: TestPlan, remote_agents: Mapping[str, Agent]) -> Pair:
    here, other = remote_agents[THIS], remote_agents[test.host]
    own, others = endpoints.addresses(test.host, test.ssh_config, here, other, test.data)
    both = endpoints.inspect(THIS, here, own, others), endpoints.inspect(test.host, other, others, own)
    return Pair(both, remote_agents)


def _schedule(test: TestPlan) -> list[tuple[int, Cell]]:
    draw, cells = random.Random(1), test.cells()
    return [(repeat, cell) for repeat in range(test.repeats) for cell in draw.sample(cells, len(cells))]


def _transfer(
    test: TestPlan, pair: Pair, stores: Mapping[str, Store], cell: Cell, number: int, report_progress: Progress
) -> tuple[dict[str, Any], Dataset]:
    """Run one transfer of a cell; return its figures and its tables."""
    sender, receiver = pair.of(cell)
    port = test.port or random.choice(testbed.PORTS)
    orders = {
        endpoint.name: _order(test, pair, cell, number, port, endpoint)
        | {"here": endpoints.here(endpoint.name, port, cell, stores, sends=endpoint is sender)}
        for endpoint in pair.endpoints
    }
    before = {name: endpoints.read_cpu_time(agent) for name, agent in pair.agents.items()}
    clocks, results = testbed.carried_out(pair.agents, orders, test.duration_s, report_progress)
    busy = {
        name: endpoints.read_cpu_time(agent).busy(before[name], test.duration_s) for name, agent in pair.agents.items()
    }
    hosts = {
        endpoint.name: Host(
            endpoint.name, "", SENDER if endpoint is sender else RECEIVER, endpoint.address.own, None, None
        )
        for endpoint in pair.endpoints
    }
    tables = merge_tables(hosts, results, {name: clock.stretch for name, clock in clocks.items()})
    row = _figures(test, tables) | {"busy": busy, **endpoints.waits(test, cell, results)}
    if not row["connected"]:
        raise InputError(_unreachable(test, pair, port))
    return row, _dataset(tables, sender, receiver, number)


def _unreachable(test: TestPlan, pair: Pair, port: int) -> str:
    client, server = pair.endpoints if test.server == REMOTE else (pair.endpoints[1], pair.endpoints[0])
    other = LOCAL if test.server == REMOTE else REMOTE
    return (
        f'host "{test.host}": found no way from {client.name} to {server.address.public} port {port}; expected one '
        f"(--addresses, --port, or --server {other})"
    )


def _order(test: TestPlan, pair: Pair, cell: Cell, seed: int, port: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return the run spec for one host's agent: its own address, and its peer's as this host sees it."""

    def end(of: Endpoint) -> End:
        return End(of.name, of.address.own if of is endpoint else of.address.public)

    sender, receiver = pair.of(cell)
    ends = asdict(Ends(end(sender), end(receiver)))
    server = pair.endpoints[1] if test.server == REMOTE else pair.endpoints[0]
    plan = _plan(test, cell, REQUEST_BYTES if server is sender else None)
    return {
        "plan": plan.engine_input(),
        "seed": seed,
        "clock": REAL,
        "here": None,
        "setup": [],
        "changes": [],
        "sockets": [_sockets(endpoint)],
        "flows": [ends] * cell.flows,
        "datagrams": [],
        "traffic": [],
        "queues": [],
        "losses": [],
        "app_interval_s": 0.01,
        "reader": "immediate",
        "writer": "immediate",
        "result": "",
        "captures": [],
    }


@cache
def _frame() -> Plan:
    return planning.loads(FRAME).plan()


def _plan(test: TestPlan, cell: Cell, request_bytes: int | None) -> Plan:
    """Return a plan of endless flows between two nodes with an unknown network between them."""
    nothing = PathPlan((), 0.0)
    flow = FlowPlan(
        0, 0.0, SPREAD_S * cell.flows, None, None, request_bytes, None, 0, EndsPlan(0, 1), nothing, nothing, 0.0
    )  # fmt: skip
    return replace(
        _frame(),
        duration_s=test.duration_s,
        warmup_s=test.warmup_s,
        nodes=(NodePlan("sender", host=True), NodePlan("receiver", host=True)),
        links=(),
        flows=(flow,) * cell.flows,
        record=replace(_frame().record, interval_s=test.duration_s / SAMPLES),
    )


def _sockets(endpoint: Endpoint) -> dict[str, Any]:
    """Return socket options: the host's own CCA, and buffers as its kernel has them."""
    return {
        "congestion": _control(endpoint),
        "mss_bytes": None,
        "send_buffer_bytes": None,
        "receive_buffer_bytes": None,
        "window_clamp_bytes": None,
    }


def _control(endpoint: Endpoint) -> str:
    return endpoint.settings.sysctls.get("ipv4.tcp_congestion_control", "cubic")


def _figures(test: TestPlan, tables: Tables) -> dict[str, Any]:
    """Return a transfer's results after the warm-up; limits and losses are of all of it."""
    flows, limits = tables["flows"], tables.get("limits", {})
    samples = tables.get("flow_samples", {})
    sent = int(flows["measured_sent_packets"].sum())
    retransmitted = int(flows["measured_retransmissions"].sum())
    return {
        "connected": int(np.isfinite(flows["established_s"]).sum()),
        "goodput_bps": 8 * float(flows["measured_bytes"].sum()) / (test.duration_s - test.warmup_s),
        "rtt_idle_s": _finite_min(limits["least_rtt_s"]) if limits else None,
        **_loaded(samples, test.warmup_s),
        "retransmitted": retransmitted / sent if sent else None,
        "lost": _lost(flows, samples),
        "timeouts": int(flows["timeouts"].sum()),
        **_limits(limits),
    }


def _finite_min(values: np.ndarray[Any, Any]) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if finite.size else None


def _loaded(samples: Mapping[str, Any], warmup_s: float) -> dict[str, float | None]:
    """Return mean and 95th percentile of the senders' smoothed RTTs while all send."""
    if not samples:
        return {"rtt_loaded_s": None, "rtt_loaded_p95_s": None}
    rtt_s = np.asarray(samples["srtt_s"])[np.asarray(samples["time_s"]) >= warmup_s]
    rtt_s = rtt_s[np.isfinite(rtt_s)]
    if not rtt_s.size:
        return {"rtt_loaded_s": None, "rtt_loaded_p95_s": None}
    return {"rtt_loaded_s": float(rtt_s.mean()), "rtt_loaded_p95_s": float(np.quantile(rtt_s, 0.95))}


def _lost(flows: Mapping[str, Any], samples: Mapping[str, Any]) -> float | None:
    """Return the share of sent packets that did not arrive, without those in flight at the end."""
    sent = int(flows["sent_packets"].sum())
    if not sent:
        return None
    under_way = 0.0
    if samples:
        at_end = np.asarray(samples["time_s"]) == np.max(samples["time_s"])
        under_way = float(np.asarray(samples["in_flight"])[at_end].sum())
    return max(0.0, sent - int(flows["received_packets"].sum()) - under_way) / sent


def _limits(limits: Mapping[str, Any]) -> dict[str, float | None]:
    """Return what limited the senders, as shares of the time in which they had data to send (TCP_INFO)."""
    busy_s = float(np.sum(limits["busy_s"])) if limits else 0.0
    if not busy_s:
        return dict.fromkeys(LIMITS)
    window = float(np.sum(limits["window_limited_s"])) / busy_s
    buffer = float(np.sum(limits["buffer_limited_s"])) / busy_s
    return dict(zip(LIMITS, (window, buffer, max(0.0, 1 - window - buffer)), strict=True))


def _dataset(tables: Tables, sender: Endpoint, receiver: Endpoint, number: int) -> Dataset:
    spool = Spool(run=number)
    for table in ("flows", "flow_samples"):
        columns = {name: values for name, values in tables.get(table, {}).items() if name in TABLES[table]}
        spool.append(table, columns | (_flow_names(len(columns["flow"]), sender, receiver) if table == "flows" else {}))
    return spool.dataset({"ackclock": _core.version, "runs": [{"run": number}]})


def _flow_names(count: int, sender: Endpoint, receiver: Endpoint) -> dict[str, Sequence[Any]]:
    return {
        "source": [sender.name] * count,
        "destination": [receiver.name] * count,
        "congestion": [_control(sender)] * count,
    }
