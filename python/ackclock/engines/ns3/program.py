"""A plan as a program for ns-3: what a person would write, with the flows as a table at its top.

It writes the files that `ackclock.engines.external` reads, into the folder it runs in.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines.external import planned_traffic
from ackclock.engines.external.planned_traffic import Connection, PlannedTraffic, Stream
from ackclock.engines.ns3 import settings
from ackclock.input.fields import one_line
from ackclock.plan import UDP_HEADER_BYTES, Plan, TcpPlan

#: Libraries of ns-3 that the program is linked with.
LIBRARIES = ("core", "network", "internet", "applications", "point-to-point", "traffic-control")

#: Bytes that a point-to-point device puts before a packet.
PPP_BYTES = 2


def cpp(plan: Plan, seed: int) -> str:
    """The program of one run."""
    sent = planned_traffic.draw_traffic(plan, seed)
    lines = [*_head(plan, seed), *_flows(plan, sent), *_streams(plan, sent), *_changes(plan)]
    return "\n".join([*lines, BODY, *_defaults(plan), *_queue(plan), MAIN]) + "\n"


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
    loss = link.loss["probability"] if link.loss else 0.0
    yield f"static const double rate = {_rate_bps(plan, link.rate_bps):.12g}, delay = {link.delay_s:.12g};"
    yield f"static const double loss = {loss:.12g};"


def _rate_bps(plan: Plan, rate_bps: float) -> float:
    packet_bytes = _tcp(plan).packet_bytes
    full_bytes = packet_bytes + plan.bottleneck_link.frame_overhead_bytes
    return rate_bps * (packet_bytes + PPP_BYTES) / full_bytes


def _flows(plan: Plan, sent: PlannedTraffic) -> Iterator[str]:
    yield FLOWS
    for flow in sent.connections:
        yield f"    {_flow(plan, flow)},"
    yield "};"
    yield "static std::vector<Gate> gates = {"
    yield from (f"    {{{gate.awaits}, {gate.delay_s:.12g}, {gate.stop_s:.12g}, {{}}}}," for gate in sent.gates)
    yield "};"


def _flow(plan: Plan, flow: Connection) -> str:
    """Its row."""
    congestion = plan.groups[flow.group].congestion
    assert congestion is not None
    start_s, stop_s, waits, completes = (
        -1 if value is None else value for value in (flow.start_s, flow.stop_s, flow.waits, flow.completes)
    )
    sampled = str(not flow.generated or plan.record.traffic).lower()
    control = f"ns3::{settings.CONTROLS[congestion.kind]}"
    times = f"{start_s:.12g}, {stop_s:.12g}"
    return (
        f"{{{flow.number}, {times}, {flow.size_bytes or 0}u, {_delay_s(plan, flow):.12g}, "
        f'"{control}", {sampled}, {waits}, {completes}}}'
    )


def _delay_s(plan: Plan, each: Connection | Stream) -> float:
    """A cable delays both directions; there are two, and each has a quarter of what the link has not."""
    return max(each.base_rtt_s - 2 * plan.bottleneck_link.delay_s, 0.0) / 4


def _streams(plan: Plan, sent: PlannedTraffic) -> Iterator[str]:
    yield "static const std::vector<Stream> streams = {"
    for stream in sent.streams:
        payload = stream.packet_bytes - UDP_HEADER_BYTES
        periods = ", ".join(f"{{{first:.12g}, {last:.12g}}}" for first, last in stream.periods)
        yield f"    {{{stream.number}, {_delay_s(plan, stream):.12g}, {payload}, {stream.per_s:.12g}, {{{periods}}}}},"
    yield "};"


def _changes(plan: Plan) -> Iterator[str]:
    """Rates of the bottleneck, from some time on."""
    changes = [(change.at_s, change.rate_bps) for change in plan.changes if change.rate_bps is not None]
    rows = ", ".join(f"{{{at_s:.12g}, {_rate_bps(plan, rate_bps):.12g}}}" for at_s, rate_bps in changes)
    yield f"static const std::vector<std::pair<double, double>> rates = {{{rows}}};"


#: The tables' columns.
FLOWS = """
// The flows: their numbers, when they begin and stop (below 0: never), how many bytes they send (0: without end), what
// their ways delay, by which control, whether they are sampled, the gates that each waits for and is awaited by.
struct Flow
{
    uint32_t number;
    double start, stop;
    uint64_t bytes;
    double delay;
    const char* control;
    bool sampled;
    int waits, completes;
};
// A gate opens `delay` after the last of so many flows is over, if that is before `stop`.
struct Gate
{
    uint32_t awaits;
    double delay, stop;
    std::vector<uint32_t> waiting;
};
// UDP sources: datagrams at a rate, from each first instant to the second one behind it.
struct Stream
{
    uint32_t number;
    double delay;
    uint32_t payload;
    double rate;
    std::vector<std::pair<double, double>> periods;
};
static const std::vector<Flow> all = {"""


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


#: Code of the counters and samples. `waiting` is the queue of the qdisc and of the device together.
BODY = r"""
static std::ofstream samples("samples"), drops("drops"), losses("losses"), cuts("cuts");
static std::ofstream flows("flows"), totals("links");

struct State
{
    double cwnd = 0, ssthresh = 0, srtt = 0, flight = 0;
    uint64_t sent = 0, resent = 0, timeouts = 0, reductions = 0;
    SequenceNumber32 highest{0};
    bool begun = false, over = false;
    Ptr<PacketSink> sink;
};
static std::vector<State> states(all.size());
static std::map<uint32_t, Ptr<PacketSink>> datagrams;

// Each flow has a port of its own at its receiver, which tells its packets.
static uint16_t Port(uint32_t number) { return static_cast<uint16_t>(5000 + number % 60000); }

static uint32_t NumberOf(Ptr<const Packet> packet)
{
    uint8_t ports[4] = {};
    packet->CopyData(ports, sizeof ports);
    return (ports[2] << 8 | ports[3]) - 5000;
}

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
    drops << "d " << Simulator::Now().GetSeconds() << " 0 1 packet " << item->GetSize() << " ------- "
          << NumberOf(packet->GetPacket()) << "\n";
}

// A packet that the link loses by chance, before its queue.
static void Lost(Ptr<const Packet> packet)
{
    Ptr<Packet> copy = packet->Copy();
    PppHeader ppp;
    Ipv4Header ip;
    copy->RemoveHeader(ppp);
    copy->RemoveHeader(ip);
    losses << "d " << Simulator::Now().GetSeconds() << " 0 1 packet " << packet->GetSize() << " ------- "
           << NumberOf(copy) << "\n";
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
    const bool timeout = now == TcpSocketState::CA_LOSS;
    if (!timeout && now != TcpSocketState::CA_RECOVERY) return;
    uint64_t& count = timeout ? states[flow].timeouts : states[flow].reductions;
    cuts << Simulator::Now().GetSeconds() << ' ' << all[flow].number << " 0 0 0 "
         << (timeout ? "nrexmit_ " : "ncwndcuts_ ") << ++count << "\n";
}

static double Acknowledged(const State& state) { return std::floor(state.sink->GetTotalRx() / segment); }

static void Watch(Ptr<BulkSendApplication> application, uint32_t flow)
{
    Ptr<TcpSocketBase> socket = DynamicCast<TcpSocketBase>(application->GetSocket());
    State& state = states[flow];
    state.begun = true;
    cuts << "agent " << all[flow].number << ' ' << all[flow].number << " 0\n";
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

static void Begin(uint32_t flow);

// A flow that a gate awaits is over.
static void Completed(uint32_t flow)
{
    if (all[flow].completes < 0) return;
    Gate& gate = gates[all[flow].completes];
    if (--gate.awaits > 0 || Simulator::Now().GetSeconds() + gate.delay >= gate.stop) return;
    for (uint32_t next : gate.waiting) Simulator::Schedule(Seconds(gate.delay), &Begin, next);
}

static void Received(uint32_t flow, Ptr<const Packet>, const Address&)
{
    State& state = states[flow];
    if (state.over || all[flow].bytes == 0 || state.sink->GetTotalRx() < all[flow].bytes) return;
    state.over = true;
    // When the acknowledgement of the last byte comes: a way back later.
    const double back = 2 * all[flow].delay + delay;
    flows << "done " << all[flow].number << ' ' << Simulator::Now().GetSeconds() + back << "\n";
    Simulator::Schedule(Seconds(back), &Completed, flow);
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
        if (!state.begun || !all[flow].sampled) continue;
        samples << "f " << now << ' ' << all[flow].number << ' ' << state.cwnd / segment << ' '
                << state.ssthresh / segment << ' ' << state.srtt << ' ' << state.flight / segment << ' '
                << Acknowledged(state) << "\n";
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
        if (!state.begun) continue;
        flows << word << ' ' << all[flow].number << ' ' << now << ' ' << Acknowledged(state) << ' ' << state.sent << ' '
              << state.resent << ' ' << state.timeouts << ' ' << state.reductions << "\n";
    }
    for (const Stream& stream : streams)
        flows << "udp-" << word << ' ' << stream.number << ' ' << now << ' '
              << datagrams[stream.number]->GetTotalRx() / stream.payload << "\n";
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

// Two hosts with the bottleneck between them: those of all flows with the same delay and control.
struct Pair
{
    Ptr<Node> sender, receiver;
    Ipv4Address from, to;
};
static NodeContainer routers(2);
static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
static std::map<std::pair<double, std::string>, Pair> pairs;

static Ipv4Address Hop(Ptr<Node> router, Ptr<Node> host, double seconds, bool loses)
{
    NetDeviceContainer devices = Connect(router, host, 100e9, seconds, "1000000p");
    const Ipv4Address address = addresses.Assign(devices).GetAddress(1);
    TrafficControlHelper().Uninstall(devices);
    addresses.NewNetwork();
    if (loses && loss > 0)
    {
        Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(loss);
        DynamicCast<PointToPointNetDevice>(devices.Get(0))->SetReceiveErrorModel(model);
        devices.Get(0)->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Lost));
    }
    return address;
}

static const Pair& Between(double seconds, const std::string& control)
{
    auto [place, made] = pairs.try_emplace({seconds, control});
    Pair& pair = place->second;
    if (!made) return pair;
    NodeContainer hosts(2);
    InternetStackHelper().Install(hosts);
    pair.sender = hosts.Get(0);
    pair.receiver = hosts.Get(1);
    pair.from = Hop(routers.Get(0), pair.sender, seconds, true);
    pair.to = Hop(routers.Get(1), pair.receiver, seconds, false);
    if (control.empty()) return pair;
    const std::string at = "/NodeList/" + std::to_string(pair.sender->GetId());
    Config::Set(at + "/$ns3::TcpL4Protocol/SocketType", TypeIdValue(TypeId::LookupByName(control)));
    return pair;
}

static void Begin(uint32_t number)
{
    const Flow& flow = all[number];
    const double now = Simulator::Now().GetSeconds();
    const Pair& pair = Between(flow.delay, flow.control);
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), Port(flow.number)));
    states[number].sink = DynamicCast<PacketSink>(sink.Install(pair.receiver).Get(0));
    states[number].sink->TraceConnectWithoutContext("Rx", Callback<void, Ptr<const Packet>, const Address&>(
        [number](Ptr<const Packet> packet, const Address& from) { Received(number, packet, from); }));

    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(pair.to, Port(flow.number)));
    bulk.SetAttribute("SendSize", UintegerValue(static_cast<uint64_t>(segment)));
    bulk.SetAttribute("MaxBytes", UintegerValue(flow.bytes));
    ApplicationContainer sender = bulk.Install(pair.sender);
    if (flow.stop >= 0) sender.Stop(Seconds(std::max(flow.stop - now, 0.0)));
    flows << "begin " << flow.number << ' ' << now << "\n";
    Simulator::Schedule(NanoSeconds(1), &Watch, DynamicCast<BulkSendApplication>(sender.Get(0)), number);
}

static void Datagram(Ptr<Socket> socket, uint32_t payload, double distance, double until)
{
    socket->Send(Create<Packet>(payload));
    if (Simulator::Now().GetSeconds() + distance < until)
        Simulator::Schedule(Seconds(distance), &Datagram, socket, payload, distance, until);
}

static void Open(const Stream& stream)
{
    const Pair& pair = Between(stream.delay, "");
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), Port(stream.number)));
    datagrams[stream.number] = DynamicCast<PacketSink>(sink.Install(pair.receiver).Get(0));
    Ptr<Socket> socket = Socket::CreateSocket(pair.sender, UdpSocketFactory::GetTypeId());
    socket->Bind();
    socket->Connect(InetSocketAddress(pair.to, Port(stream.number)));
    for (auto [first, last] : stream.periods)
        Simulator::Schedule(Seconds(first), &Datagram, socket, stream.payload, 1 / stream.rate, last);
}"""

MAIN = r"""
int main()
{
    RngSeedManager::SetRun(seed + 1);
    Defaults();
    for (std::ofstream* file : {&samples, &drops, &losses, &cuts, &flows, &totals}) file->precision(12);
    InternetStackHelper().Install(routers);

    NetDeviceContainer bottleneck = Connect(routers.Get(0), routers.Get(1), rate, delay, "1p");
    TrafficControlHelper control;
    Discipline(control);
    Ptr<QueueDisc> queue = control.Install(bottleneck.Get(0)).Get(0);
    addresses.Assign(bottleneck);
    TrafficControlHelper().Uninstall(bottleneck.Get(1));
    addresses.NewNetwork();
    Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0));
    queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Packets));
    queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Bytes));
    device->GetQueue()->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Packets));
    device->GetQueue()->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Bytes));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    drops << "link 0 0 1\n";
    losses << "link 0 0 1\n";

    for (uint32_t number = 0; number < all.size(); ++number)
    {
        Between(all[number].delay, all[number].control);
        if (all[number].waits >= 0) gates[all[number].waits].waiting.push_back(number);
        else Simulator::Schedule(Seconds(all[number].start), &Begin, number);
    }
    for (const Stream& stream : streams) Open(stream);
    for (auto [at, changed] : rates)
        Simulator::Schedule(Seconds(at), &PointToPointNetDevice::SetDataRate, device,
                            DataRate(static_cast<uint64_t>(changed)));

    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(Seconds(0), &Sample, queue);
    Simulator::Schedule(Seconds(warmup), &Count, queue, std::string("warm"));
    Simulator::Schedule(Seconds(duration), &Count, queue, std::string("end"));
    Simulator::Stop(Seconds(duration) + NanoSeconds(1));
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}"""
