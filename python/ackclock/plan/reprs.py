"""A plan in three lines, and as a table for notebooks. It is given plans, and does not know their class."""

from __future__ import annotations

from typing import Any

from ackclock import repr_format

#: Links of so many have rows.
MAX_LINKS = 20


def title(plan: Any) -> str:
    """Return the plan's name and the duration of its runs."""
    seeds = f"seed{'s' * (len(plan.seeds) > 1)} {repr_format.listed(plan.seeds)}"
    return f'Plan "{plan.name}": {repr_format.measured(plan.duration_s, plan.warmup_s)}; {seeds}'


def load(plan: Any) -> str:
    """Return a summary of the traffic and the network."""
    labels = dict.fromkeys(group.name for group in plan.groups)
    connections = [source for source in plan.datagrams if source.is_quic]
    udp = [source for source in plan.datagrams if not source.is_quic]
    counts = (
        (plan.flows, "flow"), (connections, "QUIC connection"), (plan.traffic, "workload"), (udp, "UDP source")
    )  # fmt: skip
    sent = ", ".join(repr_format.counted(len(of), what) for of, what in counts if of)
    return f"{sent or 'nothing'} ({repr_format.listed(labels)}) over {repr_format.counted(len(plan.links), 'link')}"


def bottleneck(plan: Any) -> str:
    """Rate and queue of the link that metrics look at."""
    link = plan.bottleneck_link
    queue = f"{link.queue.discipline} ({repr_format.values(link.queue.parameters)})"
    rtt = f"base RTT {1e3 * plan.mean_base_rtt_s:g} ms, bandwidth–delay product {plan.bdp_bytes:,.0f} bytes"
    return f"{link.name}: {link.rate_bps / 1e6:g} Mbit/s, {queue}; {rtt}"


def lines(plan: Any) -> str:
    """Return the lines of `repr`."""
    return repr_format.lines(title(plan), load(plan), bottleneck(plan))


def html(plan: Any) -> str:
    """Return HTML for a notebook: the lines, and a table of the links."""
    rows = [
        (link.name, f"{link.rate_bps / 1e6:g}", f"{1e3 * link.delay_s:g}", link.queue.discipline,
         repr_format.values(link.queue.parameters))
        for link in plan.links[:MAX_LINKS]
    ]  # fmt: skip
    heads = ("link", "rate (Mbit/s)", "delay (ms)", "queue", "parameters")
    return repr_format.html(title(plan), [load(plan), bottleneck(plan)], heads, rows)
