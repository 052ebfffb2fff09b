// Bulk transfers through one bottleneck in ns-3: the second reference of the benchmark.
//   bulk FLOWS RATE_BPS RTT_S DURATION_S
// The same network as ns2/bulk.tcl: one access link per flow, sinks on the bottleneck's far node, no
// queue discipline above the bottleneck's drop-tail device queue, TcpLinuxReno with SACK, timestamps
// and delayed ACKs. Prints one line of JSON on standard output.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace {

constexpr uint32_t kWireBytes = 1500;
constexpr uint32_t kSegmentBytes = 1448;  // 40 bytes of headers and 12 of timestamps less
constexpr double kRttSpread = 0.1;
constexpr double kAccessBps = 100e9;
constexpr double kSampleIntervalS = 0.01;
constexpr uint16_t kFirstPort = 5000;

struct Workload {
    uint32_t flows;
    double rateBps;
    double rttS;
    double durationS;
};

// Socket buffers of eight fair shares of what path and queue hold: they never bind in the long run, and
// BulkSend does not fill memory with segments that the benchmark would then pay for.
uint64_t BufferBytes(const Workload& workload) {
    const double pathBytes = 2 * workload.rateBps * workload.rttS / 8;
    return std::max<uint64_t>(1 << 18, static_cast<uint64_t>(8 * pathBytes / workload.flows));
}

void SetDefaults(const Workload& workload) {
    using namespace ns3;
    const UintegerValue buffer(BufferBytes(workload));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(0.2)));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(0.04)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegmentBytes));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", buffer);
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", buffer);
}

// A point-to-point link with a device queue of `limit` packets and nothing above it.
ns3::NetDeviceContainer Connect(ns3::Ptr<ns3::Node> a, ns3::Ptr<ns3::Node> b, double rateBps,
                                double delayS, uint64_t limit) {
    using namespace ns3;
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rateBps))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delayS)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limit)));
    return link.Install(a, b);
}

// Gives addresses, and takes away the queue discipline that ns-3 puts above a device.
ns3::Ipv4InterfaceContainer Address(const ns3::NetDeviceContainer& devices,
                                    ns3::Ipv4AddressHelper& addresses) {
    ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    ns3::TrafficControlHelper().Uninstall(devices);
    addresses.NewNetwork();
    return interfaces;
}

double AccessDelayS(const Workload& workload, uint32_t flow) {
    if (workload.flows == 1) return 0.0;
    return kRttSpread * workload.rttS / 2 * flow / (workload.flows - 1);
}

// The congestion window of every sender, each 10 ms, as the other programs record it.
class Sampler {
  public:
    explicit Sampler(uint32_t flows) : m_cwnd(flows, 0) {}

    void Trace(ns3::Ptr<ns3::Socket> socket, uint32_t flow) {
        socket->TraceConnectWithoutContext(
            "CongestionWindow", ns3::Callback<void, uint32_t, uint32_t>(
                                    [this, flow](uint32_t, uint32_t cwnd) { m_cwnd[flow] = cwnd; }));
    }

    void Sample() {
        m_samples.insert(m_samples.end(), m_cwnd.begin(), m_cwnd.end());
        ns3::Simulator::Schedule(ns3::Seconds(kSampleIntervalS), &Sampler::Sample, this);
    }

  private:
    std::vector<uint32_t> m_cwnd;
    std::vector<uint32_t> m_samples;
};

void StartFlow(ns3::Ptr<ns3::BulkSendApplication> application, Sampler* sampler, uint32_t flow) {
    sampler->Trace(application->GetSocket(), flow);
}

uint64_t Run(const Workload& workload) {
    using namespace ns3;
    const auto bdp = static_cast<uint64_t>(workload.rateBps * workload.rttS / (8 * kWireBytes));
    NodeContainer routers(2);
    NodeContainer hosts(workload.flows);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(hosts);

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    const auto bottleneck =
        Address(Connect(routers.Get(0), routers.Get(1), workload.rateBps, workload.rttS / 2, bdp),
                addresses);

    Sampler sampler(workload.flows);
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t flow = 0; flow < workload.flows; ++flow) {
        Address(Connect(hosts.Get(flow), routers.Get(0), kAccessBps, AccessDelayS(workload, flow),
                        1000000),
                addresses);
        const uint16_t port = kFirstPort + flow;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(routers.Get(1)).Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(bottleneck.GetAddress(1), port));
        bulk.SetAttribute("SendSize", UintegerValue(kSegmentBytes));
        ApplicationContainer sender = bulk.Install(hosts.Get(flow));
        const double startS = 0.1 * flow / workload.flows;
        sender.Start(Seconds(startS));
        Simulator::Schedule(Seconds(startS + 1e-6), &StartFlow,
                            DynamicCast<BulkSendApplication>(sender.Get(0)), &sampler, flow);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    if (workload.durationS > 0) {
        sampler.Sample();
        Simulator::Stop(Seconds(workload.durationS));
        Simulator::Run();
    }
    uint64_t bytes = 0;
    for (const auto& sink : sinks) bytes += sink->GetTotalRx();
    Simulator::Destroy();
    return bytes / kSegmentBytes;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: bulk FLOWS RATE_BPS RTT_S DURATION_S\n";
        return 2;
    }
    const Workload workload{static_cast<uint32_t>(std::stoul(argv[1])), std::stod(argv[2]),
                            std::stod(argv[3]), std::stod(argv[4])};
    SetDefaults(workload);
    const uint64_t packets = Run(workload);
    const double capacity = workload.rateBps * workload.durationS / (8 * kWireBytes);
    std::cout << std::setprecision(6) << "{\"data_packets\": " << packets
              << ", \"simulated_s\": " << workload.durationS
              << ", \"utilisation\": " << (capacity > 0 ? packets / capacity : 0.0) << "}\n";
    return 0;
}
