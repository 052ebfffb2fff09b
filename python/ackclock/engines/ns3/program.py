"""A plan as a program for ns-3: what a person would write, with the flows as a table at its top.

It writes the files that `ackclock.engines.traced` reads, into the folder it runs in.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines.ns3 import settings
from ackclock.engines.traced import told
from ackclock.input.names import one_line
from ackclock.plan import FlowPlan, Plan, TcpPlan

#: What is linked with it.
LIBRARIES = ("core", "network", "internet", "applications", "point-to-point", "traffic-control")

#: What a point-to-point device puts before a packet.
PPP_BYTES = 2


def cpp(plan: Plan, seed: int) -> str:
    """The program of one run."""
    return "\n".join([*_head(plan, seed), *_flows(plan, seed), BODY, *_defaults(plan), *_queue(plan), MAIN]) + "\n"


def _tcp(plan: Plan) -> TcpPlan:
    """The one that all groups have."""
    return next(group.tcp for group in plan.groups if group.tcp)


def _head(plan: Plan, seed: int) -> Iterator[str]:
    tcp, link = _tcp(plan), plan.bottleneck_link
    yield f"// {one_line(plan.name)}: for ns-3.37, seed {seed}."
    yield from (f'#include "ns3/{name}-module.h"' for name in LIBRARIES)
    yield "#include <cmath>\n#include <fstream>\n#include <map>\n#include <vector>\n\nusing namespace ns3;\n"
    yield f"static const double duration = {plan.duration_s:.12g}, warmup = {plan.warmup_s:.12g};"
    yield f"static const double interval = {plan.record.interval_s:.12g}, segment = {tcp.mss_bytes};"
    yield f"static const uint32_t seed = {seed % (2**31)}, frame = {link.frame_overhead_bytes};"
    yield "// A packet's frame is shorter here than there: the rate is less by as much."
    full_bytes = tcp.packet_bytes + link.frame_overhead_bytes
    rate_bps = link.rate_bps * (tcp.packet_bytes + PPP_BYTES) / full_bytes
    yield f"static const double rate = {rate_bps:.12g}, delay = {link.delay_s:.12g};"


def _flows(plan: Plan, seed: int) -> Iterator[str]:
    yield "\n// The flows: when they begin and stop (below 0: never), how many bytes they send (0: without end), what"
    yield "// their ways delay, and by which control."
    yield "struct Flow { double start, stop; uint64_t bytes; double delay; const char* control; };"
    yield "static const std::vector<Flow> all = {"
    for flow, each in zip(plan.flows, told.told(plan, seed).connections, strict=False):
        yield f"    {_flow(plan, flow, each.start_s or 0.0)},"
    yield "};"


def _flow(plan: Plan, flow: FlowPlan, start_s: float) -> str:
    """Its row. A cable delays both directions; there are two, and each has a quarter of what the link has not."""
    congestion = plan.groups[flow.group].congestion
    assert congestion is not None
    stop_s = -1 if flow.stop_s is None else flow.stop_s
    delay_s = max(flow.base_rtt_s - 2 * plan.bottleneck_link.delay_s, 0.0) / 4
    control = f"ns3::{settings.CONTROLS[congestion.kind]}"
    return f'{{{start_s:.9g}, {stop_s:.9g}, {flow.size_bytes or 0}u, {delay_s:.12g}, "{control}"}}'


def _defaults(plan: Plan) -> Iterator[str]:
    yield "\nstatic void Defaults()\n{"
    found = settings.of_tcp(_tcp(plan))
    for group in plan.groups:
        found |= settings.of_control(group.congestion) if group.congestion else {}
    yield from (f'    Config::SetDefault("ns3::{name}", {value});' for name, value in found.items())
    yield "}"


def _queue(plan: Plan) -> Iterator[str]:
    link = plan.bottleneck_link
    yield "\nstatic void Discipline(TrafficControlHelper& control)\n{"
    yield f'    control.SetRootQueueDisc("ns3::{settings.QUEUES[link.queue.discipline]}"'
    attributes = settings.of_queue(link, plan.packet_bytes).items()
    yield "".join(f'        , "{name}", StringValue({value})\n' for name, value in attributes) + "    );"
    yield "}"


#: What is counted and sampled. `waiting` is the discipline and the device's own queue together.
BODY = r"""
static std::ofstream samples("samples"), drops("drops"), flows("flows"), totals("links");

struct State
{
    double cwnd = 0, ssthresh = 0, srtt = 0, flight = 0;
    uint64_t sent = 0, resent = 0, timeouts = 0, cuts = 0;
    SequenceNumber32 highest{0};
    bool begun = false, over = false;
    Ptr<PacketSink> sink;
};
static std::vector<State> states(all.size());
static std::map<uint32_t, uint32_t> byAddress;

struct Waiting
{
    double packets = 0, bytes = 0, packetSeconds = 0, byteSeconds = 0, since = 0;
    void Pass()
    {
        const double now = Simulator::Now().GetSeconds();
        packetSeconds += packets * (now - since);
        byteSeconds += bytes * (now - since);
        since = now;
    }
};
static Waiting waiting;

static void Packets(uint32_t before, uint32_t now) { waiting.Pass(); waiting.packets += double(now) - double(before); }
static void Bytes(uint32_t before, uint32_t now) { waiting.Pass(); waiting.bytes += double(now) - double(before); }

static void Dropped(Ptr<const QueueDiscItem> item)
{
    Ptr<const Ipv4QueueDiscItem> packet = DynamicCast<const Ipv4QueueDiscItem>(item);
    if (!packet) return;
    drops << "d " << Simulator::Now().GetSeconds() << " 0 1 tcp " << item->GetSize() << " ------- "
          << byAddress[packet->GetHeader().GetSource().Get()] << "\n";
}

static void Sent(uint32_t flow, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    State& state = states[flow];
    ++state.sent;
    if (packet->GetSize() == 0) return;
    const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
    if (end <= state.highest) ++state.resent;
    else state.highest = end;
}

static void Turned(uint32_t flow, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    if (now == TcpSocketState::CA_LOSS) ++states[flow].timeouts;
    if (now == TcpSocketState::CA_RECOVERY) ++states[flow].cuts;
}

static double Acknowledged(const State& state) { return std::floor(state.sink->GetTotalRx() / segment); }

static void Watch(Ptr<BulkSendApplication> application, uint32_t flow)
{
    Ptr<TcpSocketBase> socket = DynamicCast<TcpSocketBase>(application->GetSocket());
    State& state = states[flow];
    state.begun = true;
    flows << "begin " << flow << ' ' << all[flow].start << "\n";
    socket->TraceConnectWithoutContext("CongestionWindow", Callback<void, uint32_t, uint32_t>(
        [&state](uint32_t, uint32_t bytes) { state.cwnd = bytes; }));
    socket->TraceConnectWithoutContext("SlowStartThreshold", Callback<void, uint32_t, uint32_t>(
        [&state](uint32_t, uint32_t bytes) { state.ssthresh = bytes; }));
    socket->TraceConnectWithoutContext("BytesInFlight", Callback<void, uint32_t, uint32_t>(
        [&state](uint32_t, uint32_t bytes) { state.flight = bytes; }));
    socket->TraceConnectWithoutContext("RTT", Callback<void, Time, Time>(
        [&state](Time, Time rtt) {
            const double found = rtt.GetSeconds();
            state.srtt = state.srtt > 0 ? 0.875 * state.srtt + 0.125 * found : found;
        }));
    socket->TraceConnectWithoutContext("Tx",
        Callback<void, Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>>(
            [flow](Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase> of) {
                Sent(flow, packet, header, of);
            }));
    socket->TraceConnectWithoutContext("CongState",
        Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
            [flow](TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t now) {
                Turned(flow, before, now);
            }));
}

static void Received(uint32_t flow, Ptr<const Packet>, const Address&)
{
    State& state = states[flow];
    if (state.over || all[flow].bytes == 0 || state.sink->GetTotalRx() < all[flow].bytes) return;
    state.over = true;
    // When the acknowledgement of the last byte comes: a way back later.
    const double back = 2 * all[flow].delay + delay;
    flows << "done " << flow << ' ' << Simulator::Now().GetSeconds() + back << "\n";
}

// Bytes that left, with the frames that the plan has.
static uint64_t Wire(const QueueDisc::Stats& stats)
{
    return stats.nTotalDequeuedBytes + uint64_t(frame) * stats.nTotalDequeuedPackets;
}

static void Sample(Ptr<QueueDisc> queue)
{
    const double now = Simulator::Now().GetSeconds();
    for (uint32_t flow = 0; flow < all.size(); ++flow)
    {
        const State& state = states[flow];
        if (!state.begun) continue;
        samples << "f " << now << ' ' << flow << ' ' << state.cwnd / segment << ' ' << state.ssthresh / segment << ' '
                << state.srtt << ' ' << state.flight / segment << ' ' << Acknowledged(state) << "\n";
    }
    const QueueDisc::Stats& stats = queue->GetStats();
    samples << "q " << now << " 0 " << waiting.packets << ' ' << waiting.bytes + frame * waiting.packets << ' '
            << stats.nTotalDequeuedPackets << ' ' << stats.nTotalDroppedPackets << ' ' << Wire(stats) << "\n";
    Simulator::Schedule(Seconds(interval), &Sample, queue);
}

static void Count(Ptr<QueueDisc> queue, std::string word)
{
    const double now = Simulator::Now().GetSeconds();
    for (uint32_t flow = 0; flow < all.size(); ++flow)
    {
        const State& state = states[flow];
        flows << word << ' ' << flow << ' ' << now << ' ' << Acknowledged(state) << ' ' << state.sent << ' '
              << state.resent << ' ' << state.timeouts << ' ' << state.cuts << "\n";
    }
    waiting.Pass();
    const QueueDisc::Stats& stats = queue->GetStats();
    totals << word << " 0 " << now << ' ' << stats.nTotalReceivedPackets << ' ' << stats.nTotalDroppedPackets << ' '
           << stats.nTotalDequeuedPackets << ' ' << Wire(stats) << ' ' << waiting.packetSeconds << ' '
           << waiting.byteSeconds + frame * waiting.packetSeconds << ' ' << stats.nTotalMarkedPackets << "\n";
}

// A link whose device holds one packet; where nothing can queue, it has room for all.
static NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, double bps, double seconds, const char* room)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(bps))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(seconds)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(room));
    return link.Install(a, b);
}

static void Hop(Ptr<Node> a, Ptr<Node> b, double seconds, Ipv4AddressHelper& addresses)
{
    NetDeviceContainer devices = Connect(a, b, 100e9, seconds, "1000000p");
    addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    addresses.NewNetwork();
}"""

MAIN = r"""
int main()
{
    RngSeedManager::SetRun(seed + 1);
    Defaults();
    for (std::ofstream* file : {&samples, &drops, &flows, &totals}) file->precision(12);
    NodeContainer routers(2), senders(all.size()), receivers(all.size());
    InternetStackHelper stack;
    stack.InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");

    NetDeviceContainer bottleneck = Connect(routers.Get(0), routers.Get(1), rate, delay, "1p");
    TrafficControlHelper control;
    Discipline(control);
    Ptr<QueueDisc> queue = control.Install(bottleneck.Get(0)).Get(0);
    addresses.Assign(bottleneck);
    TrafficControlHelper().Uninstall(bottleneck.Get(1));
    addresses.NewNetwork();
    Ptr<ns3::Queue<Packet>> device = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue();
    queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Packets));
    queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Bytes));
    device->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Packets));
    device->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Bytes));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    drops << "link 0 0 1\n";

    for (uint32_t number = 0; number < all.size(); ++number)
    {
        const Flow& flow = all[number];
        Hop(senders.Get(number), routers.Get(0), flow.delay, addresses);
        Hop(routers.Get(1), receivers.Get(number), flow.delay, addresses);
        const std::string place = "/NodeList/" + std::to_string(senders.Get(number)->GetId());
        Config::Set(place + "/$ns3::TcpL4Protocol/SocketType", TypeIdValue(TypeId::LookupByName(flow.control)));
        byAddress[senders.Get(number)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal().Get()] = number;

        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        states[number].sink = DynamicCast<PacketSink>(sink.Install(receivers.Get(number)).Get(0));
        states[number].sink->TraceConnectWithoutContext("Rx", Callback<void, Ptr<const Packet>, const Address&>(
            [number](Ptr<const Packet> packet, const Address& from) { Received(number, packet, from); }));

        InetSocketAddress far(receivers.Get(number)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal(), 5000);
        BulkSendHelper bulk("ns3::TcpSocketFactory", far);
        bulk.SetAttribute("SendSize", UintegerValue(static_cast<uint64_t>(segment)));
        bulk.SetAttribute("MaxBytes", UintegerValue(flow.bytes));
        ApplicationContainer sender = bulk.Install(senders.Get(number));
        sender.Start(Seconds(flow.start));
        if (flow.stop >= 0) sender.Stop(Seconds(flow.stop));
        Simulator::Schedule(Seconds(flow.start) + NanoSeconds(1), &Watch,
                            DynamicCast<BulkSendApplication>(sender.Get(0)), number);
    }

    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(Seconds(0), &Sample, queue);
    Simulator::Schedule(Seconds(warmup), &Count, queue, std::string("warm"));
    Simulator::Schedule(Seconds(duration), &Count, queue, std::string("end"));
    Simulator::Stop(Seconds(duration) + NanoSeconds(1));
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}"""
