"""From a scenario to a plan: defaults filled in from the cards, values spread over the flows, `bdp` resolved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ackclock import catalog, scenario
from ackclock.catalog.given import Given
from ackclock.errors import ScenarioError
from ackclock.fields import Loc, Spread
from ackclock.plan import (
    HEADER_BYTES,
    TIMESTAMPS_BYTES,
    CongestionPlan,
    FlowPlan,
    GroupPlan,
    HopPlan,
    LinkPlan,
    PathPlan,
    Plan,
    QueuePlan,
    RecordPlan,
    TcpPlan,
)
from ackclock.scenario import DEFAULT_STACK, Dumbbell, Flows, Scenario
from ackclock.source import Source
from ackclock.units import Size

#: The queue of an access link that the scenario gives a rate but no queue: Linux's default transmit queue.
ACCESS_QUEUE = Given("pfifo", {"limit": Size(1000, "p")})

#: How a plan names the choices of `delayed_ack`.
DELAYED_ACK: Mapping[object, str] = {False: "off", True: "on", "quick": "quick"}

#: Widens a product that should be a whole number before it is rounded down.
ROUNDING = 1 + 1e-12

#: Decimals of a second that an engine can tell apart.
PICOSECOND_DIGITS = 12


@dataclass(frozen=True)
class Loaded:
    """A checked scenario and its text."""

    scenario: Scenario
    source: Source

    def plan(self) -> Plan:
        """The plan. Raises `ScenarioError` for values that do not fit together."""
        return _plan(self.scenario, self.source)


def load(path: str | Path) -> Loaded:
    """Reads and checks a scenario file. Raises `ScenarioError` with every mistake in it."""
    return Loaded(*scenario.read(path))


def loads(text: str, name: str = "scenario") -> Loaded:
    """As `load`, from TOML text."""
    return Loaded(*scenario.parse(text, name))


def _seeds(given: Scenario) -> tuple[int, ...]:
    return tuple(given.seeds) if given.seeds is not None else tuple(range(1, (given.repeats or 1) + 1))


def _plan(given: Scenario, source: Source) -> Plan:
    tcps = [_tcp(given, group, source) for group in range(len(given.flows))]
    rtts_s = _rtts_s(given)
    every_rtt_s = [rtt_s for group in rtts_s for rtt_s in group]
    mean_rtt_s = math.fsum(every_rtt_s) / len(every_rtt_s)
    packet_bytes = max(tcp.packet_bytes for tcp in tcps) + int(given.network.frame_overhead)
    sizes = _Sizes(mean_rtt_s, packet_bytes, source)
    return Plan(
        name=given.name or Path(source.name).stem,
        duration_s=given.duration,
        warmup_s=given.warmup,
        seeds=_seeds(given),
        mean_base_rtt_s=mean_rtt_s,
        packet_bytes=packet_bytes,
        bottleneck=0,
        nodes=(),
        routing="single",
        changes=(),
        links=_links(given.network, sizes, len(every_rtt_s)),
        groups=tuple(_group(given, group, tcp) for group, tcp in enumerate(tcps)),
        flows=tuple(_flows(given, tcps, rtts_s)),
        record=RecordPlan(given.record.interval, given.record.packets, given.record.pcap),
        scenario_name=Path(source.name).name,
        scenario_text=source.text,
    )


def _rtts_s(given: Scenario) -> list[list[float]]:
    """The base RTTs of each group; `network.rtt` is spread over the flows that have none of their own."""
    shared = iter(given.network.rtt.over(sum(flows.count for flows in given.flows if flows.rtt is None)))
    return [
        flows.rtt.over(flows.count) if flows.rtt else [next(shared) for _ in range(flows.count)]
        for flows in given.flows
    ]


def _tcp(given: Scenario, group: int, source: Source) -> TcpPlan:
    """The stack's card, then `[tcp]`, then the group's own keys."""
    own = given.flows[group].tcp or Given(None, {})
    card = _stack(given, given.flows[group])
    values = card.complete({**given.tcp.values, **own.values})
    if values["ecn"] == "auto":
        values["ecn"] = catalog.card("congestion", str(_congestion(given, group).name)).ecn or "off"
    values["delayed_ack"] = DELAYED_ACK[values["delayed_ack"]]
    room = int(values.pop("mtu")) - HEADER_BYTES - TIMESTAMPS_BYTES * values["timestamps"]
    values["mss"] = room if values["mss"] is None else values["mss"]
    _check_tcp(values, room, lambda key: ("flows", group, "tcp", key) if key in own.values else ("tcp", key), source)
    return TcpPlan(header_bytes=HEADER_BYTES, **{card.key(name): _plain(card, name, values[name]) for name in values})


def _stack(given: Scenario, flows: Flows) -> catalog.Card:
    own = flows.tcp.name if flows.tcp else None
    return catalog.card("stack", own or given.tcp.name or DEFAULT_STACK)


def _congestion(given: Scenario, group: int) -> Given:
    """The group's congestion control, else its stack's."""
    flows = given.flows[group]
    return flows.congestion or Given(_stack(given, flows).congestion, {})


def _check_tcp(values: Mapping[str, Any], room: int, place: Callable[[str], Loc], source: Source) -> None:
    mss, window, most_s = values["mss"], values["receive_window"], values["max_rto"]
    checks = (
        ("mss", "B", 1 <= mss <= room, f"at most {room} B, what the MTU leaves"),
        ("min_rto", "s", values["min_rto"] <= most_s, f"at most max_rto ({most_s:g} s)"),
        ("initial_rto", "s", values["initial_rto"] <= most_s, f"at most max_rto ({most_s:g} s)"),
        ("receive_window", "B", window is None or window >= mss, f"one segment ({mss:g} B) or more"),
    )
    wrong = [(key, unit, expected) for key, unit, right, expected in checks if not right]
    if wrong:
        raise ScenarioError(source.problem(place(key), f"{values[key]:g} {unit}", told) for key, unit, told in wrong)


def _plain(card: catalog.Card, name: str, value: Any) -> Any:
    """Bytes are whole numbers in a plan."""
    return int(value) if card.parameters[name].kind == "bytes" and value is not None else value


def _flows(given: Scenario, tcps: Sequence[TcpPlan], rtts_s: Sequence[Sequence[float]]) -> Iterable[FlowPlan]:
    first = 0
    for group, flows in enumerate(given.flows):
        for number, rtt_s in enumerate(rtts_s[group]):
            forward, reverse = _paths(given.network, first + number, rtt_s)
            yield FlowPlan(
                group=group,
                start_s=round(flows.start.at + number * flows.start.every, PICOSECOND_DIGITS),
                start_jitter_s=flows.start.jitter,
                stop_s=None,
                request_bytes=None,
                ends=None,
                size_bytes=_transfer_bytes(_nth(flows.size, number, flows), tcps[group]),
                application_rate_bps=_nth(flows.application_rate, number, flows),
                priority=flows.priority,
                forward=forward,
                reverse=reverse,
                base_rtt_s=rtt_s,
            )
        first += flows.count


def _nth(spread: Spread | None, number: int, flows: Flows) -> Any:
    return spread.at(number, flows.count) if spread else None


def _transfer_bytes(size: Size | None, tcp: TcpPlan) -> int | None:
    if size is None:
        return None
    return max(1, round(size.value * (tcp.mss_bytes if size.unit == "p" else 1)))


def _group(given: Scenario, group: int, tcp: TcpPlan) -> GroupPlan:
    congestion = _congestion(given, group)
    card = catalog.card("congestion", str(congestion.name))
    values = card.complete(congestion.values, congestion.variant)
    parameters = {card.key(name): _plain(card, name, value) for name, value in values.items()}
    return GroupPlan(given.flows[group].label or card.name, CongestionPlan(card.name, parameters), tcp)


def _burst_bytes(network: Dumbbell) -> int | None:
    return None if network.burst is None else int(network.burst)


def _paths(network: Dumbbell, flow: int, rtt_s: float) -> tuple[PathPlan, PathPlan]:
    """Access link, bottleneck, half the RTT; back over the reverse link, and the other half."""
    reverse = 1 if network.reverse else 0
    access = [1 + reverse + flow] if network.access_rate is not None else []
    forward = tuple(HopPlan(0.0, link) for link in [*access, 0])
    back = (HopPlan(0.0, 1),) if network.reverse else ()
    return PathPlan(forward, rtt_s / 2), PathPlan(back, rtt_s / 2)


def _links(network: Dumbbell, sizes: _Sizes, flows: int) -> tuple[LinkPlan, ...]:
    """The bottleneck, the reverse link if there is one, then an access link for each flow if they have a rate."""
    overhead_bytes = int(network.frame_overhead)
    queue = sizes.queue(network.queue, network.rate, ("network", "queue"))
    bottleneck = _link("bottleneck", network.rate, overhead_bytes, queue)
    links = [replace(bottleneck, burst_bytes=_burst_bytes(network), loss=_loss(network), bottleneck=True)]
    if network.reverse:
        rate_bps = network.reverse.rate
        queue = sizes.queue(network.reverse.queue, rate_bps, ("network", "reverse", "queue"))
        links.append(_link("reverse", rate_bps, overhead_bytes, queue))
    if network.access_rate is not None:
        rate_bps = network.access_rate
        queue = sizes.queue(network.access_queue or ACCESS_QUEUE, rate_bps, ("network", "access_queue"))
        links += [_link(f"access-{flow}", rate_bps, overhead_bytes, queue) for flow in range(flows)]
    return tuple(links)


def _link(name: str, rate_bps: float, overhead_bytes: int, queue: QueuePlan) -> LinkPlan:
    return LinkPlan(
        name=name,
        ends=None,
        rate_bps=rate_bps,
        delay_s=0.0,
        weight=1.0,
        burst_bytes=None,
        frame_overhead_bytes=overhead_bytes,
        queue=queue,
        loss=None,
        bottleneck=False,
    )


def _loss(network: Dumbbell) -> Mapping[str, Any] | None:
    if network.loss is None:
        return None
    if network.loss.every is not None:
        return {"kind": "every", "packets": network.loss.every}
    return {"kind": "bernoulli", "probability": network.loss.probability}


@dataclass(frozen=True)
class _Sizes:
    """What turns sizes in bdp into packets and bytes."""

    rtt_s: float
    packet_bytes: int
    source: Source

    def queue(self, given: Given, rate_bps: float, loc: Loc) -> QueuePlan:
        """A discipline with complete parameters on a link of that rate."""
        card = catalog.card("queue", str(given.name))
        values = card.complete(given.values, given.variant)
        sized = {
            card.key(name): self._number(card.parameters[name].kind, value, rate_bps, (*loc, name))
            for name, value in values.items()
        }
        return QueuePlan(card.name, sized)

    def _number(self, kind: str, value: Any, rate_bps: float, loc: Loc) -> Any:
        if not isinstance(value, Size):
            return int(value) if kind == "bytes" and value is not None else value
        if value.unit != "bdp":
            return self._whole(value, loc)
        amount_bytes = value.value * rate_bps * self.rtt_s / 8 * ROUNDING
        if kind == "packets":
            return max(1, math.floor(amount_bytes / self.packet_bytes))
        return max(self.packet_bytes, math.floor(amount_bytes))

    def _whole(self, size: Size, loc: Loc) -> int:
        if size.unit == "B" and size.value < self.packet_bytes:
            expected = f"at least one full data packet ({self.packet_bytes} B on the wire)"
            raise ScenarioError([self.source.problem(loc, str(size), expected)])
        return int(size.value)
