// A perfect device: any whole fraction of any master clock, no quantisation, no limits of a link. No real one is like it.

#include "profiles/profile.hpp"

namespace fadelab {
namespace {

Direction direction(std::vector<std::string> antennas, double full_scale_dbm) {
    Direction one{};
    one.antennas = std::move(antennas);
    one.antenna = one.antennas.back();
    one.gains = {{"PGA", {0.0, 60.0, 0.25}}};
    one.full_scale_dbm = full_scale_dbm;
    one.freq_hz = {1e6, 6e9, 1e3};
    one.default_freq_hz = 1e9;
    one.bandwidth_hz = {200e3, 160e6};
    one.default_bandwidth_hz = 160e6;
    one.sensors = {"lo_locked"};
    one.factors = {{4096, 1, 1}};
    one.codec = "vusrp";
    one.packet_octets = 8160;
    one.packet_samples = 2040;
    return one;
}

Profile ideal() {
    Profile one{};
    one.name = "ideal";
    one.device = one.board = "vusrp";
    one.codename = "fadelab";
    one.ports = {{"A", "0", "vusrp", "vusrp"}, {"A", "1", "vusrp", "vusrp"}};
    one.rx = direction({"TX/RX", "RX2"}, -10.0);
    one.tx = direction({"TX/RX"}, -40.0);
    one.master_clock.default_hz = 200e6;
    one.master_clock.range_hz = {1e6, 250e6, 1.0};
    one.default_rate_sps = 1e6;
    one.nearest = Nearest::kHigherFactor;
    one.board_sensors = {"ref_locked"};
    one.clock_sources = {"internal", "external"};
    one.time_sources = {"none", "internal", "external"};
    one.links = {{"memory", 0.0, 0}};
    one.wires = {"sc16", "sc12", "sc8", "fc32"};
    one.tx_buffer_samples = 262144;
    return one;
}

const Declared declared(ideal());

}  // namespace
}  // namespace fadelab
