"""The run spec: what the process inside has to run, as JSON. `crates/ackclock-linux/src/run_spec.rs` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ackclock.engines.linux import disciplines, stack
from ackclock.engines.linux.network import Network
from ackclock.engines.linux.script import LOST, changes, script
from ackclock.engines.linux.traces import stepped
from ackclock.plan import Plan

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
