"""Export the network as a Mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html) for Markdown.

A queue is a box with its discipline, its link the arrow behind it with the rate; delays are on the arrows. Flows that
take the same way stand together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ackclock.exporters.script import Script, script
from ackclock.input.fields import LONGEST
from ackclock.plan import DatagramPlan, FlowPlan, LinkPlan, PathPairPlan, PathPairsPlan, Plan, TrafficPlan

#: More nodes than this are no picture.
MAX_ARROWS = 400


def write(plan: Plan) -> Script:
    """Return the diagram."""
    arrows = list(_routed(plan) if plan.nodes else _paths(plan))
    notes = []
    if len(arrows) > MAX_ARROWS:
        notes.append(f"{len(arrows) - MAX_ARROWS} of {len(arrows)} lines: a picture of all would show none")
    if plan.changes:
        notes.append("links that change: the picture is that of the beginning")
    usage = ["A diagram: in Markdown between ```mermaid and ```."]
    lines = [f"    {arrow}" for arrow in arrows[:MAX_ARROWS]]
    return script(plan, usage, lines, notes, first=["flowchart LR"], mark="%%")


def _routed(plan: Plan) -> Iterator[str]:
    """Yield hosts and switches. Two identical directions of a cable are one line."""
    yield from _nodes(plan)
    done: set[tuple[int, int, str]] = set()
    cables = [cable for link in plan.links if (cable := _cable(link))]
    for source, destination, label_text in cables:
        if (destination, source, label_text) not in done:
            done.add((source, destination, label_text))
            arrow = "<-->" if (destination, source, label_text) in cables else "-->"
            yield f'n{source} {arrow}|"{label_text}"| n{destination}'


def _nodes(plan: Plan) -> Iterator[str]:
    for number, node in enumerate(plan.nodes):
        shape = ("([", "])") if node.host else ("[", "]")
        yield f'n{number}{shape[0]}"{_label(node.name)}"{shape[1]}'


def _cable(link: LinkPlan) -> tuple[int, int, str] | None:
    """Return the nodes at a link's ends and its label; None for a link that is between no nodes."""
    label_text = f"{_rate(link)}, {_ms(link.delay_s)}<br/>{_queue(link)}"
    return None if link.ends is None else (link.ends.source, link.ends.destination, label_text)


def _paths(plan: Plan) -> Iterator[str]:
    """Yield queues, and the paths through them."""
    for number, link in enumerate(plan.links):
        yield f'q{number}["{_label(link.name)}<br/>{_queue(link)}"]'
    ways = Counter(_way(plan, item, path) for item, path in _sent(plan))
    for number, ((name, hops, last_s, rtt_s), count) in enumerate(ways.items()):
        yield f's{number}(["{count} × {name}"])'
        yield f'r{number}(["receiver{"s" if count > 1 else ""}"])'
        place, label_text = f"s{number}", ""
        for delay_s, hop in hops:
            yield f'{place} -->|"{", ".join(filter(None, (label_text, _ms(delay_s))))}"| q{hop}'
            place, label_text = f"q{hop}", _rate(plan.links[hop])
        delay_s = last_s + (plan.links[hops[-1][1]].delay_s if hops else 0.0)
        yield f'{place} -->|"{", ".join(filter(None, (label_text, _ms(delay_s))))}"| r{number}'
        yield f'r{number} -.->|"base RTT {_ms(rtt_s)}"| s{number}'


def _sent(plan: Plan) -> Iterator[tuple[FlowPlan | DatagramPlan | TrafficPlan, FlowPlan | DatagramPlan | PathPairPlan]]:
    yield from ((flow, flow) for flow in plan.flows)
    yield from ((source, source) for source in plan.datagrams)
    for traffic in plan.traffic:
        if isinstance(traffic.population, PathPairsPlan):
            yield from ((traffic, path) for path in traffic.population.paths)


def _way(
    plan: Plan, item: FlowPlan | DatagramPlan | TrafficPlan, path: FlowPlan | DatagramPlan | PathPairPlan
) -> tuple[str, tuple[tuple[float, int], ...], float, float]:
    """Return a path's name, its queues with the delays before them, the delay after the last, and the base RTT."""
    name = _label(plan.groups[item.group].name)
    before_s, hops = 0.0, []
    for hop in path.forward.hops:
        hops.append((before_s + hop.delay_s, hop.link))
        before_s = plan.links[hop.link].delay_s
    return name, tuple(hops), path.forward.delay_s, path.base_rtt_s


def _label(text: str) -> str:
    """Escape a text of the scenario for a label: markup becomes entities of Mermaid."""
    shown = " ".join(text.split())[:LONGEST]
    return re.sub(r"[^\w .,:()/+−–×%=↓↑←→-]", lambda result: f"#{ord(result[0])};", shown) or "scenario"


def _queue(link: LinkPlan) -> str:
    limits = {"limit_packets": "packets", "limit_bytes": "bytes"}
    label_text = [
        f"{link.queue.parameters[key]} {unit}" for key, unit in limits.items() if link.queue.parameters.get(key)
    ]
    return " ".join((link.queue.discipline, *label_text[:1]))


def _rate(link: LinkPlan) -> str:
    for unit, size in (("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)):
        if link.rate_bps >= size:
            return f"{link.rate_bps / size:g} {unit}"
    return f"{link.rate_bps:g} b/s"


def _ms(time_s: float) -> str:
    return f"{1e3 * time_s:g} ms"
