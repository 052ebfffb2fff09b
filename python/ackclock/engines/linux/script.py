"""A network as ordinary `ip`, `tc`, `sysctl` and `ethtool` commands, one a line, and those that change its links.

They run as they stand, as root or in `unshare --map-root-user --net --mount`, in their order. Where they run, plain
names do: the namespaces around are private, and all goes with the process.

When a link changes, another rate is the class's and, for the time of transmission, that of the cables behind; another
delay is theirs alone. A link that fails loses what it is offered, at its entrance, and what its queue still lets out,
behind it; what flies arrives.

Used by `process`, by testbeds, and by the exporter `tc`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ackclock.engines.linux import disciplines, traces
from ackclock.engines.linux.network import ETHERNET_BYTES, Cable, Loss, Network, loss_of
from ackclock.plan import ChangePlan, LinkPlan, MediumPlan, Plan

#: A gateway that is nowhere: with it each device has one neighbour, and not one for each address.
GATEWAY = "10.0.0.1"

#: The handle of what loses data at random.
LOST = "13:"

#: Packets that a delay may hold: more than any link sends meanwhile.
FLYING_P = 1_000_000

#: A rate at which a packet takes nanoseconds.
ENDLESS = "1000gbit"

#: Longest delay of a timer that a transmitting link may catch up with. Its bucket is otherwise empty from the first
#: byte on, so a packet leaves when the one before has been sent. A kernel that shares its processor is later, by more
#: than a packet on a slow link.
LATE_S = 5e-6
LIVE_LATE_S = 1e-4
LIVE_MIN_BYTES = 1600


def script(
    network: Network,
    plan: Plan,
    *,
    offloads: bool = False,
    sysctls: Mapping[str, str | int] | None = None,
    live: bool = False,
    ipv6: bool = False,
) -> list[str]:
    """The commands, in their order. `sysctls` are set in every host, after those of the plan.

    `live`: the kernel shares its processor, and is late at times; `ipv6`: it has IPv6, which is to be silent.

    Commands of a node stand together: where they run, those of a tool are given to one process.
    """
    return [
        *(f"ip netns add {node}" for node in network.nodes),
        *_node_sysctls(network, ipv6),
        *_host_sysctls(network, sysctls or {}),
        *(_cable(network, number, cable) for number, cable in enumerate(network.cables)),
        *_offloads(network, offloads),
        *(command for node in network.nodes for command in _devices(network, node)),
        *_qdiscs(network, plan, live),
    ]


def _node_sysctls(network: Network, ipv6: bool) -> Iterator[str]:
    for node in network.nodes:
        settings = [*_of_node(node in network.hosts, ipv6), *network.sysctls.get(node, {}).items()]
        yield from (_sysctl(node, name, value) for name, value in settings)


def _of_node(host: bool, ipv6: bool) -> Iterator[tuple[str, str]]:
    """Routers forward; nobody asks whether a packet came the way that an answer would go."""
    yield "net.ipv4.conf.all.rp_filter", "0"
    yield "net.ipv4.conf.default.rp_filter", "0"
    if not host:
        yield "net.ipv4.ip_forward", "1"
    if ipv6:
        yield "net.ipv6.conf.default.disable_ipv6", "1"


def _sysctl(node: str, name: str, value: str) -> str:
    quoted = f"'{name}={value}'" if " " in value else f"{name}={value}"
    return f"ip netns exec {node} sysctl -qw {quoted}"


def _host_sysctls(network: Network, more: Mapping[str, str | int]) -> Iterator[str]:
    for node, settings in network.hosts.items():
        for name, value in settings.sysctls:
            yield _sysctl(node, f"net.ipv4.{name}", value)
        for name, given in more.items():
            yield _sysctl(node, name, str(given))


def _cable(network: Network, number: int, cable: Cable) -> str:
    """Both ends have the same hardware address, so what is sent to one's own arrives."""
    common = f"arp off mtu {network.mtu_bytes} address {_hardware(number)}"
    alone = " gso_max_segs 1" if _is_unbatched(network, cable) else ""
    return (
        f"ip link add {network.device(number)} netns {cable.source} {common}{alone}"
        f" type veth peer name c{number} {common} netns {cable.target}"
    )


def _offloads(network: Network, wanted: bool) -> Iterator[str]:
    for number, cable in enumerate(network.cables):
        if cable.source in network.hosts and not wanted:
            yield f"ip netns exec {cable.source} ethtool -K {network.device(number)} tso off gso off gro off"


def _devices(network: Network, node: str) -> Iterator[str]:
    """Without `lo`, a node has no table of its own addresses, and takes no gateway."""
    ends = [network.device(number) for number, cable in enumerate(network.cables) if cable.source == node]
    ends += [f"c{number}" for number, cable in enumerate(network.cables) if cable.target == node]
    yield from (f"ip -n {node} link set {device} up" for device in ("lo", *ends))
    yield from (f"ip -n {node} addr add {address}/32 dev lo" for address in network.addresses.get(node, ()))
    yield from _routes(network, node)


def _is_unbatched(network: Network, cable: Cable) -> bool:
    """Return True if segments leave one by one, not in super-segments that are split later."""
    return cable.source in network.hosts and not network.hosts[cable.source].batches


def _hardware(number: int) -> str:
    """An address of our own for a cable."""
    return "02:" + ":".join(f"{number >> shift & 255:02x}" for shift in (32, 24, 16, 8, 0))


def _qdiscs(network: Network, plan: Plan, live: bool) -> Iterator[str]:
    for number, cable in sorted(enumerate(network.cables), key=lambda item: item[1].source):
        tc, device = f"tc -n {cable.source}", network.device(number)
        if cable.link is not None:
            link = plan.links[cable.link]
            yield from (f"{tc} {words}" for words in _rated(link, cable.link, device, network.mtu_bytes, live))
            yield from (f"{tc} {words}" for words in disciplines.commands(link, device, network.priorities))
        elif cable.loss is not None:
            yield from (f"{tc} {words}" for words in losing(cable.loss, device))
        elif cable.delays:
            yield from (f"{tc} qdisc add dev {device} {words}" for words in _delays(cable))


def _rated(link: LinkPlan, number: int, device: str, mtu_bytes: int, live: bool) -> Iterator[str]:
    """Yield the arguments of `tc` that give a device the link's rate and queue."""
    if link.trace and link.trace.has_opportunities:
        yield f"qdisc add dev {device} root handle 1: {_stab(link)}{traces.qdisc(number)}"
    else:
        yield from shaper(link, device, mtu_bytes, live)


def shaper(link: LinkPlan, device: str, mtu_bytes: int, live: bool) -> Iterator[str]:
    """Yield the arguments of `tc` that give a device a link's rate; its qdisc goes below."""
    yield f"qdisc add dev {device} root handle 1: {_stab(link)}htb default 1"
    yield f"class add dev {device} {htb_class(link, mtu_bytes, live)}"


def _stab(link: LinkPlan) -> str:
    """The words that make a packet as long as the link's frames are."""
    overhead_bytes = link.frame_overhead_bytes - ETHERNET_BYTES
    return f"stab overhead {overhead_bytes} linklayer ethernet " if overhead_bytes else ""


def htb_class(link: LinkPlan, mtu_bytes: int, live: bool) -> str:
    """The class that has a link's rate."""
    burst_bytes = _credit_bytes(link, live) if link.burst_bytes is None else link.burst_bytes
    rate = disciplines.rate(link.rate_bps)
    return (
        f"parent 1: classid 1:1 htb rate {rate} ceil {rate} burst {burst_bytes}"
        f" cburst {burst_bytes} quantum {mtu_bytes + ETHERNET_BYTES}"
    )


def _credit_bytes(link: LinkPlan, live: bool) -> int:
    late_s, least_bytes = (LIVE_LATE_S, LIVE_MIN_BYTES) if live else (LATE_S, 1)
    return max(least_bytes, round(link.rate_bps / 8 * late_s))


def _delays(cable: Cable) -> Iterator[str]:
    """A host's time for a packet that is still being transmitted begins with its last bit: a delay of its own."""
    if cable.processing is None or cable.rate_bps is None:
        yield f"root {netem(cable)}"
    else:
        yield f"root handle 1: {netem(cable)}"
        yield f"parent 1: {netem(Cable(cable.source, cable.target, processing=cable.processing))}"


def netem(cable: Cable) -> str:
    """Return the arguments of netem that delay a cable's packets.

    With a rate, netem adds the transmission times; packets come one by one, so nobody waits for another's.
    """
    words = f"netem limit {FLYING_P}"
    if cable.processing is not None and cable.rate_bps is None:
        return f"{words}{_drawn(cable.delay_s, *cable.processing)}"
    if cable.delay_s > 0:
        words += f" delay {disciplines.time(cable.delay_s)}"
    if cable.rate_bps is not None:
        words += f" rate {disciplines.rate(cable.rate_bps)}"
        if cable.overhead_bytes != ETHERNET_BYTES:
            words += f" {cable.overhead_bytes - ETHERNET_BYTES}"
    return words if cable.medium is None else f"netem limit {FLYING_P}{_medium(cable.delay_s, cable.medium)}"


def _drawn(delay_s: float, least_s: float, most_s: float) -> str:
    """A delay, and a time between these two that is drawn for each packet; none overtakes another."""
    words = f" delay {disciplines.time(delay_s + (least_s + most_s) / 2)}"
    if most_s > least_s:
        words += f" {disciplines.time((most_s - least_s) / 2)}"
    return f"{words} rate {ENDLESS}"


def _medium(delay_s: float, medium: MediumPlan) -> str:
    """With a rate, netem lets no packet overtake another: one that is too high to matter keeps the order."""
    words = f" delay {disciplines.time(delay_s)}"
    if jitter := medium.jitter:
        words += f" {disciplines.time(jitter.deviation_s)}"
        words += f" distribution {jitter.distribution}" * (jitter.distribution != "uniform")
    for name in ("reorder", "duplicate", "corrupt"):
        if chance := getattr(medium, name):
            words += f" {name} {disciplines.number(100 * chance)}%"
    return words + f" rate {ENDLESS}" * bool(jitter and jitter.in_order)


def losing(loss: Loss, device: str) -> Iterator[str]:
    """Yield the arguments of `tc` for random loss.

    Three bands: SYNs, packets below 256 bytes (taken for ACKs, never dropped), and data.
    """
    yield f"qdisc add dev {device} root handle 1: prio bands 3 priomap {' '.join('2' * 16)}"
    yield from (f"qdisc add dev {device} {words}" for words in bands(loss))
    filters = f"filter add dev {device} parent 1: protocol ip prio"
    yield f"{filters} 1 u32 {disciplines.flagged(disciplines.SYN)} flowid 1:1"
    yield f"{filters} 2 u32 {disciplines.TCP} match u16 0x0000 0xff00 at 2 flowid 1:2"


def bands(loss: Loss) -> Iterator[str]:
    """The three bands of what loses packets."""
    of_data = (loss.data,) if loss.bursts is None else loss.bursts
    for band, chances in enumerate(((loss.syn,), (loss.short,), of_data), 1):
        words = " ".join(f"{disciplines.number(100 * chance)}%" for chance in chances)
        model = "gemodel " * (len(chances) > 1)
        yield f"parent 1:{band} handle 1{band}: netem limit {FLYING_P} loss {model}{words}"


def _routes(network: Network, node: str) -> Iterator[str]:
    """Yield the routes of a node. Its default route is the one that most addresses share."""
    routes = network.routes.get(node, {})
    metrics = network.hosts[node].metrics if node in network.hosts else ()
    words = "".join(f" {name} {value}" for name, value in metrics)
    default = _default(network, node)
    if default:
        yield f"ip -n {node} route add default{_ways(network, default)}{words}"
    for address, cables in routes.items():
        if cables != default:
            yield f"ip -n {node} route add {address}/32{_ways(network, cables)}{words}"


def _default(network: Network, node: str) -> tuple[int, ...]:
    if node in network.defaults:
        return (network.defaults[node],)
    most = Counter(network.routes.get(node, {}).values()).most_common(1)
    return most[0][0] if most else ()


def _ways(network: Network, cables: tuple[int, ...]) -> str:
    ways = [f"via {GATEWAY} dev {network.device(cable)}" for cable in cables]
    if len(ways) == 1:
        return f" {ways[0]} onlink"
    weights = [network.weights.get(cable, 1) for cable in cables]
    return "".join(f" nexthop {way} weight {weight} onlink" for way, weight in zip(ways, weights, strict=True))


ALL_LOST = Loss(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class State:
    """A link as it is at a time."""

    link: LinkPlan
    up: bool = True

    def after(self, change: ChangePlan) -> State:
        """From a change on."""
        rate_bps = self.link.rate_bps if change.rate_bps is None else change.rate_bps
        delay_s = self.link.delay_s if change.delay_s is None else change.delay_s
        up = self.up if change.up is None else change.up
        loss, medium = change.loss or self.link.loss, change.medium or self.link.medium
        return State(replace(self.link, rate_bps=rate_bps, delay_s=delay_s, loss=loss, medium=medium), up)


def changes(plan: Plan, network: Network, *, live: bool, silent: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the changes for the run spec: when, which link, its rate from then on (0 if it is down), and the commands.

    Of rates that follow a trace, those of the links `silent`, no event tells.
    """
    states = {number: State(link) for number, link in enumerate(plan.links)}
    made = []
    for change in plan.changes:
        state = states[change.link] = states[change.link].after(change)
        made.append(
            {
                "at_s": change.at_s,
                "link": change.link,
                "rate_bps": state.link.rate_bps if state.up else 0.0,
                "told": change.rate_bps is None or plan.links[change.link].name not in silent,
                "commands": [f"tc -n {words}" for words in _commands_of(plan, network, change, state, live)],
            }
        )
    return made


def _commands_of(plan: Plan, network: Network, change: ChangePlan, state: State, live: bool) -> Iterator[str]:
    number = change.link
    if change.up is not None or change.loss is not None:
        yield from _entrance(network, number, state)
    if change.rate_bps is not None:
        yield f"q{number} class change dev out {htb_class(state.link, network.mtu_bytes, live)}"
    if any(value is not None for value in (change.up, change.rate_bps, change.delay_s)):
        yield from _behind(network, number, plan.links[number], state)
    if change.delay_s is not None or change.medium is not None:
        yield from _through(network, number, state)


def _entrance(network: Network, number: int, state: State) -> Iterator[str]:
    loss = loss_of(state.link.loss) if state.up else ALL_LOST
    for place, cable in enumerate(network.cables):
        if cable.source == f"e{number}":
            yield from (f"e{number} qdisc change dev {network.device(place)} {words}" for words in bands(loss))


def _behind(network: Network, number: int, before: LinkPlan, state: State) -> Iterator[str]:
    """Delays of cables include the link's own."""
    lost = "" if state.up else " loss 100%"
    for place, cable in enumerate(network.cables):
        if cable.source == f"w{number}":
            own_s = 0.0 if cable.target == f"i{number}" else state.link.delay_s - before.delay_s
            delay_s = max(0.0, cable.delay_s + own_s)
            rate_bps = None if cable.rate_bps is None else state.link.rate_bps
            words = netem(replace(cable, delay_s=delay_s, rate_bps=rate_bps))
            yield f"w{number} qdisc replace dev {network.device(place)} root {words}{lost}"


def _through(network: Network, number: int, state: State) -> Iterator[str]:
    """The medium has the link's delay, where it does more than that."""
    for place, cable in enumerate(network.cables):
        if cable.source == f"i{number}":
            words = netem(replace(cable, delay_s=state.link.delay_s, medium=state.link.medium or cable.medium))
            yield f"i{number} qdisc replace dev {network.device(place)} root {words}"
