"""The transfers themselves: an order for each, carried out by the two agents, and what came of it."""

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
from ackclock.doctor.network import Network, addresses, endpoints, files
from ackclock.doctor.network.endpoints import THIS, Side
from ackclock.doctor.network.files import Store
from ackclock.doctor.network.test_matrix import LIMITS, LOCAL, REMOTE, TO, Asked, Cell
from ackclock.engines.engine import Progress
from ackclock.engines.linux import testbed
from ackclock.engines.linux.network import End, Ends
from ackclock.engines.linux.run_spec import REAL
from ackclock.engines.linux.testbed import merge_tables
from ackclock.engines.linux.testbed.layout import RECEIVER, SENDER, Host
from ackclock.engines.linux.testbed.merge_tables import Tables
from ackclock.errors import InputError
from ackclock.hosts.agent import Agent, HostError, agents
from ackclock.plan import EndsPlan, FlowPlan, NodePlan, PathPlan, Plan
from ackclock.scenario import planning

Tell = Callable[[float], object]

#: A receiver that opens the connection asks with so many bytes.
REQUEST_BYTES = 100

#: Samples of a transfer.
SAMPLES = 100

#: Flows begin at their own times, so many seconds for each: not all at once, and not when the others fill the path.
SPREAD_S = 0.0005

#: What a plan has that no agent looks at here: its network is not ours to set up.
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

    sides: tuple[Side, Side]
    agents: Mapping[str, Agent]

    def of(self, cell: Cell) -> tuple[Side, Side]:
        """Who sends, and who receives."""
        return self.sides if cell.direction == TO else (self.sides[1], self.sides[0])


def measure(asked: Asked, tell: Tell = lambda _: None) -> Network:
    """Has both hosts carry out all transfers, which takes `repeats` × cells × (`duration_s` + a second).

    Each host is left as it was. Raises `HostError`, and `InputError` for a host or addresses that cannot be used.
    """
    _frame()  # what takes long is done before agents wait for us
    with agents({asked.host: asked.host, THIS: None}, asked.ssh_config) as there:
        pair = _met(asked, there)
        stores = files.stores(asked, there)
        for side in pair.sides:
            endpoints.make_cold(there[side.name], side)
        order = _in_turns(asked)
        rows: list[dict[str, Any]] = []
        found: list[Dataset] = []
        for number, (repeat, cell) in enumerate(order):
            row, data = _transfer(asked, pair, stores, cell, number, partial(_tell, tell, number, len(order)))
            rows.append({"repeat": repeat, **asdict(cell), **row})
            found.append(data)
        left = [f'host "{name}": not undone: {line}' for name, agent in there.items() for line in agent.end()]
    if left:
        raise HostError("\n".join(left))
    return Network(asked, pair.sides, tuple(rows), Dataset.concat(found))


def _tell(tell: Tell, done: int, of: int, share: float) -> None:
    tell((done + share) / of)


def _met(asked: Asked, there: Mapping[str, Agent]) -> Pair:
    here, other = there[THIS], there[asked.host]
    own, others = addresses.addresses(asked.host, asked.ssh_config, here, other, asked.data)
    both = endpoints.look(THIS, here, own, others), endpoints.look(asked.host, other, others, own)
    return Pair(both, there)


def _in_turns(asked: Asked) -> list[tuple[int, Cell]]:
    draw, cells = random.Random(1), asked.cells()
    return [(repeat, cell) for repeat in range(asked.repeats) for cell in draw.sample(cells, len(cells))]


def _transfer(
    asked: Asked, pair: Pair, stores: Mapping[str, Store], cell: Cell, number: int, tell: Progress
) -> tuple[dict[str, Any], Dataset]:
    """One transfer of a cell: its figures, and its tables."""
    sender, receiver = pair.of(cell)
    port = asked.port or random.choice(testbed.PORTS)
    orders = {
        side.name: _order(asked, pair, cell, number, port, side)
        | {"here": files.here(side.name, port, cell, stores, sends=side is sender)}
        for side in pair.sides
    }
    before = {name: endpoints.worked(agent) for name, agent in pair.agents.items()}
    clocks, found = testbed.carried_out(pair.agents, orders, asked.duration_s, tell)
    busy = {name: endpoints.worked(agent).busy(before[name], asked.duration_s) for name, agent in pair.agents.items()}
    hosts = {
        side.name: Host(side.name, "", SENDER if side is sender else RECEIVER, side.address.own, None, None)
        for side in pair.sides
    }
    tables = merge_tables.merge(hosts, found, {name: clock.stretch for name, clock in clocks.items()})
    row = _figures(asked, tables) | {"busy": busy, **files.waits(asked, cell, found)}
    if not row["connected"]:
        raise InputError(_unreachable(asked, pair, port))
    return row, _dataset(tables, sender, receiver, number)


def _unreachable(asked: Asked, pair: Pair, port: int) -> str:
    client, server = pair.sides if asked.server == REMOTE else (pair.sides[1], pair.sides[0])
    other = LOCAL if asked.server == REMOTE else REMOTE
    return (
        f'host "{asked.host}": found no way from {client.name} to {server.address.seen} port {port}; expected one '
        f"(--addresses, --port, or --server {other})"
    )


def _order(asked: Asked, pair: Pair, cell: Cell, seed: int, port: int, side: Side) -> dict[str, Any]:
    """What one host's agent is told: its own address, and its peer's as this host sees it."""

    def end(of: Side) -> End:
        return End(of.name, of.address.own if of is side else of.address.seen)

    sender, receiver = pair.of(cell)
    ends = asdict(Ends(end(sender), end(receiver)))
    server = pair.sides[1] if asked.server == REMOTE else pair.sides[0]
    plan = _plan(asked, cell, REQUEST_BYTES if server is sender else None)
    return {
        "plan": plan.engine_input(),
        "seed": seed,
        "clock": REAL,
        "here": None,
        "setup": [],
        "changes": [],
        "sockets": [_sockets(side)],
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


def _plan(asked: Asked, cell: Cell, request_bytes: int | None) -> Plan:
    """Endless flows between two nodes, with nothing known of what is between them."""
    nothing = PathPlan((), 0.0)
    flow = FlowPlan(
        0, 0.0, SPREAD_S * cell.flows, None, None, request_bytes, None, 0, EndsPlan(0, 1), nothing, nothing, 0.0
    )  # fmt: skip
    return replace(
        _frame(),
        duration_s=asked.duration_s,
        warmup_s=asked.warmup_s,
        nodes=(NodePlan("sender", host=True), NodePlan("receiver", host=True)),
        links=(),
        flows=(flow,) * cell.flows,
        record=replace(_frame().record, interval_s=asked.duration_s / SAMPLES),
    )


def _sockets(side: Side) -> dict[str, Any]:
    """A host's own congestion control, and buffers as its kernel has them."""
    return {
        "congestion": _control(side),
        "mss_bytes": None,
        "send_buffer_bytes": None,
        "receive_buffer_bytes": None,
        "window_clamp_bytes": None,
    }


def _control(side: Side) -> str:
    return side.settings.sysctls.get("ipv4.tcp_congestion_control", "cubic")


def _figures(asked: Asked, tables: Tables) -> dict[str, Any]:
    """A transfer in numbers: after the warm-up, but for the limits and losses, which are of all of it."""
    flows, limits = tables["flows"], tables.get("limits", {})
    samples = tables.get("flow_samples", {})
    sent = int(flows["measured_sent_packets"].sum())
    again = int(flows["measured_retransmissions"].sum())
    return {
        "connected": int(np.isfinite(flows["established_s"]).sum()),
        "goodput_bps": 8 * float(flows["measured_bytes"].sum()) / (asked.duration_s - asked.warmup_s),
        "rtt_idle_s": _least(limits["least_rtt_s"]) if limits else None,
        **_loaded(samples, asked.warmup_s),
        "retransmitted": again / sent if sent else None,
        "lost": _lost(flows, samples),
        "timeouts": int(flows["timeouts"].sum()),
        **_limits(limits),
    }


def _least(values: np.ndarray[Any, Any]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.min()) if known.size else None


def _loaded(samples: Mapping[str, Any], warmup_s: float) -> dict[str, float | None]:
    """The senders' smoothed round trips while they all send: the mean, and what 19 of 20 samples do not exceed."""
    if not samples:
        return {"rtt_loaded_s": None, "rtt_loaded_p95_s": None}
    rtt_s = np.asarray(samples["srtt_s"])[np.asarray(samples["time_s"]) >= warmup_s]
    rtt_s = rtt_s[np.isfinite(rtt_s)]
    if not rtt_s.size:
        return {"rtt_loaded_s": None, "rtt_loaded_p95_s": None}
    return {"rtt_loaded_s": float(rtt_s.mean()), "rtt_loaded_p95_s": float(np.quantile(rtt_s, 0.95))}


def _lost(flows: Mapping[str, Any], samples: Mapping[str, Any]) -> float | None:
    """The share of the sent packets that did not arrive, without those that were under way at the end."""
    sent = int(flows["sent_packets"].sum())
    if not sent:
        return None
    under_way = 0.0
    if samples:
        at_end = np.asarray(samples["time_s"]) == np.max(samples["time_s"])
        under_way = float(np.asarray(samples["in_flight"])[at_end].sum())
    return max(0.0, sent - int(flows["received_packets"].sum()) - under_way) / sent


def _limits(limits: Mapping[str, Any]) -> dict[str, float | None]:
    """What held the senders back, as shares of the time in which they had something to send (TCP_INFO)."""
    busy_s = float(np.sum(limits["busy_s"])) if limits else 0.0
    if not busy_s:
        return dict.fromkeys(LIMITS)
    window = float(np.sum(limits["window_limited_s"])) / busy_s
    buffer = float(np.sum(limits["buffer_limited_s"])) / busy_s
    return dict(zip(LIMITS, (window, buffer, max(0.0, 1 - window - buffer)), strict=True))


def _dataset(tables: Tables, sender: Side, receiver: Side, number: int) -> Dataset:
    """Flows and samples as of any run."""
    spool = Spool(run=number)
    for table in ("flows", "flow_samples"):
        columns = {name: values for name, values in tables.get(table, {}).items() if name in TABLES[table]}
        spool.append(table, columns | (_described(len(columns["flow"]), sender, receiver) if table == "flows" else {}))
    return spool.dataset({"ackclock": _core.version, "runs": [{"run": number}]})


def _described(count: int, sender: Side, receiver: Side) -> dict[str, Sequence[Any]]:
    return {
        "source": [sender.name] * count,
        "destination": [receiver.name] * count,
        "congestion": [_control(sender)] * count,
    }
