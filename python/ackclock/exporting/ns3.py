"""A simulation for ns-3.37 in C++: one `main`, the network with helpers, samples as `flows.tr` and `queues.tr`.

Each plan's queue is the queue discipline of a point-to-point device, whose own queue holds one packet; hops that only
delay have 100 Gb/s. Sources: the model library's chapters on TCP and on queue discs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines import features
from ackclock.exporting.script import (
    Script,
    UnsaidError,
    comments,
    heading,
    jitter_notes,
    label,
    needs,
    unusual,
    written,
)
from ackclock.input.names import one_line
from ackclock.plan import FlowPlan, LinkPlan, Plan, TcpPlan

#: Congestion controls, and the classes of ns-3.
CONTROLS = {
    "reno": "TcpLinuxReno", "cubic": "TcpCubic", "bic": "TcpBic", "htcp": "TcpHtcp", "highspeed": "TcpHighSpeed",
    "scalable": "TcpScalable", "vegas": "TcpVegas", "veno": "TcpVeno", "westwood": "TcpWestwood", "yeah": "TcpYeah",
    "hybla": "TcpHybla", "lp": "TcpLp", "illinois": "TcpIllinois", "bbr": "TcpBbr",
}  # fmt: skip

#: Disciplines, and the classes of ns-3.
QUEUES = {
    "pfifo": "FifoQueueDisc", "bfifo": "FifoQueueDisc", "red": "RedQueueDisc", "codel": "CoDelQueueDisc",
    "fq_codel": "FqCoDelQueueDisc", "pie": "PieQueueDisc",
}  # fmt: skip

HAS = frozenset(
    {
        features.FINITE, features.STOPS, features.STARTS, features.PACKET_LOG, features.CAPTURES,
        *map(features.congestion, CONTROLS), *map(features.queue, QUEUES),
    }
)  # fmt: skip

#: What a point-to-point device puts before a packet.
PPP_BYTES = 2


def write(plan: Plan) -> Script:
    """The program. Raises `UnsaidError` for what ns-3 has not, or this program cannot be told."""
    needs(plan, "ns-3", HAS)
    if lacking := list(_lacking(plan)):
        raise UnsaidError("ns-3", lacking)
    notes = tuple(_notes(plan))
    about = comments(heading(plan, SENTENCES, notes), "//")
    return written([*about, *_head(plan), *_network(plan), *_flows(plan), *_end(plan)], notes)


#: What is linked with it, and how.
LIBRARIES = ("core", "network", "internet", "applications", "point-to-point", "traffic-control")
SENTENCES = (
    "With Debian's libns3-dev, this makes a program of it, which leaves flows.tr and queues.tr:",
    f"    g++ -std=c++17 -O2 FILE {' '.join(f'-lns3-{name}' for name in LIBRARIES)}",
)


def _tcp(plan: Plan) -> TcpPlan:
    """The one that all groups have."""
    return next(group.tcp for group in plan.groups if group.tcp)


def _lacking(plan: Plan) -> Iterator[str]:
    yield from unusual(plan)
    if len(plan.links) > 1:
        yield "more queues than the bottleneck's"


def _notes(plan: Plan) -> Iterator[str]:
    yield from jitter_notes(plan)
    yield from _link_notes(plan.bottleneck_link)
    yield "RACK-TLP: ns-3 finds losses by duplicate ACKs and SACK"
    yield from _parameter_notes(plan)
    if plan.record.packets or plan.record.pcap:
        yield "captures: PointToPointHelper::EnablePcapAll does that"


def _link_notes(link: LinkPlan) -> Iterator[str]:
    if link.frame_overhead_bytes != PPP_BYTES:
        found = f"frames with {link.frame_overhead_bytes} bytes around a packet"
        yield f"{found}: ns-3's point-to-point links have {PPP_BYTES}"


def _parameter_notes(plan: Plan) -> Iterator[str]:
    tuned = [group for group in plan.groups if group.congestion and group.congestion.parameters]
    yield from (f"parameters of {one_line(group.label)}: they are those of ns-3" for group in tuned)
    if len(plan.bottleneck_link.queue.parameters) > 1:
        yield f"parameters of {plan.bottleneck_link.queue.discipline} but its limit: they are those of ns-3"


def _head(plan: Plan) -> Iterator[str]:
    yield from (f'#include "ns3/{name}-module.h"' for name in sorted(LIBRARIES))
    yield from _DECLARATIONS.splitlines()
    yield from _set_defaults(_tcp(plan))
    yield from _HELPERS.splitlines()
    yield from _MAIN.replace("FLOWS", str(len(plan.flows))).splitlines()


def _set_defaults(tcp: TcpPlan) -> Iterator[str]:
    yield "static void Defaults()"
    yield "{"
    yield from (f'    Config::SetDefault("ns3::{name}", {value});' for name, value in _defaults(tcp))
    yield "}"


def _defaults(tcp: TcpPlan) -> Iterator[tuple[str, str]]:
    buffer = tcp.receive_window_bytes or 256 << 20
    yield "TcpSocketBase::Sack", f"BooleanValue({str(tcp.sack).lower()})"
    yield "TcpSocketBase::Timestamp", f"BooleanValue({str(tcp.timestamps).lower()})"
    yield "TcpSocketBase::MinRto", f"TimeValue(Seconds({tcp.min_rto_s:.12g}))"
    yield "TcpSocket::DelAckCount", f"UintegerValue({1 if tcp.delayed_ack == 'off' else 2})"
    yield "TcpSocket::DelAckTimeout", f"TimeValue(Seconds({tcp.delayed_ack_timeout_s:.12g}))"
    yield "TcpSocket::InitialCwnd", f"UintegerValue({tcp.initial_window})"
    yield "TcpSocket::SegmentSize", f"UintegerValue({tcp.mss_bytes})"
    yield "TcpSocket::SndBufSize", "UintegerValue(64 << 20)"
    yield "TcpSocket::RcvBufSize", f"UintegerValue({min(buffer, 64 << 20)})"


_DECLARATIONS = """\
#include <fstream>
#include <map>

using namespace ns3;

static std::ofstream flows("flows.tr"), queues("queues.tr");
static std::map<uint32_t, double> cwnd, ssthresh, srtt;

"""

#: How the program begins: FLOWS is their number.
_MAIN = """
int main()
{
    Defaults();
    flows << "time_s flow cwnd ssthresh srtt_s\\n";
    queues << "time_s link backlog_p backlog_bytes arrived_p departed_p dropped_p\\n";
    NodeContainer routers(2);
    NodeContainer senders(FLOWS), receivers(FLOWS);
    InternetStackHelper stack;
    stack.InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");"""

#: What the network is made with, and what is sampled.
_HELPERS = """
// A link whose device holds one packet; where nothing can queue, it has room for all.
static NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, double rateBps, double delayS, const char* room)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rateBps))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delayS)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(room));
    return link.Install(a, b);
}

static void Hop(Ptr<Node> a, Ptr<Node> b, double delayS, Ipv4AddressHelper& addresses)
{
    NetDeviceContainer devices = Connect(a, b, 100e9, delayS, "1000000p");
    addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    addresses.NewNetwork();
}

static void Watch(Ptr<BulkSendApplication> application, uint32_t flow)
{
    Ptr<Socket> socket = application->GetSocket();
    Ptr<TcpSocketBase> tcp = DynamicCast<TcpSocketBase>(socket);
    if (!tcp) return;
    tcp->TraceConnectWithoutContext("CongestionWindow", Callback<void, uint32_t, uint32_t>(
        [flow](uint32_t, uint32_t bytes) { cwnd[flow] = bytes; }));
    tcp->TraceConnectWithoutContext("SlowStartThreshold", Callback<void, uint32_t, uint32_t>(
        [flow](uint32_t, uint32_t bytes) { ssthresh[flow] = bytes; }));
    tcp->TraceConnectWithoutContext("RTT", Callback<void, Time, Time>(
        [flow](Time, Time rtt) { srtt[flow] = rtt.GetSeconds(); }));
}

static void Sample(Ptr<QueueDisc> queue, uint32_t count, double segment, double interval)
{
    const double now = Simulator::Now().GetSeconds();
    for (uint32_t flow = 0; flow < count; ++flow)
        flows << now << ' ' << flow << ' ' << cwnd[flow] / segment << ' ' << ssthresh[flow] / segment << ' '
              << srtt[flow] << '\\n';
    const QueueDisc::Stats& stats = queue->GetStats();
    queues << now << " 0 " << queue->GetNPackets() << ' ' << queue->GetNBytes() << ' '
           << stats.nTotalReceivedPackets << ' ' << stats.nTotalDequeuedPackets << ' '
           << stats.nTotalDroppedPackets << '\\n';
    Simulator::Schedule(Seconds(interval), &Sample, queue, count, segment, interval);
}"""


def _network(plan: Plan) -> Iterator[str]:
    link = plan.bottleneck_link
    yield ""
    yield f"    // {one_line(link.name)}"
    yield (
        f"    NetDeviceContainer bottleneck = Connect(routers.Get(0), routers.Get(1), {link.rate_bps:.0f}, "
        f'{link.delay_s:.12g}, "1p");'
    )
    yield "    TrafficControlHelper control;"
    yield f'    control.SetRootQueueDisc("ns3::{QUEUES[link.queue.discipline]}", "MaxSize", {_size(link)});'
    yield "    QueueDiscContainer installed = control.Install(bottleneck.Get(0));"
    yield "    addresses.Assign(bottleneck);"
    yield "    addresses.NewNetwork();"


def _size(link: LinkPlan) -> str:
    given = link.queue.parameters
    limit = f"{given['limit_bytes']}B" if "limit_bytes" in given else f"{given['limit_packets']}p"
    return f'StringValue("{limit}")'


def _flows(plan: Plan) -> Iterator[str]:
    for number, flow in enumerate(plan.flows):
        yield ""
        yield f"    // Flow {number}: {label(plan, flow)}, base RTT {1e3 * flow.base_rtt_s:.12g} ms"
        yield from _hops(plan, flow, number)
        yield from _transfer(plan, flow, number)


def _hops(plan: Plan, flow: FlowPlan, number: int) -> Iterator[str]:
    """The way back has the delay that it has: in ns-3 a cable has one for both directions, so it is halved."""
    one_way_s = max((flow.base_rtt_s - 2 * plan.bottleneck_link.delay_s) / 4, 0)
    yield f"    Hop(senders.Get({number}), routers.Get(0), {one_way_s:.12g}, addresses);"
    yield f"    Hop(routers.Get(1), receivers.Get({number}), {one_way_s:.12g}, addresses);"


def _transfer(plan: Plan, flow: FlowPlan, number: int) -> Iterator[str]:
    """A block of its own, for its names."""
    yield "    {"
    yield from (f"        {line}" for line in _ends(plan, flow, number))
    yield from _times(flow, number)
    yield "    }"


def _ends(plan: Plan, flow: FlowPlan, number: int) -> Iterator[str]:
    yield from _control(plan, flow, number)
    yield from _sink(number)
    yield 'BulkSendHelper bulk("ns3::TcpSocketFactory", address);'
    yield f'bulk.SetAttribute("SendSize", UintegerValue({_tcp(plan).mss_bytes}));'


def _control(plan: Plan, flow: FlowPlan, number: int) -> Iterator[str]:
    congestion = plan.groups[flow.group].congestion
    assert congestion is not None
    yield f"TypeId kind = {CONTROLS[congestion.kind]}::GetTypeId();"
    place = f'"/NodeList/" + std::to_string(senders.Get({number})->GetId()) + "/$ns3::TcpL4Protocol/SocketType"'
    yield f"Config::Set({place}, TypeIdValue(kind));"


def _sink(number: int) -> Iterator[str]:
    yield 'PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));'
    yield f"sink.Install(receivers.Get({number}));"
    yield f"Ptr<Ipv4> far = receivers.Get({number})->GetObject<Ipv4>();"
    yield "InetSocketAddress address(far->GetAddress(1, 0).GetLocal(), 5000);"


def _times(flow: FlowPlan, number: int) -> Iterator[str]:
    if flow.size_bytes is not None:
        yield f'        bulk.SetAttribute("MaxBytes", UintegerValue({flow.size_bytes}));'
    yield f"        ApplicationContainer sender = bulk.Install(senders.Get({number}));"
    yield f"        sender.Start(Seconds({flow.start_s:.12g}));"
    if flow.stop_s is not None:
        yield f"        sender.Stop(Seconds({flow.stop_s:.12g}));"
    yield (
        f"        Simulator::Schedule(Seconds({flow.start_s:.12g} + 1e-6), &Watch, "
        f"DynamicCast<BulkSendApplication>(sender.Get(0)), {number});"
    )


def _end(plan: Plan) -> Iterator[str]:
    tcp = _tcp(plan)
    interval_s = plan.record.interval_s
    yield ""
    yield "    Ipv4GlobalRoutingHelper::PopulateRoutingTables();"
    yield (
        f"    Simulator::Schedule(Seconds({interval_s:.12g}), &Sample, installed.Get(0), {len(plan.flows)}u, "
        f"{tcp.mss_bytes}.0, {interval_s:.12g});"
    )
    yield f"    Simulator::Stop(Seconds({plan.duration_s:.12g}));"
    yield "    Simulator::Run();"
    yield "    Simulator::Destroy();"
    yield "    return 0;"
    yield "}"
