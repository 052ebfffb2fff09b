"""A plan as a script of ns-2: what a person would write, and what `ackclock.engines.external` reads afterwards.

The script writes into the folder it runs in: `samples` (a line for each flow and each link at each instant), `drops`
(ns-2's own trace lines, of dropped packets only), `flows` and `links` (the counts at the warm-up's end and at the end).
Each pair of ways has nodes of its own at both ends, and each link that queues two; packets follow routes that are
written down, since ns-2's own would take the way of fewest links. Connections, generated transfers and UDP sources are
a line each.

In a network of hosts and switches the ways are those that the packet engine's switches choose, and a host has a node
for each way that leads to it: a route of ns-2 asks for the destination alone, so flows of one pair that are hashed to
different ways need different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ackclock.engines.external import planned_traffic
from ackclock.engines.external.planned_traffic import Connection, Gate, PlannedTraffic, Stream
from ackclock.engines.ns2 import settings
from ackclock.engines.ns2.settings import Agents
from ackclock.input.fields import one_line
from ackclock.plan import PathPlan, Plan

#: The two nodes of each pair of ways.
Ends: TypeAlias = Mapping[tuple[PathPlan, PathPlan], tuple[str, str]]

FLOW = """
# A flow: its agents, which data it sends, from when on. `packets` below 0 is without end. Where it cuts its window
# is traced.
set cuts [open cuts w]
proc flow {number group from to start_s stop_s packets} {
    global ns senders cuts
    set senders($number) [sender$group $number]
    set sink [sink$group]
    $ns attach-agent $from $senders($number)
    $ns attach-agent $to $sink
    $ns connect $senders($number) $sink
    puts $cuts "agent $number [$from id] [$senders($number) set agent_port_]"
    $senders($number) attach $cuts
    foreach name {ncwndcuts_ nrexmit_} { $senders($number) trace $name }
    set data [new Application/FTP]
    $data attach-agent $senders($number)
    if {$packets < 0} { set send "$data start" } else { set send "$senders($number) advance $packets" }
    $ns at $start_s "begin $number; $send"
    if {$stop_s >= 0} { $ns at $stop_s "$data stop" }
}

set flows [open flows w]
set begun {}

proc begin {number} {
    global begun sampled flows ns
    if {$number < $sampled} { lappend begun $number }
    puts $flows "begin $number [$ns now]"
}

Agent/TCP instproc done {} {
    global flows ns
    set number [$self set fid_]
    puts $flows "done $number [$ns now]"
    completed $number
}"""

NO_GATES = """
proc completed {number} {}"""

TRANSFER = """
# A transfer: agents of its own, made when it begins.
proc transfer {number group from to start_s packets} {
    global ns
    $ns at $start_s "flow $number $group $from $to $start_s -1 $packets"
}"""

GATES = """
# A gate opens so long after the last of so many transfers is over, unless that is too late. It begins others.
proc gate {gate awaits delay_s stop_s} {
    global awaited delays stops waiting
    set awaited($gate) $awaits
    set delays($gate) $delay_s
    set stops($gate) $stop_s
    set waiting($gate) {}
}

proc completed {number} {
    global ns gates awaited delays stops waiting
    if {![info exists gates($number)]} return
    set gate $gates($number)
    set opens_s [expr [$ns now] + $delays($gate)]
    if {[incr awaited($gate) -1] == 0 && $opens_s < $stops($gate)} {
        foreach {number group from to packets} $waiting($gate) {
            transfer $number $group $from $to $opens_s $packets
        }
    }
}
"""

STREAM = """
# A UDP source: datagrams of so many bytes at a rate, from each first instant to the second one behind it.
proc stream {number from to bytes per_s periods} {
    global ns receivers
    set udp [new Agent/UDP]
    $udp set fid_ $number
    $udp set packetSize_ $bytes
    set receivers($number) [new Agent/LossMonitor]
    $ns attach-agent $from $udp
    $ns attach-agent $to $receivers($number)
    $ns connect $udp $receivers($number)
    set data [new Application/Traffic/CBR]
    $data set packetSize_ $bytes
    $data set rate_ [expr 8.0 * $bytes * $per_s]
    $data attach-agent $udp
    foreach {start_s stop_s} $periods {
        $ns at $start_s "$data start"
        $ns at $stop_s "$data stop"
    }
}"""


def traffic_lines(plan: Plan, sent: PlannedTraffic, ends: Ends) -> Iterator[str]:
    """All of it."""
    flows = [each for each in sent.connections if not each.generated]
    transfers = [each for each in sent.connections if each.generated]
    yield f"\nset sampled {len(plan.flows) if not plan.record.traffic else 1 << 31}"
    yield FLOW
    yield from _gates(sent.gates) if sent.gates else [NO_GATES]
    yield from _all("The flows.", [_flow(plan, flow, ends) for flow in flows])
    yield from _all(TRANSFER, [_transfer(plan, transfer, ends) for transfer in transfers])
    yield from _all(STREAM, [_stream(plan, stream, ends) for stream in sent.streams])


def _all(about: str, each: Iterable[str]) -> Iterator[str]:
    if rows := [*each]:
        yield about if about.startswith("\n") else f"\n# {about}"
        yield from rows


def _gates(gates: Iterable[Gate]) -> Iterator[str]:
    yield GATES
    for number, gate in enumerate(gates):
        yield f"gate {number} {gate.awaits} {gate.delay_s:.12g} {gate.stop_s:.12g}"


def _flow(plan: Plan, flow: Connection, ends: Ends) -> str:
    stop_s = -1 if flow.stop_s is None else flow.stop_s
    return f"flow {flow.number} {flow.group} {_ends(flow, ends)} {flow.start_s:.12g} {stop_s:g} {_packets(plan, flow)}"


def _transfer(plan: Plan, transfer: Connection, ends: Ends) -> str:
    """Its row; of one that waits, a row of its gate. A gate's name follows that of the transfer that it counts."""
    begin = f"{transfer.number} {transfer.group} {_ends(transfer, ends)}"
    packets = _packets(plan, transfer)
    counted = "" if transfer.completes is None else f"set gates({transfer.number}) {transfer.completes}; "
    if transfer.waits is not None:
        return f"{counted}lappend waiting({transfer.waits}) {begin} {packets}"
    return f"{counted}transfer {begin} {transfer.start_s:.12g} {packets}"


def _stream(plan: Plan, stream: Stream, ends: Ends) -> str:
    size = stream.packet_bytes + plan.links[0].frame_overhead_bytes
    periods = " ".join(f"{first:.12g} {last:.12g}" for first, last in stream.periods)
    return f"stream {stream.number} {_ends(stream, ends)} {size} {stream.per_s:.12g} {{{periods}}}"


def _ends(each: Connection | Stream, ends: Ends) -> str:
    source, sink = ends[each.forward, each.reverse]
    return f"${source} ${sink}"


def _packets(plan: Plan, flow: Connection) -> int:
    """Return the number of packets of a flow; the last one is as long as all others."""
    return -1 if flow.size_bytes is None else -(-flow.size_bytes // settings.mss_bytes(plan, flow.group))


#: The rate of links that only delay, in bit/s: a packet of 1500 B takes 1.2 ns.
FAST_BPS = 10_000_000_000_000

#: Packets that only a delay holds.
LONG_P = 100_000_000

#: Half of what a monitor's byte counter of 32 bits holds, in bits.
WRAP_BITS = 8 * 2**31


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
    if any(
        flow.size_bytes is not None and flow.size_bytes % settings.mss_bytes(plan, flow.group) for flow in plan.flows
    ):
        yield "transfers that are no whole number of segments"


def tcl(plan: Plan, seed: int) -> str:
    """The script of one run. The plan must be one that `unsupported` finds nothing in."""
    sent = planned_traffic.draw_traffic(plan, seed)
    net = _net(plan, sent)
    lines = [
        *_head(plan, seed, sent),
        *_links(plan, net),
        *_senders(plan),
        *traffic_lines(plan, sent, net.ends),
    ]
    return "\n".join([*lines, TAIL]) + "\n"


def _head(plan: Plan, seed: int, sent: PlannedTraffic) -> Iterator[str]:
    yield f"# {one_line(plan.name)}: for ns-2 2.35, seed {seed}."
    yield f"set duration_s {plan.duration_s:g}"
    yield f"set warmup_s {plan.warmup_s:g}"
    yield f"set interval_s {plan.record.interval_s:g}"
    changed_bps = [change.rate_bps for change in plan.changes if change.rate_bps is not None]
    fastest_bps = max([*(link.rate_bps for link in plan.links), *changed_bps])
    yield f"set wrap_s {WRAP_BITS / fastest_bps:g}"
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
    yield from settings.impairments(plan, used)


def _ways(net: _Net) -> Iterator[str]:
    yield DELAYS
    yield from (f"delay ${here} ${there} {delay_s:.12g}" for (here, there), delay_s in net.delays.items())
    yield WAYS
    yield from (f"way ${here} ${sink} ${there}" for (here, sink), there in net.routes.items())


def _queueing(plan: Plan, number: int) -> Iterator[str]:
    link, ends = plan.links[number], f"$in{number} $out{number}"
    yield f"# {one_line(link.name)}"
    yield f"$ns simplex-link {ends} {link.rate_bps:.17g} {link.delay_s:.12g}s {settings.kind(link)}"
    for name, value in settings.settings(link, plan.packet_bytes).items():
        yield f"[[$ns link {ends}] queue] set {name} {value}"


def _senders(plan: Plan) -> Iterator[str]:
    for number, group in enumerate(plan.groups):
        if group.tcp is not None:
            yield from _of_group(number, group.name, settings.agents(group, plan.links[0].frame_overhead_bytes))


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

# The monitor counts bytes in 32 bits: it is read before it can have come round.
foreach link $links {
    set departed($link) 0
    set counted($link) 0
}

proc departed_bytes {link} {
    global monitor departed counted
    set counter [$monitor($link) set bdepartures_]
    incr departed($link) [expr {($counter - $counted($link)) & 0xffffffff}]
    set counted($link) $counter
    return $departed($link)
}

proc unwrap {} {
    global ns links wrap_s
    foreach link $links { departed_bytes $link }
    $ns at [expr [$ns now] + $wrap_s] unwrap
}

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
            [$queue set pdrops_] [departed_bytes $link]"
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
            [departed_bytes $link] [until_now [$queue get-pkts-integrator]] \\
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

$ns at 0 unwrap
$ns at 0 sample
$ns at $warmup_s "count warm"
$ns at $duration_s finish
$ns run"""
