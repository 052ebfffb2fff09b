"""Export a shell script of `ip`, `tc` and iperf3: the engine linux's network in namespaces, or one device's qdisc.

The commands of the network are the engine's own (`engines.linux.script`), so the script and the engine are the same
network. Its logs are what `ackclock import ss.log tc.log` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ackclock.engines.linux import disciplines, network, routed, script, stack
from ackclock.engines.linux.network import Ends, Network
from ackclock.engines.linux.script import changes
from ackclock.exporters.script import (
    ExportError,
    Script,
    comments,
    jitter_notes,
    label,
    shell,
    too_many,
)
from ackclock.input.fields import one_line
from ackclock.plan import DatagramPlan, FlowPlan, LinkPlan, Plan

#: iperf3's servers listen on ports from here on: one carries one test at a time.
FIRST_PORT = 5201

#: Commands that run the rest of a script in namespaces of its own, as root or not; they end with the script.
PREPARED = """\
# All of it lives in namespaces of this script's own, root or not, and is gone when it ends.
if [ "$1" != inside ]; then
    user=
    [ "$(id -u)" = 0 ] || user=--map-root-user
    exec unshare $user --net --mount --pid --fork --kill-child sh "$0" inside
fi
mount -t tmpfs tmpfs /run
"""

#: Logs are written so often, in seconds.
LOG_S = "0.1"

#: Usage of the file.
SENTENCES = (
    "sh FILE runs it, root or not. It needs unshare, iproute2, ethtool and iperf3, and a kernel with netem.",
    "It leaves ss.log, tc.log and iperf3's JSON of each flow here; this reads the logs:",
    "    ackclock import ss.log tc.log --out DIR",
)

#: Most other bottlenecks that the script of a device names.
MAX_OTHERS = 3

_DEVICE = re.compile(r"[\w.@-]{1,15}")


def write(plan: Plan) -> Script:
    """Return the script for namespaces. Raises `ExportError` for a network that the kernel does not support."""
    if missing := list(_unsupported(plan)):
        raise ExportError("tc", missing)
    net = routed.lay(plan) if plan.nodes else network.lay(plan)
    notes = tuple(_notes(plan))
    return shell(plan, SENTENCES, ["", PREPARED, *_network(plan, net), *_traffic(plan, net)], notes)


def _unsupported(plan: Plan) -> Iterator[str]:
    yield from routed.unsupported(plan) if plan.nodes else network.unsupported(plan)
    yield from _missing_features(plan.links)
    yield from too_many(plan)
    if not plan.flows and not any(map(_is_plain, plan.datagrams)):
        yield "flows that iperf3 can send: generated traffic alone"


def of_device(plan: Plan, device: str) -> Script:
    """Return the script that gives a device the bottleneck's rate and qdisc. Raises `ExportError`."""
    if missing := list(_unsupported_on_device(plan, device)):
        raise ExportError("tc", missing)
    others = [one_line(link.name) for n, link in enumerate(plan.links) if link.bottleneck and n != plan.bottleneck]
    notes = (
        f"a path of {1e3 * plan.mean_base_rtt_s:g} ms: delay it on another device, not before its queue",
        *(f"the bottleneck {name!r}: --device DEVICE --link {name} writes it" for name in others[:MAX_OTHERS]),
    )
    lines = [f"tc qdisc del dev {device} root 2>/dev/null || true", *_shaping(plan, device)]
    return shell(plan, list(_device_sentences(plan, device)), lines, notes)


def _unsupported_on_device(plan: Plan, device: str) -> Iterator[str]:
    if _DEVICE.fullmatch(device):
        yield from _missing_features([plan.bottleneck_link])
    else:
        yield f"device called {device[:40]!r}: expected up to 15 letters and digits"


def _device_sentences(plan: Plan, device: str) -> Iterator[str]:
    link = one_line(plan.bottleneck_link.name)
    yield f"The bottleneck {link!r} at the device {device}. Run it as root; this undoes it:"
    yield f"    tc qdisc del dev {device} root"
    yield f"A queue of packets needs packets: ethtool -K {device} tso off gso off gro off"


def _shaping(plan: Plan, device: str) -> Iterator[str]:
    link, priorities = plan.bottleneck_link, {flow.priority for flow in plan.flows}
    rate = script.shaper(link, device, network.mtu_bytes(plan), live=True)
    return (f"tc {words}" for words in (*rate, *disciplines.commands(link, device, priorities)))


def _missing_features(links: Sequence[LinkPlan]) -> Iterator[str]:
    unknown = dict.fromkeys(name for link in links if (name := link.queue.discipline) not in disciplines.NAMES)
    yield from (f'queue discipline "{name}": the kernel\'s tc has none' for name in unknown)
    for link in links:
        yield from _missing_at(link)


def _missing_at(link: LinkPlan) -> Iterator[str]:
    if link.queue.discipline in disciplines.NAMES:
        yield from disciplines.unsupported(link.queue)
    if link.loss and link.loss["kind"] == "every":
        yield "loss of every n-th packet"
    if link.trace:
        yield "rates that follow traces: the script has one rate"


def _is_plain(source: DatagramPlan) -> bool:
    """Return True if iperf3 can send such datagrams: one after the other, at a constant rate."""
    return source.source.get("kind") == "constant"


def _datagram_note(source: DatagramPlan) -> str:
    """Return why iperf3 cannot send a flow over UDP that is not plain."""
    if source.is_quic:
        return "QUIC connections: iperf3 has TCP and UDP"
    return "UDP in bursts, or at a rate that changes: iperf3 sends at one"


def _notes(plan: Plan) -> Iterator[str]:
    """Yield what iperf3 and a host's settings cannot express."""
    yield from jitter_notes(plan)
    if plan.traffic:
        yield "generated traffic: iperf3 sends flows one by one"
    yield from dict.fromkeys(_datagram_note(source) for source in plan.datagrams if not _is_plain(source))
    if any(flow.request_bytes is not None for flow in plan.flows):
        yield "requests: the sender opens the connection"
    if any(group.slow_reader for group in plan.groups):
        yield "slow readers: iperf3 reads at once"
    if any(group.writes for group in plan.groups):
        yield "messages of small writes: iperf3 writes all the time"
    if any(group.misbehaviour for group in plan.groups):
        yield "misbehaving receivers: the kernel's follow the rules"
    if any(group.tcp and group.tcp.send_buffer_bytes is not None for group in plan.groups):
        yield "send buffers: iperf3 -w sets both ends'"
    yield from (f"{what}: the kernel decides" for what in dict.fromkeys(stack.unsupported(plan)))
    for name, value in stack.modules(plan).items():
        module, _, parameter = name.partition(".")
        yield f"{name} = {value}, for the whole machine: echo {value} > /sys/module/{module}/parameters/{parameter}"
    if any(group.congestion and group.congestion.kind not in stack.CONTROLS for group in plan.groups):
        yield "congestion controls that Linux does not have: iperf3 will refuse them"
    if plan.record.pcap:
        yield "packet captures: ip netns exec NODE tcpdump -i any -w FILE"


def _network(plan: Plan, net: Network) -> Iterator[str]:
    """Yield the engine's commands in commented paragraphs."""
    before = ""
    for command in script.script(net, plan, live=True):
        about = _about(command)
        if about and about != before:
            yield ""
            yield from comments([about])
        before = about or before
        yield command


#: Pattern of a command → comment above its paragraph.
_ABOUT = (
    (r"ip netns add", "Nodes: tx and rx are hosts, q queues before a link, w is behind it, d delays."),
    (r"ip netns exec \S+ sysctl", "Hosts: what TCP may do. Routers: forward, and ask no questions."),
    (r"ip link add", "Cables."),
    (r"ip netns exec \S+ ethtool", "Packets of the size that a queue counts: no batches."),
    (r"ip -n", "Addresses and routes; there is no ARP, so any gateway will do."),
    (r"tc -n", "Rates, queues and delays."),
)


def _about(command: str) -> str:
    return next((about for begin, about in _ABOUT if re.match(begin, command)), "")


def _traffic(plan: Plan, net: Network) -> Iterator[str]:
    flows = [*zip(plan.flows, net.flows, strict=True)]
    plain = [pair for pair in zip(plan.datagrams, net.datagrams, strict=True) if _is_plain(pair[0])]
    every = [ends for _, ends in (*flows, *plain)]
    yield from _servers(every)
    yield from _logs(net, every)
    yield from _changes(plan, net)
    yield from comments([f"The flows, over {plan.duration_s:g} s."])
    yield from _clients([*(_flow(plan, *pair) for pair in flows), *(_datagrams(plan, *pair) for pair in plain)])


def _servers(every: Iterable[Ends]) -> Iterator[str]:
    yield from ("", *comments(["A server for each flow: iperf3 carries one test at a time."]))
    for port, ends in enumerate(every, FIRST_PORT):
        yield f"ip netns exec {ends.destination.namespace} iperf3 -s -D -1 -p {port}"
    yield "sleep 1"


def _logs(net: Network, every: Iterable[Ends]) -> Iterator[str]:
    about = f"Logs of the senders' sockets and of the queues, each {LOG_S} s, with the time before each."
    yield from ("", *comments([about]))
    yield 'log() { while :; do date +%s.%N; "$@"; sleep ' + LOG_S + "; done; }"
    yield f"log sh -c '{_sockets(every)}' > ss.log & logs=$!"
    yield f"log sh -c '{_queues(net)}' > tc.log & logs=\"$logs $!\""
    yield from ("trap 'kill $logs' EXIT", "")


def _sockets(every: Iterable[Ends]) -> str:
    hosts = dict.fromkeys(ends.source.namespace for ends in every)
    return "; ".join(f"ip netns exec {host} ss -tin" for host in hosts)


def _queues(net: Network) -> str:
    nodes = sorted({cable.source for cable in net.cables if cable.link is not None})
    return "; ".join(f'tc -n {node} -s qdisc show dev out | sed "s/^qdisc [^ ]* [^ ]*/& dev {node}/"' for node in nodes)


def _clients(sent: Iterable[tuple[float, str, str]]) -> Iterator[str]:
    for number, (start_s, about, words) in enumerate(sent):
        wait = f"sleep {disciplines.number(start_s)}; " if start_s else ""
        command = f"{wait}{words} -p {FIRST_PORT + number} > flow-{number}.json"
        yield f'({command}) & flows="$flows $!"  # {about}'
    yield "wait $flows"


def _changes(plan: Plan, net: Network) -> Iterator[str]:
    result = changes(plan, net, live=True)
    if result:
        yield from comments(["Links that change."])
    for change in result:
        yield f"(sleep {disciplines.number(change['at_s'])}; {'; '.join(change['commands'])}) &"
    if result:
        yield ""


def _flow(plan: Plan, flow: FlowPlan, ends: Ends) -> tuple[float, str, str]:
    """Return a flow's start, label and command."""
    control = plan.groups[flow.group].congestion
    stop_s = plan.duration_s if flow.stop_s is None else min(flow.stop_s, plan.duration_s)
    much = f"-n {flow.size_bytes}" if flow.size_bytes is not None else f"-t {_seconds(stop_s - flow.start_s)}"
    rate = f" -b {round(flow.application_rate_bps)}" if flow.application_rate_bps is not None else ""
    kind = f" -C {control.kind}" if control else ""
    return flow.start_s, label(plan, flow), f"{_client(ends)} {much}{kind}{rate} -J"


def _datagrams(plan: Plan, source: DatagramPlan, ends: Ends) -> tuple[float, str, str]:
    stop_s = plan.duration_s if source.stop_s is None else min(source.stop_s, plan.duration_s)
    rate_bps = round(8 * source.payload_bytes * float(source.source["per_s"]))
    words = f"{_client(ends)} -u -l {source.payload_bytes} -b {rate_bps} -t {_seconds(stop_s - source.start_s)} -J"
    return source.start_s, one_line(plan.groups[source.group].name), words


def _client(ends: Ends) -> str:
    source, destination = ends.source, ends.destination
    return f"ip netns exec {source.namespace} iperf3 -c {destination.address} -B {source.address}"


def _seconds(time_s: float) -> int:
    return max(1, round(time_s))
