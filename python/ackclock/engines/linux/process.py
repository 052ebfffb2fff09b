"""The process inside namespaces: its run specification, and its result as a dataset, with doubts about it.

In real time the kernel may not have kept up. The rate is held if a link that always has packets sends as fast as it
should; the samples are in time if each is taken before the next is due. How late they were is measured inside, by the
kernel's clock.

Used by guest and live runs, by testbeds, and by `doctor host network`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, TABLES, Column
from ackclock.engines.engine import RunOptions, manifest
from ackclock.engines.linux import disciplines, stack
from ackclock.engines.linux.network import Network
from ackclock.engines.linux.script import LOST, changes, script
from ackclock.engines.linux.traces import capacity_bps, stepped
from ackclock.plan import DatagramPlan, FlowPlan, GroupPlan, Plan

#: The clock of a run.
VIRTUAL, REAL = "virtual", "real"


@dataclass(frozen=True)
class Order:
    """A run of a plan, ready to be carried out in a guest or on the kernel that is there."""

    plan: Plan
    seed: int
    network: Network
    setup: Sequence[str]
    clock: str

    @cached_property
    def stepped(self) -> Plan:
        """Return the plan with rate changes in place of traces."""
        return stepped(self.plan)

    @property
    def _traced(self) -> set[str]:
        return {link.name for link in self.plan.links if link.trace}

    def to_dict(self, result: Path, captures: Sequence[Path] = ()) -> dict[str, Any]:
        """JSON-ready values; the tables go to the file `result`, the packets captured at each vantage to `captures`."""
        options = self.plan.options["linux"]
        net = self.network
        return {
            "plan": self.stepped.engine_input(),
            "seed": self.seed,
            "clock": self.clock,
            "here": None,
            "setup": list(self.setup),
            "changes": changes(self.stepped, net, live=self.clock == REAL, silent=self._traced),
            "sockets": [stack.socket(group) for group in self.plan.groups],
            "flows": [asdict(ends) for ends in net.flows],
            "datagrams": [asdict(ends) for ends in net.datagrams],
            "traffic": [[asdict(ends) for ends in ways] for ways in net.traffic],
            "queues": [_device(link, cable, net, disciplines.HANDLE) for link, cable in _queues(net)],
            "losses": [_device(link, cable, net, LOST) for link, cable in _losses(net)],
            "app_interval_s": options["app_interval_s"],
            "reader": options["reader"],
            "writer": options["writer"],
            "result": str(result),
            "captures": [str(path) for path in captures],
        }


def order(plan: Plan, seed: int, network: Network, before: Sequence[str] = ()) -> Order:
    """Return the run spec of one run; the commands `before` come before the network's.

    The clock is the world's on the kernel that is there, and a guest's own in a guest.
    """
    options = plan.options["linux"]
    live = options["kernel"] == "live"
    setup = script(
        network,
        stepped(plan),
        offloads=options["offloads"],
        sysctls=options["sysctls"],
        live=live,
        ipv6=live and Path("/proc/sys/net/ipv6").exists(),
    )
    return Order(plan, seed, network, [*before, *setup], REAL if live else VIRTUAL)


def _queues(network: Network) -> list[tuple[int, int]]:
    return sorted((cable.link, number) for number, cable in enumerate(network.cables) if cable.link is not None)


def _losses(network: Network) -> list[tuple[int, int]]:
    """An entrance has the number of its link."""
    return [(int(cable.source[1:]), number) for number, cable in enumerate(network.cables) if cable.loss is not None]


def _device(link: int, cable: int, network: Network, handle: str) -> dict[str, Any]:
    return {
        "link": link,
        "namespace": network.cables[cable].source,
        "device": network.device(cable),
        "handle": handle,
    }


#: Below this share of its rate, a busy link was held up by the machine.
MIN_SHARE = 0.98

#: Samples of a busy link that are required to estimate its rate.
MIN_SAMPLES = 10

Tables: TypeAlias = Mapping[str, Mapping[str, Column]]


def dataset(
    plan: Plan,
    seed: int,
    found: Tables,
    around: RunOptions,
    about: Mapping[str, Any],
    of_run: Mapping[str, Any] | None = None,
) -> Dataset:
    """One run's dataset.

    Into the manifest go `about`, what kernel it was and how the network was made, and `of_run`, what is this run's own.
    """
    spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
    for table, columns in found.items():
        if table in TABLES and any(map(len, columns.values())):
            known = {name: column for name, column in columns.items() if name in TABLES[table]}
            spool.append(table, known | _described(table, columns, plan))
    made = manifest(plan, "linux", seed, around.command)
    (run,) = made["runs"]
    return spool.dataset(made | {"runs": [run | dict(of_run or {})], "linux": dict(about)})


def _described(table: str, columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    """Add the names of flows and links, which the process inside does not report."""
    if table == "flows":
        return _flows(columns, plan)
    return _links(columns, plan) if table == "links" else {}


def _flows(columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    """The plan's flows and UDP sources come first, then the generated transfers."""
    given: list[FlowPlan | DatagramPlan] = [*plan.flows, *plan.datagrams]
    count = len(columns["flow"])
    protocols = np.array([_protocol(group) for group in plan.groups], dtype=object)
    base_rtt_s = np.array(columns.get("base_rtt_s", np.full(count, np.nan)), dtype=np.float64)
    flow = np.asarray(columns["flow"], dtype=np.int64)
    planned = flow < len(given)
    base_rtt_s[planned] = np.array([item.base_rtt_s for item in given])[flow[planned]]
    return {
        "source": _ends(columns, "source", "sender", plan, len(given)),
        "destination": _ends(columns, "destination", "receiver", plan, len(given)),
        "congestion": protocols[np.asarray(columns["group"])].tolist(),
        "base_rtt_s": base_rtt_s,
    }


def _ends(columns: Mapping[str, Column], end: str, otherwise: str, plan: Plan, given: int) -> list[str | None]:
    """Names of nodes; the ends of a path that the plan gives are numbered, a generated transfer's have no name."""
    names = np.array([*(node.name for node in plan.nodes), None], dtype=object)
    nodes = np.asarray(columns.get(f"{end}_node", np.full(len(columns["flow"]), len(plan.nodes))))
    found: list[str | None] = names[np.minimum(nodes, len(plan.nodes))].tolist()
    for row, number in enumerate(np.asarray(columns["flow"]).tolist()):
        if number < given:
            found[row] = found[row] or f"{otherwise}-{number}"
    return found


def _links(columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    links = [plan.links[number] for number in np.asarray(columns["link"])]
    return {
        "name": [link.name for link in links],
        "bottleneck": np.array([link.bottleneck for link in links], dtype=np.bool_),
        "rate_bps": np.array([capacity_bps(plan, link) for link in links], dtype=np.float64),
    }


def _protocol(group: GroupPlan) -> str:
    return group.congestion.kind if group.congestion else "udp"


def timing_quality(plan: Plan, found: Tables) -> dict[str, Any]:
    """Return the links' rates that were held, as shares of the rates asked for, and how late samples were, in seconds.

    A share is the mean utilisation over the samples that found packets waiting, and so did the sample before; None
    where there are too few of them. A sample whose time had passed before the one before was taken is left out.
    """
    samples, kernel = found.get("queue_samples", {}), found["kernel"]
    return {
        "shares": {link.name: _share(samples, number) for number, link in enumerate(plan.links)},
        "late_mean_s": float(kernel["late_mean_s"][0]),
        "late_max_s": float(kernel["late_max_s"][0]),
        "skipped_samples": int(kernel["skipped_samples"][0]),
    }


def doubts(plan: Plan, held: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings about a run: a line each."""
    for name, share in held["shares"].items():
        if share is not None and share < MIN_SHARE:
            yield f'this machine could not keep up: the link "{name}" held {100 * share:.1f} % of its rate while busy'
    late_s, interval_s = held["late_max_s"], plan.record.interval_s
    if late_s > interval_s:
        yield f"this machine could not keep up: a sample came {1000 * late_s:.3g} ms late, of {1000 * interval_s:g} ms"


def squeezed(memory_pressures: int) -> Iterator[str]:
    """Yield a warning if TCP as a whole exceeded the kernel's memory limit."""
    if memory_pressures:
        yield (
            f"TCP ran out of memory (net.ipv4.tcp_mem) {memory_pressures} times: "
            "the kernel then closes receivers' windows, so that it is no longer only the network that decides; "
            "`[linux] memory` gives a guest more"
        )


def uncaptured(lost_p: int) -> Iterator[str]:
    """Yield a warning if a packet capture dropped packets."""
    if lost_p:
        yield f"the packet capture lacks {lost_p} packets: too many came within 10 ms"


def _share(samples: Mapping[str, Column], link: int) -> float | None:
    if not samples:
        return None
    rows = np.asarray(samples["link"]) == link
    waiting = np.asarray(samples["backlog_p"], dtype=np.float64)[rows] > 0
    busy = waiting[1:] & waiting[:-1]
    if busy.sum() < MIN_SAMPLES:
        return None
    return float(np.asarray(samples["utilisation"], dtype=np.float64)[rows][1:][busy].mean())
