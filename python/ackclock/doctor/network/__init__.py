"""Measure TCP between this host and another, and explain what limits it.

An agent on each host (`ackclock.hosts`) sends from memory to memory, or between disks: `endpoints` has the addresses,
settings and disks of the hosts, `test_matrix` the cells to measure, `transfers` has the agents carry them out. The
findings explain the results in sentences: the path, a buffer, a processor, a setting.

The transfers take turns: each direction and number of flows once per repeat, in an order that is drawn anew for each
repeat, always in the same way, so that whatever else the path carries hits all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.dataset import Dataset
from ackclock.doctor.network.endpoints import THIS, Endpoint, disk_findings
from ackclock.doctor.network.test_matrix import FROM, MEMORY, TO, Cell, CellResult, TestPlan
from ackclock.doctor.settings import SWITCHES, Finding
from ackclock.figures import numbers

#: From such a share of the time on, a limit is worth a word; from such a one, it is what holds transfers back.
SOME, MOST = 0.1, 0.5

#: A queue is worth a word if it makes the round trip so much longer: in seconds, and beside the idle one.
LONGER_S, LONGER = 0.005, 2.0

#: From here on people notice it, in seconds.
BLOATED_S = 0.1

#: Shares of packets that were sent again.
AGAIN, OFTEN = 0.001, 0.01

#: Processors that work for such a share of the time have no more to give.
BUSY = 0.9

#: Several flows that get so much more than one: the path has room that one flow does not use.
MORE = 1.3

#: Offloads without which a processor handles each segment by itself: who needs them, and what they are called.
OFFLOADS = {
    "sender": ("tx-tcp-segmentation", "generic-segmentation-offload"),
    "receiver": ("generic-receive-offload", "large-receive-offload"),
}

PART = "network"


def findings(cells: Sequence[CellResult], endpoints: tuple[Endpoint, Endpoint]) -> Iterator[Finding]:
    """Yield all findings worth reporting."""
    for direction in dict.fromkeys(cell.cell.direction for cell in cells):
        these = [cell for cell in cells if cell.cell.direction == direction]
        sender, receiver = endpoints if direction == TO else (endpoints[1], endpoints[0])
        yield from _unconnected(these, receiver)
        yield from _buffers(these, sender, receiver)
        yield from _queue(these, sender, receiver)
        yield from _losses(these, sender, receiver)
        yield from _path(these, sender, receiver)
        yield from _single_flow(these, sender, receiver)
        yield from _offloads(these, sender, receiver)
    yield from _busy_hosts(cells)
    for endpoint in endpoints:
        yield from _switches(endpoint)


def _buffers(cells: Iterable[CellResult], sender: Endpoint, receiver: Endpoint) -> Iterator[Finding]:
    """Report a receive window or send buffer that is smaller than the path needs."""
    for limit, of, name, words in (
        ("receive_window", receiver, "tcp_rmem", "The receive window"),
        ("send_buffer", sender, "tcp_wmem", "The send buffer"),
    ):
        worst = max(cells, key=lambda cell: cell.mean(limit))
        share = worst.mean(limit)
        if share < SOME:
            continue
        max_bytes, rtt_s = of.max_bytes(name), worst.mean("rtt_loaded_s")
        each_bps = worst.mean("goodput_bps") / worst.cell.flows
        sentence = (
            f"{words} held {_flows(worst)} from {sender.name} to {receiver.name} back for {_percent(share)} of the time"
        )
        if max_bytes is not None:
            sentence += (
                f": net.ipv4.{name} of {of.name} lets a connection buffer {numbers.value(max_bytes, 'bytes')}, and "
                f"each got {numbers.value(each_bps, 'bit/s')} over a round trip of {numbers.value(rtt_s, 's')}"
            )
        evidence = {
            limit: share, "flows": worst.cell.flows, f"net.ipv4.{name}": max_bytes or 0, "each_bps": each_bps,
            "rtt_loaded_s": rtt_s,
        }  # fmt: skip
        yield Finding(PART, sentence + ".", evidence, _larger(of, name), bad=share >= MOST)


def _larger(of: Endpoint, name: str) -> str:
    words = of.settings.sysctls.get(f"ipv4.{name}", "").split()
    if of.settings.sysctls.get("ipv4.tcp_moderate_rcvbuf") == "0" and name == "tcp_rmem":
        return f"On {of.name}: sysctl -w net.ipv4.tcp_moderate_rcvbuf=1, so that the buffer grows with the path."
    if len(words) != 3:
        return ""
    return f'On {of.name}: sysctl -w net.ipv4.{name}="{words[0]} {words[1]} N", N twice the wanted rate × round trip.'


def _queue(cells: Iterable[CellResult], sender: Endpoint, receiver: Endpoint) -> Iterator[Finding]:
    """Report a standing queue on the path (bufferbloat)."""
    worst = max(cells, key=lambda cell: cell.mean("rtt_loaded_s") - cell.mean("rtt_idle_s"))
    idle_s, loaded_s = worst.mean("rtt_idle_s"), worst.mean("rtt_loaded_s")
    if loaded_s - idle_s < LONGER_S or loaded_s < LONGER * idle_s:
        return
    waiting_bytes = (loaded_s - idle_s) * worst.mean("goodput_bps") / 8
    yield Finding(
        PART,
        f"Under the load of {_flows(worst)} from {sender.name} to {receiver.name} the round trip grows from "
        f"{numbers.value(idle_s, 's')} to {numbers.value(loaded_s, 's')}: about "
        f"{numbers.value(waiting_bytes, 'bytes')} wait in a queue on the path, and all that shares it waits too.",
        {"rtt_idle_s": idle_s, "rtt_loaded_s": loaded_s, "queue_bytes": waiting_bytes},
        "Where the queue is (the slowest link, a shaper, a host's interface): fq_codel or CAKE, or a shorter one.",
        bad=loaded_s - idle_s >= BLOATED_S,
    )


def _losses(cells: Iterable[CellResult], sender: Endpoint, receiver: Endpoint) -> Iterator[Finding]:
    worst = max(cells, key=lambda cell: cell.mean("retransmitted"))
    share, lost = worst.mean("retransmitted"), worst.mean("lost")
    if share < AGAIN:
        return
    yield Finding(
        PART,
        f"With {_flows(worst)}, {sender.name} retransmitted {_percent(share)} of its packets to {receiver.name}; "
        f"{_percent(lost)} did not arrive.",
        {"retransmitted": share, "lost": lost, "flows": worst.cell.flows},
        "A capture shows why: ackclock doctor FILE." if share >= OFTEN else "",
        bad=share >= OFTEN,
    )


def _path(cells: Iterable[CellResult], sender: Endpoint, receiver: Endpoint) -> Iterator[Finding]:
    """Report the congestion window as the limit where nothing of the hosts was: the path's own limit."""
    best = max(cells, key=lambda cell: cell.mean("goodput_bps"))
    share = best.mean("congestion_window")
    if share < MOST or max(best.busy.values(), default=0.0) >= BUSY:
        return
    yield Finding(
        PART,
        f"From {sender.name} to {receiver.name} {_flows(best)} got {numbers.value(best.mean('goodput_bps'), 'bit/s')}; "
        f"the congestion window held {'it' if best.cell.flows == 1 else 'them'} back for {_percent(share)} of the "
        "time: the path, or who else is on it.",
        {"goodput_bps": best.mean("goodput_bps"), "congestion_window": share, "flows": best.cell.flows},
    )


def _single_flow(cells: Sequence[CellResult], sender: Endpoint, receiver: Endpoint) -> Iterator[Finding]:
    """Report that one flow gets less than the path offers."""
    one = next((cell for cell in cells if cell.cell.flows == 1), None)
    if one is None:
        return
    best = max(cells, key=lambda cell: cell.mean("goodput_bps"))
    single_bps, most_bps = one.mean("goodput_bps"), best.mean("goodput_bps")
    if best is one or most_bps < MORE * single_bps:
        return
    why = max(("receive_window", "send_buffer", "congestion_window"), key=one.mean)
    yield Finding(
        PART,
        f"From {sender.name} to {receiver.name} one flow gets {numbers.value(single_bps, 'bit/s')}, "
        f"{_flows(best)} get {numbers.value(most_bps, 'bit/s')}: what holds the one back is its "
        f"{why.replace('_', ' ')} ({_percent(one.mean(why))} of the time), not the link.",
        {"one_bps": single_bps, "flows": best.cell.flows, "all_bps": most_bps, why: one.mean(why)},
    )


def _offloads(cells: Iterable[CellResult], sender: Endpoint, receiver: Endpoint) -> Iterator[Finding]:
    for role, of in (("sender", sender), ("receiver", receiver)):
        if not of.hardware or "ethtool" in of.facts.missing or set(OFFLOADS[role]) & set(of.offloads):
            continue
        busy = max(cell.busy.get(of.name, 0.0) for cell in cells)
        names = " and ".join(OFFLOADS[role])
        yield Finding(
            PART,
            f"On {of.name}, {of.facts.data} has neither {names.replace(' and ', ' nor ')} on: as {role} its processor "
            f"handles each segment by itself; it was busy for {_percent(busy)} of the time.",
            {"busy": busy},
            f"On {of.name}: ethtool -K {of.facts.data} {OFFLOADS[role][-1 if role == 'sender' else 0]} on",
            bad=busy >= BUSY,
        )


def _busy_hosts(cells: Iterable[CellResult]) -> Iterator[Finding]:
    """Report a host whose processors are exhausted."""
    every = list(cells)
    for name in every[0].busy:
        worst = max(every, key=lambda cell: cell.busy[name])
        if worst.busy[name] >= BUSY:
            yield Finding(
                PART,
                f"The processors of {name} were busy for {_percent(worst.busy[name])} of the time with "
                f"{_flows(worst)}: what was measured may be the host's speed, not the network's.",
                {"busy": worst.busy[name], "flows": worst.cell.flows},
                "Move other work elsewhere, or take the figures as a lower bound for the network.",
                bad=True,
            )


def _switches(endpoint: Endpoint) -> Iterator[Finding]:
    for name, cost in SWITCHES.items():
        if endpoint.settings.sysctls.get(name) == "0":
            sentence = f"On {endpoint.name}, net.{name} is off: {cost}."
            yield Finding(PART, sentence, {f"net.{name}": 0}, f"On {endpoint.name}: sysctl -w net.{name}=1", bad=True)
    if not endpoint.facts.root and endpoint.settings.sysctls.get("ipv4.tcp_no_metrics_save") == "0":
        yield Finding(
            PART,
            f"Without root on {endpoint.name} its kernel kept its peer's metrics from one transfer to the next: the "
            "repeats are not independent.",
            {"net.ipv4.tcp_no_metrics_save": 0},
            f"Log in as root, or on {endpoint.name}: sysctl -w net.ipv4.tcp_no_metrics_save=1 while measuring.",
        )


def _unconnected(cells: Iterable[CellResult], receiver: Endpoint) -> Iterator[Finding]:
    for cell in cells:
        if cell.unconnected:
            yield Finding(
                PART,
                f"Of the transfers of {_flows(cell)} {'to' if receiver.name != THIS else FROM} the other host, "
                f"{cell.unconnected} had no connection by their end.",
                {"unconnected": cell.unconnected, "flows": cell.cell.flows},
                "A firewall that lets few connections begin at a time, or a path that loses them.",
                bad=True,
            )


def _flows(of: CellResult) -> str:
    return "one flow" if of.cell.flows == 1 else f"{of.cell.flows} flows"


def _percent(share: float) -> str:
    return numbers.value(share, "share")


__all__ = ["Asked", "Cell", "Network"]


@dataclass(frozen=True, slots=True)
class Network:
    """Measurements: the test plan, both hosts, one row for each transfer in the order of time, and the tables."""

    plan: TestPlan
    endpoints: tuple[Endpoint, Endpoint]
    rows: tuple[Mapping[str, Any], ...]
    data: Dataset

    def cells(self) -> list[CellResult]:
        """Return means over the repeats, in the order of the plan."""
        return [
            CellResult.of(
                cell, [row for row in self.rows if Cell(row["direction"], row["flows"], row["medium"]) == cell]
            )
            for cell in self.plan.cells()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            **self.plan.as_dict(),
            "hosts": {endpoint.name: endpoint.as_dict() for endpoint in self.endpoints},
            "cells": [cell.as_dict() for cell in self.cells()],
            "runs": list(self.rows),
        }

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs of a manifest."""
        return [{"run": number, **row} for number, row in enumerate(self.rows)]

    def findings(self) -> Iterator[Finding]:
        """Yield what explains the measurements."""
        cells = self.cells()
        yield from findings([cell for cell in cells if cell.cell.medium == MEMORY], self.endpoints)
        yield from disk_findings(cells, self.endpoints, self.plan.files)
