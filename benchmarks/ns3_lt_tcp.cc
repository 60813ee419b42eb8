// The LT-TCP paper's bottleneck in ns-3, for benchmarks/simulator.py: testbed/model/topologies.py with other means.
//
//   sources - 100 Mbit/s - router - 10 Mbit/s, 20 ms, a queue of 500 packets - router - 100 Mbit/s - sinks
//
// --tcp same: our options. TcpNewReno with SACK and classic recovery is the closest ns-3 has to Reno's windows with
//   RFC 6675; everything else both sides could differ in is set, and no device but RED's has a queue disc, which is
//   ns-3's quickest way.
// --tcp linux: TcpLinuxReno, and everything else as ns-3 has it unless told otherwise: SACK with PRR, timestamps, an
//   initial window of 10, a queue disc on every device.
//
// Prints one JSON object; wall_s and cpu_s are Simulator::Run alone.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

int
main(int argc, char* argv[])
{
    uint32_t flows = 10;
    uint32_t segmentBytes = 500;
    double seconds = 200;
    double per = 0;
    uint32_t seed = 1;
    std::string queue = "drop-tail";
    std::string tcp = "same";

    CommandLine words(__FILE__);
    words.AddValue("flows", "TCP connections", flows);
    words.AddValue("segment-bytes", "payload of a segment", segmentBytes);
    words.AddValue("seconds", "virtual time", seconds);
    words.AddValue("per", "probability that the last hop loses a data packet", per);
    words.AddValue("seed", "of the random numbers", seed);
    words.AddValue("queue", "drop-tail, or red (with ECN)", queue);
    words.AddValue("tcp", "same or linux", tcp);
    words.Parse(argc, argv);
    if (queue != "drop-tail" && queue != "red")
    {
        std::cerr << "queue is " << queue << ": must be drop-tail or red" << std::endl;
        return 2;
    }
    if (tcp != "same" && tcp != "linux")
    {
        std::cerr << "tcp is " << tcp << ": must be same or linux" << std::endl;
        return 2;
    }
    const bool red = queue == "red";
    const bool same = tcp == "same";

    RngSeedManager::SetSeed(seed);
    const TypeId windows = same ? TcpNewReno::GetTypeId() : TcpLinuxReno::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(windows));
    if (same)
    {
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
        Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
        Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
        Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(3));
    }
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(red ? "On" : "Off"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segmentBytes));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::RedQueueDisc::MinTh", DoubleValue(75));
    Config::SetDefault("ns3::RedQueueDisc::MaxTh", DoubleValue(225));
    Config::SetDefault("ns3::RedQueueDisc::MaxSize", StringValue("500p"));
    Config::SetDefault("ns3::RedQueueDisc::QW", DoubleValue(0.002));
    // 1 / max_p
    Config::SetDefault("ns3::RedQueueDisc::LInterm", DoubleValue(10));
    Config::SetDefault("ns3::RedQueueDisc::Gentle", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::Wait", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::UseEcn", BooleanValue(true));
    Config::SetDefault("ns3::RedQueueDisc::UseHardDrop", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::MeanPktSize", UintegerValue(segmentBytes + 40));
    Config::SetDefault("ns3::RedQueueDisc::LinkBandwidth", StringValue("10Mbps"));
    Config::SetDefault("ns3::RedQueueDisc::LinkDelay", StringValue("20ms"));

    NodeContainer sources;
    NodeContainer sinks;
    NodeContainer routers;
    sources.Create(flows);
    sinks.Create(flows);
    routers.Create(2);
    InternetStackHelper stack;
    stack.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    PointToPointHelper narrow;
    narrow.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    narrow.SetChannelAttribute("Delay", StringValue("20ms"));
    // With RED the queue is a queue disc above the device; without, the device's own.
    narrow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(red ? "1p" : "500p"));

    NetDeviceContainer middle = narrow.Install(routers);
    if (red)
    {
        TrafficControlHelper discs;
        discs.SetRootQueueDisc("ns3::RedQueueDisc");
        discs.Install(middle);
    }
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(middle);
    std::vector<Ipv4Address> targets;
    for (uint32_t i = 0; i < flows; ++i)
    {
        NetDeviceContainer left = access.Install(sources.Get(i), routers.Get(0));
        NetDeviceContainer right = access.Install(routers.Get(1), sinks.Get(i));
        if (per > 0)
        {
            Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
            errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            errors->SetRate(per);
            right.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
        }
        addresses.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        addresses.Assign(left);
        addresses.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        targets.push_back(addresses.Assign(right).GetAddress(1));
    }
    // Assigning an address puts a queue disc on the device. On the narrow one it must not stand before ours.
    TrafficControlHelper none;
    for (uint32_t n = 0; n < NodeList::GetNNodes(); ++n)
    {
        Ptr<Node> node = NodeList::GetNode(n);
        Ptr<TrafficControlLayer> control = node->GetObject<TrafficControlLayer>();
        for (uint32_t d = 0; d < node->GetNDevices(); ++d)
        {
            Ptr<NetDevice> device = node->GetDevice(d);
            const bool bottleneck = device == middle.Get(0) || device == middle.Get(1);
            const bool wanted = bottleneck ? red : !same;
            if (!wanted && control->GetRootQueueDiscOnDevice(device))
            {
                none.Uninstall(device);
            }
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer receivers;
    for (uint32_t i = 0; i < flows; ++i)
    {
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(targets[i], 5000));
        bulk.SetAttribute("SendSize", UintegerValue(segmentBytes));
        bulk.Install(sources.Get(i)).Start(MilliSeconds(10 * i));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        receivers.Add(sink.Install(sinks.Get(i)));
    }
    receivers.Start(Seconds(0));
    Simulator::Stop(Seconds(seconds));

    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpuStart = std::clock();
    Simulator::Run();
    const double cpu = static_cast<double>(std::clock() - cpuStart) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

    uint64_t bytes = 0;
    for (uint32_t i = 0; i < flows; ++i)
    {
        bytes += DynamicCast<PacketSink>(receivers.Get(i))->GetTotalRx();
    }
    std::cout << "{\"packets\": " << bytes / segmentBytes << ", \"goodput_bps\": " << 8.0 * bytes / seconds
              << ", \"events\": " << Simulator::GetEventCount() << ", \"wall_s\": " << wall.count() << ", \"cpu_s\": " << cpu
              << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
