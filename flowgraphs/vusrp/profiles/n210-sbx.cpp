// USRP N210 revision 4 with an SBX daughterboard: one channel each way on Gigabit Ethernet.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "profiles/profile.hpp"

namespace fadelab {
namespace {

// An ADF4350 or ADF4351 on the daughterboard's 100 MHz (usrp2/dboard_iface.cpp: the highest clock), divided to 25 MHz or
// less; its feedback is taken behind the output divider, and the fraction has 4095 steps
// (include/uhdlib/usrp/common/adf435x.hpp:set_frequency, dboard/db_sbx_version4.cpp:set_lo_freq).
double oscillator_hz(double hz, double /*master_clock_hz*/) {
    constexpr double kReference_hz = 100e6;
    constexpr double kHighest_hz = 25e6;
    constexpr double kSteps = 4095.0;
    const double least = hz > 3.6e9 ? 75.0 : 23.0;  // of the prescaler
    double comparison_hz = kReference_hz;
    for (int divider = 1; comparison_hz > kHighest_hz || std::floor(hz / comparison_hz) < least; ++divider) {
        comparison_hz = kReference_hz / divider;
    }
    const double whole = std::floor(hz / comparison_hz);
    return comparison_hz * (whole + std::round((hz / comparison_hz - whole) * kSteps) / kSteps);
}

Direction direction(bool tx) {
    Direction one{};
    // dboard/db_sbx_common.hpp:sbx_tx_antennas, sbx_rx_antennas; db_sbx_common.cpp:sbx_xcvr
    one.antennas = tx ? std::vector<std::string>{"TX/RX", "CAL"} : std::vector<std::string>{"TX/RX", "RX2", "CAL"};
    one.antenna = tx ? "TX/RX" : "RX2";
    // db_sbx_common.hpp:sbx_tx_gain_ranges, sbx_rx_gain_ranges; db_sbx_common.cpp:rx_pga0_gain_to_iobits cuts off the
    // attenuation
    one.gains = {{"PGA0", {0.0, 31.5, 0.5}, Rounding::kUp}};
    // usrp2/usrp2_impl.cpp:usrp2_impl, codec control objects
    if (!tx) one.codec_gains = {{"digital", {0.0, 6.0, 0.5}}, {"fine", {0.0, 0.5, 0.05}}};
    // Ours: about +20 dBm leave at the highest gain, as SBX boards of that frequency range do; a receiver at the lowest
    // gain is full at 0 dBm.
    one.full_scale_dbm = tx ? -11.5 : 0.0;
    one.freq_hz = {400e6, 4.4e9};  // db_sbx_common.hpp:sbx_freq_range
    one.default_freq_hz = 2.4e9;   // db_sbx_common.cpp:sbx_xcvr, the middle of the range
    one.oscillator_hz = oscillator_hz;
    if (tx) one.connection = "QI";          // db_sbx_common.cpp:sbx_xcvr
    one.bandwidth_hz = {40e6, 40e6};        // db_sbx_common.cpp:sbx_xcvr
    one.default_bandwidth_hz = 40e6;
    one.sensors = {"lo_locked"};
    one.corrected = true;  // usrp2_impl.cpp:usrp2_impl, frontend control objects
    // cores/rx_dsp_core_200.cpp:get_host_rates, cores/tx_dsp_core_200.cpp:get_host_rates; the link of 125e6 octets/s
    // (usrp2_impl.hpp:USRP2_LINK_RATE_BPS) with two octets a sample allows 1/2
    one.factors = {{512, 260, 4}, {256, 130, 2}, {128, 2, 1}};
    one.halfbands = 2;
    one.codec = tx ? "ad9777" : "ads62p44";  // usrp2_impl.cpp:usrp2_impl
    one.board_id = tx ? 0x0064 : 0x0065;     // db_sbx_common.cpp:reg_sbx_dboards, SBX v4
    // usrp2_impl.cpp:get_tx_dsp_freq_range: the converter interpolates by 4 and shifts by whole master clocks
    one.dsp_spans = tx ? 4 : 1;
    // usrp2/io_impl.cpp:get_rx_stream, get_tx_stream: 1472 octets of a datagram (uhd/transport/udp_simple.hpp:mtu) less 20
    one.packet_octets = 1452;
    one.packet_samples = 1452;
    return one;
}

// Typical flaws at 2.4 GHz, without the files that UHD's calibration programs write. "Data sheet" is Ettus's of the SBX.
medium::Impairments impairments() {
    medium::Impairments one;
    // assumed: an image 30 dB below the signal, a carrier 35 dB below full scale
    one.tx.iq_gain_db = 0.3;
    one.tx.iq_phase_deg = 2.9;
    one.tx.leakage_dbfs = -35.0;
    one.rx.iq_gain_db = 0.3;  // assumed, as transmitting
    one.rx.iq_phase_deg = 2.9;
    one.rx.leakage_dbfs = -90.0;  // assumed, behind the FPGA's correction (cores/rx_frontend_core_200.cpp)
    // Analog Devices' data sheet of the ADF4350: 0.5 ps, 0.43 degrees at 2.4 GHz. Of that its integral; its shape is assumed.
    const medium::MaskPoint mask[] = {{1e3, -88.4}, {1e4, -94.4}, {1e5, -100.4}, {1e6, -122.4}, {1e7, -142.4}};
    std::copy(std::begin(mask), std::end(mask), one.tx.mask);
    std::copy(std::begin(mask), std::end(mask), one.rx.mask);
    one.tolerance_ppm = 2.5;  // Ettus's data sheet of the N200 and N210
    one.warm_up_ppm = 0.3;    // assumed, as the time constant
    one.warm_up_s = 60.0;
    one.walk_ppm = 0.001;  // assumed: 1e-9 from second to second, as a TCXO
    one.p1db_dbm = 20.0;   // data sheet: 100 mW of output power
    one.ramp_us = 1.0;  // assumed
    one.noise_figure_lowest_db = 23.0;  // assumed, as the UBX's behind the same attenuator
    one.noise_figure_highest_db = 5.0;  // data sheet
    one.settling_us = 2.0;  // assumed, as slope and edge: analog filters far wider than the rate
    one.slope_db = 0.1;
    one.edge_db = 0.2;
    one.isolation_db = 50.0;  // assumed
    one.wideband = 1.0;       // the converter takes 100 MHz, behind a filter of 40 MHz that is left out
    return one;
}

Profile n210() {
    Profile one{};
    one.name = "n210-sbx";
    one.device = "USRP2 / N-Series Device";  // usrp2_impl.cpp:usrp2_impl
    one.board = "N210r4";                    // usrp2/usrp2_iface.cpp:get_cname
    one.versions = {{"fw_version", "12.4"}, {"fpga_version", "11.1"}};  // usrp2/fw_common.h: numbers of compatibility
    one.ports = {{"A", "0", "SBXv4 RX", "SBXv4 TX"}};
    one.rx = direction(false);
    one.tx = direction(true);
    one.master_clock.default_hz = 100e6;  // usrp2/clock_ctrl.cpp:get_master_clock_rate
    one.master_clock.range_hz = {100e6, 100e6};
    one.master_clock.choices_hz = {100e6};
    one.default_rate_sps = 1e6;  // usrp2_impl.cpp:usrp2_impl
    one.nearest = Nearest::kRate;  // rx_dsp_core_200.cpp:set_host_rate
    one.dsp_bits = 32;             // cores/dsp_core_utils.cpp:get_freq_and_freq_word
    one.board_sensors = {"mimo_locked", "ref_locked"};  // usrp2_impl.cpp:usrp2_impl
    one.clock_sources = {"internal", "external", "mimo"};
    one.time_sources = {"none", "external", "_external_", "mimo"};  // cores/time64_core_200.cpp
    one.default_time_source = "none";  // usrp2_impl.cpp:usrp2_impl
    one.heeds_clock_source = false;    // the same place: internal and none, whatever the arguments
    one.links = {{"1gbe", 125e6, 0}};  // usrp2_impl.hpp:USRP2_LINK_RATE_BPS
    one.wires = {"sc16", "sc8"};       // rx_dsp_core_200.cpp:setup
    one.quantises = true;
    one.tx_buffer_samples = 262144;  // usrp2_impl.hpp:USRP2_SRAM_BYTES
    one.impairments = impairments();
    return one;
}

const Declared declared(n210());

}  // namespace
}  // namespace fadelab
