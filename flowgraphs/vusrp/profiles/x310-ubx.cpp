// USRP X310 with two UBX-160 daughterboards: two channels each way on 10 Gigabit Ethernet.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "profiles/profile.hpp"

namespace fadelab {
namespace {

// A MAX2871 on the daughterboard's clock, which is the master clock's largest fraction of 50 MHz or less
// (x300/x300_impl.cpp:x300_impl, dboard/db_ubx.hpp:get_max_pfd_freq); its fraction has 4095 steps, its feedback is taken behind an output divider of up to
// 16 (include/uhdlib/usrp/common/max287x.hpp:set_frequency).
double max2871_hz(double hz, double master_clock_hz) {
    constexpr double kHighest_hz = 50e6;
    constexpr double kSteps = 4095.0;
    const double reference_hz = master_clock_hz / std::ceil(master_clock_hz / kHighest_hz);
    double divider = 1.0;
    while (hz * divider < 3e9) divider *= 2.0;
    const double feedback = std::min(divider, 16.0);
    double comparison_hz = reference_hz;
    double turns = hz * divider / feedback / comparison_hz;
    for (int by = 2; std::floor(turns) <= 19.0; ++by) {
        comparison_hz = reference_hz / by;
        turns = hz * divider / feedback / comparison_hz;
    }
    const double whole = std::floor(turns);
    return comparison_hz * (whole + std::round((turns - whole) * kSteps) / kSteps) * feedback / divider;
}

// Below 500 MHz a second oscillator takes the signal from an intermediate frequency
// (dboard/db_ubx.cpp:set_rx_freq, set_tx_freq).
double oscillator_hz(double hz, double intermediate_hz, double master_clock_hz) {
    if (hz >= 500e6) return max2871_hz(hz, master_clock_hz);
    const double first_hz = max2871_hz(intermediate_hz, master_clock_hz);
    return first_hz - max2871_hz(first_hz - hz, master_clock_hz);
}

double rx_oscillator_hz(double hz, double master_clock_hz) {
    return oscillator_hz(hz, hz < 100e6 ? 2380e6 : 2440e6, master_clock_hz);
}

double tx_oscillator_hz(double hz, double master_clock_hz) { return oscillator_hz(hz, 2100e6, master_clock_hz); }

Direction direction(bool tx) {
    Direction one{};
    // db_ubx.cpp:ubx_tx_antennas, ubx_rx_antennas, ubx_xcvr
    one.antennas = tx ? std::vector<std::string>{"TX/RX", "CAL"} : std::vector<std::string>{"TX/RX", "RX2", "CAL"};
    one.antenna = tx ? "TX/RX" : "RX2";
    // db_ubx.cpp:ubx_tx_gain_range, ubx_rx_gain_range, set_tx_gain
    one.gains = {{"PGA0", {0.0, 31.5, 0.5}, Rounding::kDown}};
    if (!tx) one.codec_gains = {{"digital", {0.0, 6.0, 0.5}}};  // x300/x300_radio_control.cpp, rx_codec
    // Ours: about +20 dBm leave at the highest gain, as UBX boards of that frequency range do; a receiver at the lowest
    // gain is full at 0 dBm.
    one.full_scale_dbm = tx ? -11.5 : 0.0;
    one.freq_hz = {10e6, 6e9};    // db_ubx.cpp:ubx_freq_range
    one.default_freq_hz = 10e6;   // db_ubx.cpp:ubx_xcvr
    one.oscillator_hz = tx ? tx_oscillator_hz : rx_oscillator_hz;
    if (tx) one.connection = "QI";      // db_ubx.cpp:ubx_xcvr
    one.bandwidth_hz = {160e6, 160e6};  // db_ubx.cpp:ubx_xcvr
    one.default_bandwidth_hz = 160e6;
    one.sensors = {"lo_locked"};
    one.corrected = true;  // x300_radio_control.cpp, its constructor
    // rfnoc/ddc_block_control.cpp, duc_block_control.cpp: 2^0 to 2^2 times 1 to 255, of three half-bands and the limit of
    // fpga/usrp3/top/x300/x310_rfnoc_image_core.v
    one.factors = {{1020, 512, 4}, {510, 256, 2}, {255, 1, 1}};
    one.halfbands = 3;
    one.codec = tx ? "ad9146" : "ads62p48";  // x300_radio_control.cpp
    one.board_id = tx ? 0x007d : 0x007e;     // db_ubx.cpp, UBX-160 v2
    // x300/x300_defaults.hpp:DATA_FRAME_MAX_SIZE less 16 of header with a time
    one.packet_octets = 7984;
    one.packet_samples = 7984;
    return one;
}

// Typical flaws at 2.4 GHz, without the files that UHD's calibration programs write.
medium::Impairments impairments() {
    medium::Impairments one;
    // assumed: an image 35 dB below the signal, a carrier 40 dB below full scale
    one.tx.iq_gain_db = 0.2;
    one.tx.iq_phase_deg = 1.5;
    one.tx.leakage_dbfs = -40.0;
    one.rx.iq_gain_db = 0.2;  // assumed, as transmitting
    one.rx.iq_phase_deg = 1.5;
    one.rx.leakage_dbfs = -90.0;  // assumed, behind the FPGA's correction (cores/rx_frontend_core_3000.cpp)
    // assumed: 0.29 degrees from 100 Hz to 100 MHz, some less than an ADF4350 has
    const medium::MaskPoint mask[] = {{1e3, -95.0}, {1e4, -99.0}, {1e5, -103.0}, {1e6, -124.0}, {1e7, -144.0}};
    std::copy(std::begin(mask), std::end(mask), one.tx.mask);
    std::copy(std::begin(mask), std::end(mask), one.rx.mask);
    one.tolerance_ppm = 2.5;  // Ettus's data sheet of the X300 and X310, without a GPSDO
    one.warm_up_ppm = 0.3;    // assumed, as the time constant
    one.warm_up_s = 60.0;
    one.walk_ppm = 0.001;  // assumed: 1e-9 from second to second, as a TCXO
    one.p1db_dbm = 20.0;   // assumed: the output power of 100 mW that boards of that range have
    one.ramp_us = 1.0;  // assumed
    // Ettus's performance data of the UBX without corrections
    one.noise_figure_lowest_db = 23.0;
    one.noise_figure_highest_db = 3.0;
    one.settling_us = 2.0;  // assumed, as slope and edge: analog filters far wider than the rate
    one.slope_db = 0.1;
    one.edge_db = 0.2;
    one.isolation_db = 50.0;  // assumed
    one.wideband = 1.0;       // the converter takes 160 MHz
    return one;
}

Profile x310() {
    Profile one{};
    one.name = "x310-ubx";
    one.product = one.board = "X310";  // x300/x300_mboard_type.cpp:map_mb_type_to_product_name
    one.device = "X-Series Device";    // x300/x300_prop_tree.cpp
    one.codename = "Yetti";
    one.eeprom = {{"product", "30818"}, {"revision", "11"}};  // x300/x300_regs.hpp:X310_USRP_PCIE_SSID_ADC_18
    one.versions = {{"fw_version", "6.0"}, {"fpga_version", "39.0"}};  // x300/x300_fw_common.h: compatibility
    one.gpio_banks = {"FP0"};  // x300_radio_control.cpp:get_gpio_banks
    one.ports = {{"A", "0", "UBX RX", "UBX TX"}, {"B", "0", "UBX RX", "UBX TX"}};
    one.rx = direction(false);
    one.tx = direction(true);
    one.master_clock.default_hz = 200e6;  // x300_defaults.hpp:DEFAULT_TICK_RATE
    one.master_clock.range_hz = {184.32e6, 200e6};
    one.master_clock.choices_hz = {184.32e6, 200e6};
    one.master_clock.fixed = true;  // x300_radio_control.cpp:set_rate
    one.default_rate_sps = 200e6;   // ddc_block_control.cpp, a decimation of 1
    one.nearest = Nearest::kLowerFactor;  // ddc_block_control.cpp:coerce_decim
    one.dsp_bits = 24;                    // ddc_block_control.cpp:_set_freq
    one.board_sensors = {"ref_locked"};   // x300/x300_mb_controller.cpp:get_sensor
    one.clock_sources = {"internal", "external", "gpsdo"};  // x300_defaults.hpp:CLOCK_SOURCE_OPTIONS
    one.time_sources = {"internal", "external", "gpsdo"};   // x300_defaults.hpp:TIME_SOURCE_OPTIONS
    one.not_fitted = {"gpsdo"};
    one.heeds_clock_source = true;  // x300_mb_controller.cpp, its constructor
    // x300/x300_eth_mgr.cpp:MAX_RATE_10GIGE, MAX_RATE_1GIGE, GE_DATA_FRAME_RECV_SIZE less 16
    one.links = {{"10gbe", 10e9 / 8 * 8000 / 8028, 0}, {"1gbe", 1e9 / 8 * 1472 / 1500, 0, 1456}};
    one.wires = {"sc16"};  // of the radio block; no other has a converter in the FPGA
    one.quantises = true;
    one.tx_buffer_samples = 16384;  // fpga/usrp3/top/x300/x310_rfnoc_image_core.yml:buff_size, in octets
    one.impairments = impairments();
    return one;
}

const Declared declared(x310());

}  // namespace
}  // namespace fadelab
