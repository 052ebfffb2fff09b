"""A plan as a script of ns-2: what a person would write, and what `ackclock.engines.external` reads afterwards.

The script writes into the folder it runs in: `samples` (a line for each flow and each link at each instant), `drops`
(ns-2's own trace lines, of dropped packets only), `flows` and `links` (the counts at the warm-up's end and at the end).
Each pair of ways has nodes of its own at both ends, and each link that queues two; packets follow routes that are
written down, since ns-2's own would take the way of fewest links.

In a network of hosts and switches the ways are those that the packet engine's switches choose, and a host has a node
for each way that leads to it: a route of ns-2 asks for the destination alone, so flows of one pair that are hashed to
different ways need different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ackclock.engines.external import planned_traffic
from ackclock.engines.external.planned_traffic import Connection, PlannedTraffic, Stream
from ackclock.engines.ns2 import agents, links, traffic
from ackclock.engines.ns2.agents import Agents
from ackclock.input.fields import one_line
from ackclock.plan import PathPlan, Plan

#: The rate of links that only delay, in bit/s: a packet of 1500 B takes 1.2 ns.
FAST_BPS = 10_000_000_000_000

#: Packets that only a delay holds.
LONG_P = 100_000_000


@dataclass(slots=True)
class _Net:
    """Nodes by their names, links that only delay, and the next node on the way to another."""

    nodes: dict[str, None] = field(default_factory=dict)
    delays: dict[tuple[str, str], float] = field(default_factory=dict)
    routes: dict[tuple[str, str], str] = field(default_factory=dict)
    ends: dict[tuple[PathPlan, PathPlan], tuple[str, str]] = field(default_factory=dict)
    arrivals: dict[PathPlan, str] = field(default_factory=dict)
    clashes: bool = False

    def add(self, ways: tuple[PathPlan, PathPlan]) -> None:
        """The two nodes of a flow; flows with the same ways share them."""
        if ways not in self.ends:
            self._join(ways, f"src{len(self.ends)}", f"dst{len(self.ends)}")

    def add_routed(self, ways: tuple[PathPlan, PathPlan]) -> None:
        """The two nodes of a routed flow: all that come by one way end at one node."""
        if ways not in self.ends:
            there, back = (self.arrivals.setdefault(way, f"end{len(self.arrivals)}") for way in ways)
            self._join(ways, back, there)

    def _join(self, ways: tuple[PathPlan, PathPlan], source: str, sink: str) -> None:
        self.ends[ways] = source, sink
        self._way(ways[0], source, sink)
        self._way(ways[1], sink, source)

    def _way(self, path: PathPlan, source: str, sink: str) -> None:
        at = source
        for hop in path.hops:
            self._step(at, f"in{hop.link}", hop.delay_s, sink)
            self._lead(f"in{hop.link}", f"out{hop.link}", sink)
            at = f"out{hop.link}"
        self._step(at, sink, path.delay_s, sink)

    def _step(self, here: str, there: str, delay_s: float, sink: str) -> None:
        self.clashes |= self.delays.setdefault((here, there), delay_s) != delay_s
        self._lead(here, there, sink)

    def _lead(self, here: str, there: str, sink: str) -> None:
        self.nodes |= {here: None, there: None}
        self.clashes |= self.routes.setdefault((here, sink), there) != there


def _net(plan: Plan, sent: PlannedTraffic | None = None) -> _Net:
    """Return the network of a plan's paths, with the paths of routed flows."""
    net = _Net()
    for ways in planned_traffic.ways(plan):
        net.add(ways)
    if sent:
        both: list[Connection | Stream] = [*sent.connections, *sent.streams]
        for each in both:
            if each.ends:
                net.add_routed((each.forward, each.reverse))
    return net


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's paths and flows that a script cannot express."""
    yield from unsupported_routes(plan)
    yield from unsupported_sizes(plan)
    yield from planned_traffic.unsupported(plan)


def unsupported_routes(plan: Plan) -> Iterator[str]:
    """Yield unsupported paths."""
    if _net(plan).clashes:
        yield "different delays between the same two queues"


def unsupported_sizes(plan: Plan) -> Iterator[str]:
    """Yield unsupported flow sizes: in ns-2 last segments are as long as all others."""
    if any(flow.size_bytes is not None and flow.size_bytes % agents.mss_bytes(plan, flow.group) for flow in plan.flows):
        yield "transfers that are no whole number of segments"


def tcl(plan: Plan, seed: int) -> str:
    """The script of one run. The plan must be one that `unsupported` finds nothing in."""
    sent = planned_traffic.draw_traffic(plan, seed)
    net = _net(plan, sent)
    lines = [*_head(plan, seed, sent), *_links(plan, net), *_senders(plan), *traffic.lines(plan, sent, net.ends)]
    return "\n".join([*lines, TAIL]) + "\n"


def _head(plan: Plan, seed: int, sent: PlannedTraffic) -> Iterator[str]:
    yield f"# {one_line(plan.name)}: for ns-2 2.35, seed {seed}."
    yield f"set duration_s {plan.duration_s:g}"
    yield f"set warmup_s {plan.warmup_s:g}"
    yield f"set interval_s {plan.record.interval_s:g}"
    yield ""
    yield "remove-all-packet-headers"
    yield "add-packet-header IP TCP Flags" + " RTP" * bool(sent.streams)
    yield "set ns [new Simulator]"
    yield f"ns-random {seed % (2**31 - 1) + 1}"
    yield "# Packets take the ways that are written below."
    yield "$ns rtproto Manual"


def _links(plan: Plan, net: _Net) -> Iterator[str]:
    yield "\n# The nodes: src and dst are hosts, in and out the two ends of a link that queues."
    yield f"foreach name {{{' '.join(net.nodes)}}} {{ set $name [$ns node] }}"
    yield from _all_queueing(plan, net)
    yield from _ways(net)


def _all_queueing(plan: Plan, net: _Net) -> Iterator[str]:
    used = sorted({hop.link for ways in net.ends for way in ways for hop in way.hops})
    yield "\n# The links that queue: the numbers are the plan's."
    yield f"set links {{{' '.join(map(str, used))}}}"
    for number in used:
        yield from _queueing(plan, number)
    yield WATCHED
    yield from links.impairments(plan, used)


def _ways(net: _Net) -> Iterator[str]:
    yield DELAYS
    yield from (f"delay ${here} ${there} {delay_s:.12g}" for (here, there), delay_s in net.delays.items())
    yield WAYS
    yield from (f"way ${here} ${sink} ${there}" for (here, sink), there in net.routes.items())


def _queueing(plan: Plan, number: int) -> Iterator[str]:
    link, ends = plan.links[number], f"$in{number} $out{number}"
    yield f"# {one_line(link.name)}"
    yield f"$ns simplex-link {ends} {link.rate_bps:.17g} {link.delay_s:.12g}s {links.kind(link)}"
    for name, value in links.settings(link, plan.packet_bytes).items():
        yield f"[[$ns link {ends}] queue] set {name} {value}"


def _senders(plan: Plan) -> Iterator[str]:
    for number, group in enumerate(plan.groups):
        if group.tcp is not None:
            yield from _of_group(number, group.name, agents.agents(group, plan.links[0].frame_overhead_bytes))


def _of_group(number: int, label: str, of: Agents) -> Iterator[str]:
    yield f"\n# The agents of {one_line(label)}."
    yield from _procedure(f"sender{number} {{flow}}", ["    global ns"], of.sender, _sender(of))
    yield from _procedure(f"sink{number} {{}}", [], of.sink, _set(of.sink_variables))


def _procedure(name: str, begin: Iterable[str], kind: str, lines: Iterable[str]) -> Iterator[str]:
    """One that makes an agent."""
    yield from (f"proc {name} {{", *begin, f"    set agent [new {kind}]")
    yield from lines
    yield from ("    return $agent", "}")


def _sender(of: Agents) -> Iterator[str]:
    yield "    $agent set fid_ $flow"
    yield from _set(of.variables)
    if of.control:
        yield f'    $ns at [$ns now] "$agent select_ca {of.control}{_parameter_commands(of)}"'


def _set(variables: Mapping[str, str]) -> Iterator[str]:
    return (f"    $agent set {name} {value}" for name, value in variables.items())


def _parameter_commands(of: Agents) -> str:
    """The parameters of a control."""
    return "".join(f"; $agent set_ca_param {of.control} {name} {value}" for name, value in of.parameters.items())


#: Queue of a hop that only delays: a link so fast that nothing waits for it.
DELAYS = f"""
# What only delays.
proc delay {{from to delay_s}} {{
    global ns
    $ns simplex-link $from $to {FAST_BPS} ${{delay_s}}s DropTail
    $ns queue-limit $from $to {LONG_P}
}}"""

WAYS = """
# The ways: at a node, to a host, over the next node.
proc way {at to over} {
    global ns
    $at add-route [$to id] [[$ns link $at $over] head]
}"""

#: Each queue is watched: a monitor counts, a trace writes dropped packets.
WATCHED = """
# Dropped packets are written by ns-2's trace.
set drops [open drops w]
foreach link $links {
    set from [set in$link]
    set to [set out$link]
    set monitor($link) [$ns monitor-queue $from $to [open /dev/null w] 1e9]
    $monitor($link) set-pkts-integrator [new Integrator]
    $monitor($link) set-bytes-integrator [new Integrator]
    set wire [$ns link $from $to]
    set trace [$ns create-trace Drop $drops $from $to]
    $trace target [[$wire set drophead_] target]
    [$wire set drophead_] target $trace
    puts $drops "link $link [$from id] [$to id]"
}"""

#: Script that records the results. Numbers are printed by Tcl and read back unchanged.
TAIL = """
# What is written down: dropped packets by ns-2's trace, the rest as lines of our own.
set samples [open samples w]
set flows [open flows w]
set totals [open links w]

proc sample {} {
    global ns samples begun senders links monitor interval_s
    set now [$ns now]
    foreach number $begun {
        set agent $senders($number)
        puts $samples "f $now $number [$agent set cwnd_] [$agent set ssthresh_] [expr [$agent set srtt_] / 8.0 * \\
            [$agent set tcpTick_]] [expr [$agent set t_seqno_] - [$agent set ack_] - 1] [$agent set ack_]"
    }
    foreach link $links {
        set queue $monitor($link)
        puts $samples "q $now $link [$queue set pkts_] [$queue set size_] [$queue set pdepartures_] \\
            [$queue set pdrops_] [$queue set bdepartures_]"
    }
    $ns at [expr $now + $interval_s] sample
}

proc count {word} {
    global ns flows totals senders receivers links monitor
    foreach number [lsort -integer [array names senders]] {
        set agent $senders($number)
        puts $flows "$word $number [$ns now] [$agent set ack_] [$agent set ndatapack_] [$agent set nrexmitpack_] \\
            [$agent set nrexmit_] [$agent set ncwndcuts_]"
    }
    foreach number [lsort -integer [array names receivers]] {
        set agent $receivers($number)
        puts $flows "udp-$word $number [$ns now] [$agent set npkts_]"
    }
    foreach link $links {
        set queue $monitor($link)
        puts $totals "$word $link [$ns now] [$queue set parrivals_] [$queue set pdrops_] [$queue set pdepartures_] \\
            [$queue set bdepartures_] [until_now [$queue get-pkts-integrator]] \\
            [until_now [$queue get-bytes-integrator]] [$queue set pmarks_]"
    }
}

proc until_now {integrator} {
    global ns
    $integrator newpoint [$ns now] [$integrator set lasty_]
    return [$integrator set sum_]
}

proc finish {} {
    global samples flows totals drops cuts
    count end
    foreach file [list $samples $flows $totals $drops $cuts] { close $file }
    exit 0
}

$ns at 0 sample
$ns at $warmup_s "count warm"
$ns at $duration_s finish
$ns run"""
