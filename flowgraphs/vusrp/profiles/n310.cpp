// USRP N310: four channels each way, two to a Magnesium daughterboard with an AD9371, on 10 Gigabit Ethernet.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "profiles/profile.hpp"

namespace fadelab {
namespace {

// In whole Hz, cut off (mpm/lib/mykonos/ad937x_device.cpp:tune). Left out: below 300 MHz a second oscillator adds its
// steps.
double oscillator_hz(double hz, double /*master_clock_hz*/) { return std::floor(hz); }

Direction direction(bool tx) {
    Direction one{};
    // dboard/magnesium/magnesium_constants.hpp:MAGNESIUM_RX_ANTENNAS and below; magnesium_radio_control_init.cpp
    one.antennas = tx ? std::vector<std::string>{"TX/RX"} : std::vector<std::string>{"TX/RX", "RX2", "CAL", "LOCAL"};
    one.antenna = tx ? "TX/RX" : "RX2";
    // magnesium_constants.hpp:ALL_RX_MAX_GAIN, ALL_TX_MAX_GAIN; the stages of the manual gain profile are left out
    one.gains = {{"all", {0.0, tx ? 65.0 : 75.0, 0.5}}};
    // Ours: about +15 dBm leave at the highest gain; a receiver at the lowest gain is full at 0 dBm.
    one.full_scale_dbm = tx ? -50.0 : 0.0;
    one.freq_hz = {1e6, 6e9};      // magnesium_constants.hpp:MAGNESIUM_MIN_FREQ, MAGNESIUM_MAX_FREQ
    one.default_freq_hz = 2.5e9;   // magnesium_radio_control_init.cpp:MAGNESIUM_DEFAULT_FREQ
    one.oscillator_hz = oscillator_hz;
    one.shared_oscillator = true;  // magnesium_radio_control.cpp:set_rx_frequency
    one.bandwidth_hz = {20e6, 100e6};   // magnesium_constants.hpp:AD9371_RX_MIN_BANDWIDTH and below
    one.default_bandwidth_hz = 100e6;   // magnesium_radio_control_init.cpp
    // mpm/python/usrp_mpm/dboard_manager/magnesium.py; magnesium_radio_control.cpp:get_rx_sensor_names
    one.sensors = {"lowband_lo_locked", "ad9371_lo_locked", "lo_locked"};
    // rfnoc/ddc_block_control.cpp, duc_block_control.cpp: 2^0 to 2^2 times 1 to 255, of three half-bands and the limit of
    // fpga/usrp3/top/n3xx/n310_rfnoc_image_core.v
    one.factors = {{1020, 512, 4}, {510, 256, 2}, {255, 1, 1}};
    one.halfbands = 3;
    one.codec = "AD9371";
    one.board_id = 0x150;  // mpm/python/usrp_mpm/dboard_manager/magnesium.py:pids
    // mpmd/mpmd_link_if_ctrl_udp.cpp:MPMD_10GE_DATA_FRAME_MAX_SIZE less 16 of header with a time
    one.packet_octets = 8000;
    one.packet_samples = 8000;
    return one;
}

// Typical flaws at 2.4 GHz, with the AD9371's tracking of IQ and DC on.
medium::Impairments impairments() {
    medium::Impairments one;
    // assumed, behind the tracking: an image 50 dB below the signal, a carrier 55 dB below full scale
    one.tx.iq_gain_db = 0.04;
    one.tx.iq_phase_deg = 0.25;
    one.tx.leakage_dbfs = -55.0;
    one.rx.iq_gain_db = 0.04;  // assumed, as transmitting
    one.rx.iq_phase_deg = 0.25;
    one.rx.leakage_dbfs = -75.0;  // assumed
    // assumed: 0.24 degrees from 100 Hz to 100 MHz
    const medium::MaskPoint mask[] = {{1e3, -97.0}, {1e4, -101.0}, {1e5, -105.0}, {1e6, -124.0}, {1e7, -145.0}};
    std::copy(std::begin(mask), std::end(mask), one.tx.mask);
    std::copy(std::begin(mask), std::end(mask), one.rx.mask);
    one.tolerance_ppm = 0.1;  // assumed: an OCXO that no GPS receiver steers
    one.warm_up_ppm = 0.05;   // assumed, as the time constant
    one.warm_up_s = 120.0;
    one.walk_ppm = 0.0001;  // assumed: 1e-10 from second to second
    one.p1db_dbm = 17.0;    // assumed: 2 dB above full scale at the highest gain
    one.ramp_us = 1.0;  // assumed
    one.noise_figure_lowest_db = 25.0;  // assumed
    one.noise_figure_highest_db = 5.8;  // Ettus's data sheet, at 1.8 GHz
    one.settling_us = 2.0;  // assumed, as slope and edge: analog filters far wider than the rate
    one.slope_db = 0.1;
    one.edge_db = 0.2;
    one.isolation_db = 60.0;  // assumed: transmitters and receivers in compartments of their own
    one.wideband = 1.0;       // the converter takes 100 MHz
    return one;
}

Profile n310() {
    Profile one{};
    one.name = "n310";
    one.product = "n310";                // mpm/python/usrp_mpm/periph_manager/n3xx.py
    one.device = "N300-Series Device";   // n3xx.py:description
    one.board = "ni-n3xx-";              // mpmd/mpmd_prop_tree.cpp: the name of the host in the device
    one.eeprom = {{"product", "n310"}, {"type", "n3xx"}};
    one.versions = {{"mpm_version", "4.3"}, {"fpga_version", "8.1"}};  // n3xx.py:N3XX_FPGA_COMPAT
    one.gpio_banks = {"FP0"};  // magnesium_constants.hpp:MAGNESIUM_FPGPIO_BANK
    one.ports = {{"A", "0", "Magnesium", "Magnesium"},
                 {"A", "1", "Magnesium", "Magnesium"},
                 {"B", "0", "Magnesium", "Magnesium"},
                 {"B", "1", "Magnesium", "Magnesium"}};
    one.rx = direction(false);
    one.tx = direction(true);
    one.master_clock.default_hz = 125e6;  // magnesium_constants.hpp:MAGNESIUM_RADIO_RATE, MAGNESIUM_RADIO_RATES
    one.master_clock.range_hz = {122.88e6, 153.6e6};
    one.master_clock.choices_hz = {122.88e6, 125e6, 153.6e6};
    one.default_rate_sps = 125e6;         // ddc_block_control.cpp, a decimation of 1
    one.nearest = Nearest::kLowerFactor;  // ddc_block_control.cpp:coerce_decim
    one.dsp_bits = 24;                    // ddc_block_control.cpp:_set_freq
    one.board_sensors = {"ref_locked", "gps_locked", "temp", "fan"};  // n3xx.py:mboard_sensor_callback_map
    one.clock_sources = {"external", "internal", "gpsdo"};            // n3xx.py:get_clock_sources
    one.time_sources = {"internal", "external", "gpsdo", "sfp0"};     // n3xx.py:get_time_sources
    one.not_fitted = {"sfp0"};  // White Rabbit, which the usual FPGA image lacks
    one.heeds_clock_source = true;  // n3xx.py:init
    // mpmd_link_if_ctrl_udp.cpp:MAX_RATE_10GIGE, MAX_RATE_1GIGE, MPMD_1GE_DATA_FRAME_MAX_SIZE less headers of 44
    one.links = {{"10gbe", 10e9 / 8, 0}, {"1gbe", 1e9 / 8, 0, 1456}};
    one.wires = {"sc16"};
    one.quantises = true;
    one.tx_buffer_samples = 8192;  // fpga/usrp3/top/n3xx/n310_rfnoc_image_core.yml:buff_size, in octets
    one.impairments = impairments();
    return one;
}

const Declared declared(n310());

}  // namespace
}  // namespace fadelab
