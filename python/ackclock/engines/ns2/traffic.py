"""A plan's traffic in ns-2's words: connections, generated transfers, UDP sources, each a line of the script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from ackclock.engines.external.planned_traffic import Connection, Gate, PlannedTraffic, Stream
from ackclock.engines.ns2 import agents
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


def lines(plan: Plan, sent: PlannedTraffic, ends: Ends) -> Iterator[str]:
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
    return -1 if flow.size_bytes is None else -(-flow.size_bytes // agents.mss_bytes(plan, flow.group))
