"""The packet engine: what its loop, its samples and its tables cost.

The unit costs are near a fit over the plans of `benchmarks/estimates.py`, which prints it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.loads import Load, loads
from ackclock.experiments.cost.tables import Rows, kept_bytes, written_bytes
from ackclock.plan import Plan

#: CPU time of each, in microseconds, with what is written and measured of it. Those of the fit, rounded; `logged` is
#: chosen by hand, since too few of its plans write a log of packets.
UNITS_US = {
    "packet": 0.085,
    "hop": 0.055,
    "sample": 0.55,
    "transfer": 7.5,
    "link": 130.0,
    "event": 0.55,
    "captured": 0.75,
    "transmission": 0.9,
    "logged": 0.5,
    "run": 20_500.0,
}

#: The time of a run that writes its folder, in microseconds, chosen by hand: a sweep writes parts of many runs.
FOLDER_US = 15_000.0

#: Bytes of a captured packet, its record's header included: of data what is kept of them, of ACKs their headers.
CAPTURED_BYTES, CAPTURED_ANSWER_BYTES = 144, 82

#: The share of packets that is marked, where senders ask for it.
MARKED = 0.4

#: Memory of each, in bytes: state, transfers that were drawn ahead, and rows.
CONNECTION_BYTES, AHEAD_BYTES, UNDER_WAY_BYTES, LINK_BYTES, CODE_BYTES = 4000, 140, 64, 40_000, 120e6

#: Rows in memory at most, those that wait to go to disk and those that metrics read: `benchmarks/memory.py --long`.
ROWS_BYTES = 170e6


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of each event of a run."""

    packet: float
    hop: float
    sample: float
    transfer: float
    link: float
    event: float
    captured: float
    transmission: float
    logged: float
    run: float = 1.0


def of_run(plan: Plan) -> Cost:
    """One run."""
    everything = loads(plan)
    rows, counts = counted(plan, everything)
    cpu_us = sum(cost_us * getattr(counts, name) for name, cost_us in UNITS_US.items())
    return Cost(
        events=counts.packet + counts.hop + counts.sample,
        cpu_s=1e-6 * cpu_us,
        bytes=written_bytes(plan, rows) + captured_bytes(plan, counts),
        kept_bytes=kept_bytes(rows),
        memory_bytes=_memory_bytes(plan, everything, rows),
        folder_s=1e-6 * FOLDER_US,
    )


def captured_bytes(plan: Plan, counts: Counts) -> float:
    """The packet captures, a file for each vantage."""
    data = counts.packet * len(plan.record.vantages)
    return data * CAPTURED_BYTES + (counts.captured - data) * CAPTURED_ANSWER_BYTES


def counted(plan: Plan, everything: list[Load]) -> tuple[Rows, Counts]:
    """The rows of the tables, and what the CPU time goes with."""
    packets = sum(load.count * load.packets for load in everything)
    answers = sum(load.count * load.acks for load in everything)
    transfers = sum(load.count * load.transfers for load in everything if not load.udp)
    hops = sum(load.count * _hops(load) for load in everything)
    flows = len(plan.datagrams) + transfers
    losses = sum(load.count * load.packets * load.loss for load in everything)
    marks = packets * MARKED * any(group.tcp is not None and group.tcp.ecn != "off" for group in plan.groups)
    sampled = [load for load in everything if plan.record.traffic or not load.generated]
    rows = Rows(
        packets_sampled=sum(load.count * load.packets for load in sampled),
        packets_queued=hops,
        flows=flows,
        flow_samples=sum(load.count * load.alive_s for load in sampled) / plan.record.interval_s,
        queue_samples=_sampled_links(plan) * plan.duration_s / plan.record.interval_s,
        events=2 * transfers + 2.2 * losses + marks,
        links=len(plan.links),
        packets=(2.0 * hops + packets + answers) * plan.record.packets,
        transmissions=(packets + answers) * bool(plan.record.vantages),
    )
    return rows, Counts(
        packet=packets,
        hop=hops,
        sample=rows.flow_samples + rows.queue_samples,
        transfer=flows,
        link=len(plan.links),
        event=rows.events,
        captured=(packets + answers) * len(plan.record.vantages),
        transmission=rows.transmissions,
        logged=rows.packets,
    )


def _sampled_links(plan: Plan) -> int:
    return len(plan.links) if plan.record.all_links else sum(link.bottleneck for link in plan.links)


def _hops(load: Load) -> float:
    """Packets that come to a link: data, ACKs, and what opens and closes a connection."""
    there, back = load.packets + 2 * load.transfers, load.acks + 2 * load.transfers
    return there * load.hops + back * load.hops_back


def _memory_bytes(plan: Plan, everything: list[Load], rows: Rows) -> float:
    transfers = sum(load.count * load.transfers for load in everything if load.ahead)
    under_way = sum(load.count * min(load.window_p, load.packets) for load in everything)
    state = len(plan.flows) * CONNECTION_BYTES + transfers * AHEAD_BYTES + under_way * UNDER_WAY_BYTES
    return CODE_BYTES + state + len(plan.links) * LINK_BYTES + min(rows.memory_bytes(), ROWS_BYTES)
