"""The plan: what an engine is asked to do, as complete SI numbers.

A plan is frozen. Every default has been filled in from the algorithms' and stacks' specs, every flow has its own start,
RTT and size, every size in bandwidth–delay products (`bdp`) has become packets or bytes. `ackclock run --dry-run`
prints it; `Plan.engine_input` is the part of it that the packet engine and the Linux kernel's agent read.

The bandwidth–delay product of a link is its rate (the mean of a trace) × the mean base RTT of all flows. A limit in
packets holds as many *full data packets* of the scenario's largest wire size (`packet_bytes`) as fit into it, and at
least one; a limit in bytes at least one such packet.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from ackclock.plan.records import record

#: IPv4 and TCP headers without options, in bytes (RFC 791, RFC 9293).
HEADER_BYTES = 40

#: IPv4 and UDP headers, in bytes (RFC 791, RFC 768).
UDP_HEADER_BYTES = 28

#: Bytes that timestamps add to every segment: 10 and 2 of padding (RFC 7323 appendix A).
TIMESTAMPS_BYTES = 12

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """A queue discipline and its complete parameters.

    `rules` says which of them came of a buffer rule, and how: `{"limit_packets": "bdp/sqrt(n), n = 100"}`.
    """

    discipline: str
    parameters: Parameters
    rules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A host or a switch; flows begin and end at hosts, and no way leads through one."""

    name: str
    host: bool


@dataclass(frozen=True, slots=True)
class EndsPlan:
    """The two nodes that a link joins, or a flow: indexes into the plan's nodes."""

    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class TracePlan:
    """Capacity of a link over time, repeated; `file` is where it was read, `sha256` the hash of its text.

    `course` is what `crates/ackclock-plan` reads: rates from their times on, or opportunities.
    """

    file: str
    sha256: str
    period_s: float
    course: Parameters

    @property
    def has_opportunities(self) -> bool:
        """Return True if it lists delivery opportunities, not rates."""
        return bool(self.course["kind"] == "opportunities")


@dataclass(frozen=True, slots=True)
class JitterPlan:
    """Variation of a link's propagation delay; `distribution` is "uniform" or "normal"."""

    deviation_s: float
    distribution: str
    in_order: bool


@dataclass(frozen=True, slots=True)
class MediumPlan:
    """Impairments behind a link's transmitter: jitter, and probabilities of reordering, duplication and corruption.

    `ecn` is how the ECN field is rewritten, `tunnel` how an IP-in-IP tunnel over the link treats it.
    """

    jitter: JitterPlan | None = None
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    ecn: str | None = None
    tunnel: str | None = None


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """A change of a link at a given time; what is None stays. A link that is not `up` loses what it is offered."""

    at_s: float
    link: int
    rate_bps: float | None = None
    delay_s: float | None = None
    up: bool | None = None
    loss: Parameters | None = None
    medium: MediumPlan | None = None


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link that can queue: random loss, queue, transmitter, then `delay_s` of propagation.

    `ends` are the nodes that it joins (None: only paths name it); `weight` is its share among equal-cost paths. With
    a trace, `rate_bps` is its mean.
    """

    name: str
    ends: EndsPlan | None
    rate_bps: float
    delay_s: float
    weight: float
    burst_bytes: int | None
    frame_overhead_bytes: int
    queue: QueuePlan
    loss: Parameters | None
    bottleneck: bool
    trace: TracePlan | None = None
    medium: MediumPlan | None = None


@dataclass(frozen=True, slots=True)
class HopPlan:
    """A queueing link on a path, and the propagation delay to its queue."""

    delay_s: float
    link: int


@dataclass(frozen=True, slots=True)
class PathPlan:
    """One way between two hosts: queueing links, then `delay_s` to the far end."""

    hops: tuple[HopPlan, ...]
    delay_s: float


@dataclass(frozen=True, slots=True)
class CongestionPlan:
    """A congestion control and its complete parameters."""

    kind: str
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class TcpPlan:
    """A TCP apart from its congestion control; the specs in `algorithms/stack` say what each field means."""

    mss_bytes: int
    header_bytes: int
    sack: bool
    timestamps: bool
    delayed_ack: str
    delayed_ack_timeout_s: float
    initial_window: int
    initial_rto_s: float
    min_rto_s: float
    max_rto_s: float
    rto_floor_on_variance: bool
    rto_slop_s: float
    timer_tick_s: float
    rtt_sampling: str
    rtt_tick_s: float
    impatient: bool
    receive_window_bytes: int | None
    loss_detection: str
    tail_loss_probe: bool
    undo_spurious: bool
    frto: bool
    adaptive_reordering: bool
    limited_transmit: bool
    recovery_reduction: str
    pacing: bool
    tso_batching: bool
    window_validation: bool
    ecn: str
    processing: Parameters | None = field(default=None, hash=False)
    send_buffer_bytes: int | None = None
    byte_counting: bool = True

    @property
    def packet_bytes(self) -> int:
        """The IP packet of a full data segment."""
        return self.mss_bytes + self.header_bytes + TIMESTAMPS_BYTES * self.timestamps


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Common properties of the flows of one `[[flows]]` or `[[traffic]]` entry, and their name.

    `congestion` and `tcp` are None where the flows are not TCP. `slow_reader` is the application at the receivers, as
    `crates/ackclock-traffic` reads it; None: it reads at once. `writes` are the messages of the application at the
    senders; None: it writes none. `misbehaviour` is what the receivers do against TCP's
    rules, as `crates/ackclock-plan` reads it. `dscp` is the codepoint of their packets, both ways.
    """

    name: str
    congestion: CongestionPlan | None
    tcp: TcpPlan | None
    slow_reader: Parameters | None = field(default=None, hash=False)
    writes: Parameters | None = field(default=None, hash=False)
    misbehaviour: Parameters | None = field(default=None, hash=False)
    dscp: int = 0


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """One TCP connection that carries data one way; `group` is an index into the plan's groups.

    With `ends`, the engine finds the ways between the two hosts and the paths are empty. With `request_bytes`, the
    receiver opens the connection and asks with so many bytes.
    """

    group: int
    start_s: float
    start_jitter_s: float
    stop_s: float | None
    size_bytes: int | None
    request_bytes: int | None
    application_rate_bps: float | None
    priority: int
    ends: EndsPlan | None
    forward: PathPlan
    reverse: PathPlan
    base_rtt_s: float


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Load that sources with access links may offer to the links that they share; engines need not know it.

    `aggregation` is K = C/C_a, `multiplexing` M the number of sources, `congestion_factor` ΣC_a/C, and
    `reverse_factor` R the same on the way back; None where there is no such link (Guillier's workload parameters).
    """

    aggregation: float
    multiplexing: int
    congestion_factor: float
    reverse_factor: float | None


@dataclass(frozen=True, slots=True)
class PathPairPlan:
    """A path there and a path back; generated transfers choose among several."""

    forward: PathPlan
    reverse: PathPlan
    base_rtt_s: float


@dataclass(frozen=True, slots=True)
class PathPairsPlan:
    """Endpoints of traffic as pairs of paths, each with a source of its own."""

    paths: tuple[PathPairPlan, ...]
    kind: str = "paths"


@dataclass(frozen=True, slots=True)
class HostsPlan:
    """Endpoints of traffic as hosts, which are indexes into the plan's nodes, and the pattern of who sends to whom."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    pairing: str
    kind: str = "nodes"


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """TCP transfers that are generated from the seed; `workload` is what `crates/ackclock-traffic` reads."""

    group: int
    priority: int
    request_bytes: int | None
    application_rate_bps: float | None
    population: PathPairsPlan | HostsPlan
    workload: Parameters


@dataclass(frozen=True, slots=True)
class DatagramPlan:
    """A flow over UDP; `source` says when its datagrams leave. Its group has neither congestion control nor TCP."""

    group: int
    start_s: float
    stop_s: float | None
    priority: int
    ends: EndsPlan | None
    forward: PathPlan
    reverse: PathPlan
    payload_bytes: int
    header_bytes: int
    source: Parameters
    base_rtt_s: float

    @property
    def is_quic(self) -> bool:
        """True for a connection of a QUIC stack, the built-in one or a user's."""
        return self.source["kind"] in ("quic", "stack")

    @property
    def congestion(self) -> str:
        """The name of its congestion control algorithm, or of the user's stack that chooses one; "udp" if not QUIC."""
        if not self.is_quic:
            return "udp"
        algorithm = self.source["congestion"]
        return str(algorithm["kind"] if isinstance(algorithm, Mapping) else algorithm or self.source["stack"])

    @property
    def has_qlog(self) -> bool:
        """True if the sender's stack writes its log."""
        return bool(self.source.get("qlog"))

    @property
    def user_stack(self) -> str | None:
        """The name of the user's stack (`--stack`) that its ends are; None for others."""
        return str(self.source["stack"]) if self.source["kind"] == "stack" else None


#: From where packets are captured: at hosts, or at the link of a name.
SENDERS, RECEIVERS, AT_LINK = "senders", "receivers", "link:"


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """Recorded data.

    `pcap`: a packet capture at the senders, or one at each vantage point: "senders", "receivers", "link:" and a name;
    `traffic`: samples of generated transfers too; `all_links`: samples of all links' queues, not just of the
    bottlenecks'; `delays`: one-way delays; `cubic_state`: internal state of CUBIC; `paths`: the links of each routed
    flow.
    """

    interval_s: float
    packets: bool
    pcap: bool | tuple[str, ...]
    traffic: bool
    all_links: bool
    delays: bool
    cubic_state: bool
    paths: bool

    @property
    def vantages(self) -> tuple[str, ...]:
        """From where packets are captured."""
        if isinstance(self.pcap, bool):
            return (SENDERS,) * self.pcap
        return self.pcap


@dataclass(frozen=True)
class Plan:
    """One scenario as complete numbers; `seeds` has one run each.

    `epochs` is the rule by which metrics tell congestion epochs apart.
    `options` are what one engine alone has, by its name: see `ackclock.scenario.options`.
    """

    name: str
    duration_s: float
    warmup_s: float
    seeds: tuple[int, ...]
    mean_base_rtt_s: float
    packet_bytes: int
    bottleneck: int
    load: LoadPlan | None
    nodes: tuple[NodePlan, ...]
    links: tuple[LinkPlan, ...]
    routing: str
    flowlet_gap_s: float | None
    changes: tuple[ChangePlan, ...]
    groups: tuple[GroupPlan, ...]
    flows: tuple[FlowPlan, ...]
    traffic: tuple[TrafficPlan, ...]
    datagrams: tuple[DatagramPlan, ...]
    record: RecordPlan
    epochs: str
    options: Mapping[str, Parameters]
    scenario_name: str = field(default="", compare=False)
    scenario_text: str = field(default="", compare=False, repr=False)

    def __repr__(self) -> str:
        from ackclock.plan import reprs

        return reprs.lines(self)

    def _repr_html_(self) -> str:
        from ackclock.plan import reprs

        return reprs.html(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Plan:
        """The plan that `to_dict` gave, as it stands in a manifest. Raises `InputError` if it is not complete."""
        plan: Plan = record(Plan, values)
        return plan

    @property
    def logged_flows(self) -> tuple[int, ...]:
        """The numbers of the QUIC flows whose senders' stacks write logs."""
        return tuple(number for number, one in enumerate(self.datagrams, len(self.flows)) if one.has_qlog)

    @property
    def has_captures(self) -> bool:
        """True if a run writes files next to its tables: packet captures, logs."""
        return bool(self.record.pcap or self.logged_flows)

    @property
    def bottleneck_link(self) -> LinkPlan:
        """The link that the metrics look at."""
        return self.links[self.bottleneck]

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth–delay product of the bottleneck: its rate × the flows' mean base RTT."""
        return self.bottleneck_link.rate_bps * self.mean_base_rtt_s / 8

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready values, without the scenario's text."""
        values = dataclasses.asdict(self)
        del values["scenario_text"], values["scenario_name"]
        for link in values["links"]:
            if not link["queue"]["rules"]:
                del link["queue"]["rules"]
        return values

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Return `to_dict`, computed once for the runs of all seeds. The result must not be changed."""
        return self.to_dict()

    @cached_property
    def engine_json(self) -> str:
        """Return `engine_input` as text, computed once for the runs of all seeds."""
        return json.dumps(self.engine_input())

    def engine_input(self) -> dict[str, Any]:
        """Return the input of `crates/ackclock-plan`: network, traffic, recorded data. It must not be changed."""
        values = {name: value for name, value in self.values.items() if name not in _NOT_FOR_ENGINES}
        for name in ("flows", "datagrams"):
            values[name] = [_without(item, "base_rtt_s") for item in values[name]]
        values["traffic"] = [{**item, "population": _population(item["population"])} for item in values["traffic"]]
        values["links"] = [{**link, "queue": _without(link["queue"], "rules")} for link in values["links"]]
        return values

    def to_json(self) -> str:
        """The plan as JSON for people: a line for what fits on one."""
        return _json(self.values, indent=0)


#: Fields that `crates/ackclock-plan` lacks: views read them, or an engine gets them in another way.
_NOT_FOR_ENGINES = frozenset(
    {"name", "seeds", "mean_base_rtt_s", "packet_bytes", "bottleneck", "load", "epochs", "options"}
)


def _without(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name != key}


def _population(population: Mapping[str, Any]) -> Mapping[str, Any]:
    if "paths" not in population:
        return population
    return {**population, "paths": [_without(pair, "base_rtt_s") for pair in population["paths"]]}


def _json(value: Any, indent: int) -> str:
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + indent <= 116 or not isinstance(value, (dict, list, tuple)) or not value:
        return short
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_json(item, indent + 2)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + item for item in items) + "\n" + " " * indent + "}"
    items = [_json(item, indent + 2) for item in value]
    return "[\n" + ",\n".join(inner + item for item in items) + "\n" + " " * indent + "]"
