"""A simulation for ns-2.35 in Tcl: `Agent/TCP/Linux` with the kernel's congestion controls, drop-tail and RED queues.

ns-2 sends segments of one size and has no handshake in these agents; its queues count a packet in transmission as one
that has left, as ours do. A path is links between nodes of its own, since ns-2 routes by destination: the queues of the
plan, and hops of 100 Gb/s that only delay. "The ns Manual" (K. Fall, K. Varadhan) has chapters on queues and on TCP.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines import features, red
from ackclock.exporting.script import (
    Script,
    UnsaidError,
    comments,
    heading,
    jitter_notes,
    label,
    needs,
    one_line,
    unusual,
)
from ackclock.plan import HEADER_BYTES, TIMESTAMPS_BYTES, DatagramPlan, FlowPlan, LinkPlan, Parameters, Plan, TcpPlan

#: What `select_ca` of Agent/TCP/Linux in 2.35 knows.
CONTROLS = (
    *("bic", "compound", "cubic", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "reno", "scalable", "vegas", "veno", "westwood", "yeah"),
)

#: Disciplines, and the class of ns-2.
QUEUES = {"pfifo": "DropTail", "bfifo": "DropTail", "red": "RED"}

HAS = frozenset(
    {
        features.FINITE, features.STOPS, features.STARTS, features.UDP, features.SEVERAL_LINKS,
        features.PACKET_LOG, features.CAPTURES,
        *map(features.congestion, CONTROLS), *map(features.queue, QUEUES),
    }
)  # fmt: skip

#: What a hop that only delays has for a rate: no packet waits there.
HOP = "100Gb"


def write(plan: Plan) -> Script:
    """The script. Raises `UnsaidError` for what ns-2 has not."""
    needs(plan, "ns-2", HAS)
    if lacking := list(_lacking(plan)):
        raise UnsaidError("ns-2", lacking)
    notes = tuple(_notes(plan))
    about = heading(
        plan,
        [
            "ns FILE runs it (Debian: ns2). It leaves flows.tr and queues.tr here: a line for each flow, or queue,",
            f"each {plan.record.interval_s:.12g} s; their first lines say what the columns are.",
        ],
        notes,
    )
    tcp = next((group.tcp for group in plan.groups if group.tcp), None)
    lines = [
        *comments(about),
        "",
        "set ns [new Simulator]",
        *(_defaults(tcp, plan.links[plan.bottleneck].frame_overhead_bytes) if tcp else ()),
        *_links(plan),
        *(line for number, flow in enumerate(plan.flows) for line in _flow(plan, number, flow)),
        *(line for number, source in enumerate(plan.datagrams) for line in _datagrams(plan, number, source)),
        *_samples(plan),
    ]
    return Script("\n".join(lines) + "\n", notes)


def _lacking(plan: Plan) -> Iterator[str]:
    yield from unusual(plan)
    if any(source.source["kind"] != "constant" for source in plan.datagrams):
        yield "UDP but at a constant rate"


def _notes(plan: Plan) -> Iterator[str]:
    yield from jitter_notes(plan)
    yield "the handshake, and the last exchange: connections are open at once"
    yield "RACK-TLP and PRR: ns-2's Linux agent recovers by SACK as Linux 2.6 did"
    for group in plan.groups:
        if group.congestion and group.congestion.parameters:
            yield f"parameters of {one_line(group.label)}: they are those of the kernel's code in ns-2"
    if plan.record.packets or plan.record.pcap:
        yield "a log of packets: $ns trace-all does that"


def _defaults(tcp: TcpPlan, overhead_bytes: int) -> Iterator[str]:
    window = 1_000_000 if tcp.receive_window_bytes is None else max(1, tcp.receive_window_bytes // tcp.mss_bytes)
    yield ""
    yield "# TCP: sizes are those on the wire, a frame's header among them."
    yield f"Agent/TCP set packetSize_ {tcp.mss_bytes}"
    yield f"Agent/TCP set tcpip_base_hdr_size_ {HEADER_BYTES + overhead_bytes}"
    yield f"Agent/TCP set ts_option_size_ {TIMESTAMPS_BYTES}"
    yield f"Agent/TCP set timestamps_ {str(tcp.timestamps).lower()}"
    yield f"Agent/TCP set window_ {window}"
    yield "Agent/TCP set maxcwnd_ 0"
    yield f"Agent/TCP set windowInit_ {tcp.initial_window}"
    yield f"Agent/TCP set minrto_ {tcp.min_rto_s:.12g}"
    yield f"Agent/TCP set singledup_ {int(tcp.limited_transmit)}"
    yield "Agent/TCPSink set ts_echo_rfc1323_ true"
    yield f"Agent/TCPSink/DelAck set interval_ {tcp.delayed_ack_timeout_s:.12g}"
    yield "Queue set limit_ 1000000"


def _links(plan: Plan) -> Iterator[str]:
    for number, link in enumerate(plan.links):
        kind, wire_bytes = QUEUES[link.queue.discipline], plan.packet_bytes
        yield ""
        yield f"# {one_line(link.name)}"
        yield f"set in({number}) [$ns node]"
        yield f"set out({number}) [$ns node]"
        yield f"$ns simplex-link $in({number}) $out({number}) {link.rate_bps:.0f} {link.delay_s:.12g}s {kind}"
        yield f"set queue [[$ns link $in({number}) $out({number})] queue]"
        yield from _queue(link, wire_bytes)


def _queue(link: LinkPlan, wire_bytes: int) -> Iterator[str]:
    given = link.queue.parameters
    if link.queue.discipline == "pfifo":
        yield f"$queue set limit_ {given['limit_packets']}"
        return
    yield f"$queue set limit_ {max(1, given['limit_bytes'] // wire_bytes)}"
    yield f"$queue set mean_pktsize_ {wire_bytes}"
    yield "$queue set queue_in_bytes_ true"
    if link.queue.discipline == "red":
        yield from _red(red.in_packets(given, wire_bytes))


def _red(given: Parameters) -> Iterator[str]:
    yield f"$queue set thresh_ {given['min_p']:.9g}"
    yield f"$queue set maxthresh_ {given['max_p']:.9g}"
    yield f"$queue set linterm_ {1 / given['probability']:.9g}"
    yield f"$queue set q_weight_ {given['weight']:.9g}"
    yield f"$queue set gentle_ {str(given['gentle']).lower()}"


def _ends(plan: Plan, name: str, item: FlowPlan | DatagramPlan) -> Iterator[str]:
    """A sender's and a receiver's node, and the hops between them and the queues."""
    yield f"set from({name}) [$ns node]"
    yield f"set to({name}) [$ns node]"
    for path, source, target in ((item.forward, "from", "to"), (item.reverse, "to", "from")):
        place = f"${source}({name})"
        for hop in path.hops:
            yield f"$ns simplex-link {place} $in({hop.link}) {HOP} {hop.delay_s:.12g}s DropTail"
            place = f"$out({hop.link})"
        yield f"$ns simplex-link {place} ${target}({name}) {HOP} {path.delay_s:.12g}s DropTail"


def _flow(plan: Plan, number: int, flow: FlowPlan) -> Iterator[str]:
    group = plan.groups[flow.group]
    assert group.congestion is not None and group.tcp is not None
    sink = "TCPSink/Sack1" if group.tcp.delayed_ack == "off" else "TCPSink/Sack1/DelAck"
    yield ""
    yield f"# Flow {number}: {label(plan, flow)}, base RTT {1e3 * flow.base_rtt_s:.12g} ms"
    yield from _ends(plan, str(number), flow)
    yield f"set tcp({number}) [new Agent/TCP/Linux]"
    yield f"set sink({number}) [new Agent/{sink}]"
    yield f"$ns attach-agent $from({number}) $tcp({number})"
    yield f"$ns attach-agent $to({number}) $sink({number})"
    yield f"$ns connect $tcp({number}) $sink({number})"
    yield f'$ns at 0 "$tcp({number}) select_ca {group.congestion.kind}"'
    yield f"set ftp({number}) [new Application/FTP]"
    yield f"$ftp({number}) attach-agent $tcp({number})"
    send = "start" if flow.size_bytes is None else f"send {flow.size_bytes}"
    yield f'$ns at {flow.start_s:.12g} "$ftp({number}) {send}"'
    if flow.stop_s is not None:
        yield f'$ns at {flow.stop_s:.12g} "$ftp({number}) stop"'


def _datagrams(plan: Plan, number: int, source: DatagramPlan) -> Iterator[str]:
    name, size_bytes = f"udp{number}", source.payload_bytes + source.header_bytes
    yield ""
    yield f"# UDP: {one_line(plan.groups[source.group].label)}"
    yield from _ends(plan, name, source)
    yield f"set agent({name}) [new Agent/UDP]"
    yield f"$agent({name}) set packetSize_ {size_bytes}"
    yield f"set null({name}) [new Agent/Null]"
    yield f"$ns attach-agent $from({name}) $agent({name})"
    yield f"$ns attach-agent $to({name}) $null({name})"
    yield f"$ns connect $agent({name}) $null({name})"
    yield f"set cbr({name}) [new Application/Traffic/CBR]"
    yield f"$cbr({name}) set packetSize_ {size_bytes}"
    yield f"$cbr({name}) set interval_ {1 / source.source['per_s']:.12g}"
    yield f"$cbr({name}) attach-agent $agent({name})"
    yield f'$ns at {source.start_s:.12g} "$cbr({name}) start"'
    if source.stop_s is not None:
        yield f'$ns at {source.stop_s:.12g} "$cbr({name}) stop"'


def _samples(plan: Plan) -> Iterator[str]:
    return iter(
        f"""
# Samples: windows in segments, the smoothed RTT in seconds, packets that were acknowledged; a queue's counts.
set flows [open flows.tr w]
set queues [open queues.tr w]
puts $flows "time_s flow cwnd ssthresh srtt_s acknowledged_p"
puts $queues "time_s link backlog_p backlog_bytes arrived_p departed_p dropped_p"
for {{set link 0}} {{$link < {len(plan.links)}}} {{incr link}} {{
    set monitor($link) [$ns monitor-queue $in($link) $out($link) [open /dev/null w]]
}}
proc sample {{}} {{
    global ns flows queues tcp monitor
    set now [$ns now]
    for {{set flow 0}} {{$flow < {len(plan.flows)}}} {{incr flow}} {{
        set agent $tcp($flow)
        set srtt [expr [$agent set srtt_] / 8.0 * [$agent set tcpTick_]]
        puts $flows "$now $flow [$agent set cwnd_] [$agent set ssthresh_] $srtt [expr [$agent set ack_] + 1]"
    }}
    for {{set link 0}} {{$link < {len(plan.links)}}} {{incr link}} {{
        set queue $monitor($link)
        set counts "[$queue set parrivals_] [$queue set pdepartures_] [$queue set pdrops_]"
        puts $queues "$now $link [$queue set pkts_] [$queue set size_] $counts"
    }}
    $ns at [expr $now + {plan.record.interval_s:.12g}] sample
}}
proc finish {{}} {{
    global flows queues
    close $flows
    close $queues
    exit 0
}}
$ns at {plan.record.interval_s:.12g} sample
$ns at {plan.duration_s:.12g} finish
$ns run""".splitlines()
    )
