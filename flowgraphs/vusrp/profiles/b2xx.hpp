// What the B200 and the B210 have in common: an AD9361 or AD9364, and USB.

#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "profiles/profile.hpp"

namespace fadelab {

// A synthesizer from 6 to 12 GHz on 80 MHz over 8388593 steps, divided by a power of 2; the fraction is cut off
// (common/ad9361_driver/ad9361_device.cpp:_tune_helper).
inline double ad9361_oscillator_hz(double hz, double /*master_clock_hz*/) {
    constexpr double kReference_hz = 80e6;
    constexpr double kModulus = 8388593.0;
    double divider = 2.0;
    while (hz * divider < 6e9 && divider < 128.0) divider *= 2.0;
    const double turns = hz * divider / kReference_hz;
    const double whole = std::floor(turns);
    return kReference_hz * (whole + std::floor((turns - whole) * kModulus) / kModulus) / divider;
}

inline Direction ad9361_direction(bool tx) {
    Direction one{};
    one.antennas = tx ? std::vector<std::string>{"TX/RX"} : std::vector<std::string>{"TX/RX", "RX2"};
    one.antenna = one.antennas.back();  // b200/b200_impl.cpp:setup_radio
    // include/uhdlib/usrp/common/ad9361_ctrl.hpp:get_gain_names, get_gain_range; ad9361_device.cpp:set_gain cuts off a
    // receive gain, and a transmit attenuation
    if (tx) {
        one.gains = {{"PGA", {0.0, 89.75, 0.25}, Rounding::kUp}};
    } else {
        one.gains = {{"PGA", {0.0, 76.0, 1.0}, Rounding::kDown}};
    }
    // Ours: about +10 dBm leave at the highest transmit gain, the data sheet's order of output power; a receiver at the
    // lowest gain is full at -10 dBm.
    one.full_scale_dbm = tx ? -79.75 : -10.0;
    one.freq_hz = {50e6, 6e9};      // ad9361_ctrl.hpp:get_rf_freq_range
    one.default_freq_hz = 100e6;    // common/ad936x_manager.cpp:DEFAULT_FREQ
    one.oscillator_hz = ad9361_oscillator_hz;
    one.shared_oscillator = true;   // common/ad9361_ctrl.cpp:tune goes by the direction alone
    one.bandwidth_hz = {200e3, 56e6};   // ad9361_device.cpp:AD9361_MIN_BW, AD9361_MAX_BW
    one.default_bandwidth_hz = 56e6;    // ad936x_manager.cpp:DEFAULT_BANDWIDTH
    one.sensors = {"temp", "lo_locked"};  // ad936x_manager.cpp:populate_frontend_subtree, b200_impl.cpp:setup_radio
    if (!tx) {
        one.sensors.emplace_back("rssi");
        one.corrections = {"dc_offset/enable", "iq_balance/enable"};
    }
    // cores/rx_dsp_core_3000.cpp:get_host_rates with is_b200, cores/tx_dsp_core_3000.cpp:get_host_rates; the link that
    // these ask is 10 Gbit/s
    one.factors = {{512, 260, 4}, {256, 130, 2}, {128, 1, 1}};
    one.halfbands = 2;
    // b200/b200_io_impl.cpp:get_rx_stream: frames of 8176 octets (b200_impl.hpp) less 16 of header, the FPGA's limit
    one.packet_octets = 8160;
    one.packet_samples = 4092;
    return one;
}

// Typical flaws at 2.4 GHz, as UHD runs the AD9361: with its corrections of IQ and DC on
// (common/ad936x_manager.cpp:init_codec). "Data sheet" is Ettus's of the B200 and B210 where no other is named.
inline medium::Impairments ad9361_impairments() {
    medium::Impairments one;
    // data sheet: image 35 dB below the signal, carrier 50 dB
    one.tx.iq_gain_db = 0.2;
    one.tx.iq_phase_deg = 1.5;
    one.tx.leakage_dbfs = -50.0;
    one.rx.iq_gain_db = 0.02;  // Analog Devices' data sheet of the AD9361: 0.2 % and 0.2 degrees
    one.rx.iq_phase_deg = 0.2;
    one.rx.leakage_dbfs = -70.0;  // assumed, behind the tracking
    // The AD9361's data sheet: 0.37 degrees at 2.4 GHz, 100 Hz to 100 MHz. Of that its integral; its shape is assumed.
    const medium::MaskPoint mask[] = {{1e3, -96.5}, {1e4, -97.5}, {1e5, -100.5}, {1e6, -121.5}, {1e7, -141.5}};
    std::copy(std::begin(mask), std::end(mask), one.tx.mask);
    std::copy(std::begin(mask), std::end(mask), one.rx.mask);
    one.tolerance_ppm = 2.0;  // data sheet
    one.warm_up_ppm = 0.3;    // assumed, as the time constant
    one.warm_up_s = 60.0;
    one.walk_ppm = 0.001;  // assumed: 1e-9 from second to second, as a TCXO
    one.p1db_dbm = 12.0;   // data sheet: more than 10 dBm of output power
    one.ramp_us = 1.0;     // assumed
    // Data sheet: below 8 dB. A B210 without a signal had -90.9 dBFS in 400 kHz up to a gain of 26 dB (D. Browne,
    // usrp-users, July 2015); with -10 dBm for full scale that is 17 dB at the lowest gain.
    one.noise_figure_lowest_db = 17.0;
    one.noise_figure_highest_db = 8.0;
    one.settling_us = 2.0;  // assumed, as slope and edge: analog filters that follow the rate
    one.slope_db = 0.2;
    one.edge_db = 0.5;
    one.isolation_db = 50.0;  // assumed. The baseband filter follows the sample rate, so that wideband is 0
    return one;
}

inline Profile b2xx(const std::string& product, std::vector<Port> ports) {
    Profile one{};
    one.product = one.board = product;  // b200_iface.hpp:B2XX_STR_NAMES
    one.device = "B-Series Device";     // b200_impl.cpp:b200_impl
    one.codename = "Sasquatch";
    one.versions = {{"fw_version", "8.0"}, {"fpga_version", "16.0"}};  // b200_impl.hpp: numbers of compatibility
    one.gpio_banks = {"FP0"};  // b200_impl.cpp:b200_impl
    one.ports = std::move(ports);
    one.rx = ad9361_direction(false);
    one.tx = ad9361_direction(true);
    one.rx.codec = product + " RX dual ADC";  // b200_impl.cpp:b200_impl
    one.tx.codec = product + " TX dual DAC";
    one.master_clock.default_hz = 16e6;         // ad936x_manager.cpp:DEFAULT_TICK_RATE
    one.master_clock.range_hz = {220e3, 61.44e6};  // ad9361_device.cpp:AD9361_MIN_CLOCK_RATE, AD9361_MAX_CLOCK_RATE
    one.master_clock.automatic = true;  // b200_impl.cpp:b200_impl, auto_tick_rate
    one.master_clock.halved_by_two = true;  // b200_impl.cpp:enforce_tick_rate_limits
    one.default_rate_sps = 1e6;             // rx_dsp_core_3000.cpp:DEFAULT_RATE
    one.nearest = Nearest::kRate;           // rx_dsp_core_3000.cpp:set_host_rate
    one.dsp_bits = 32;                      // cores/dsp_core_utils.cpp:get_freq_and_freq_word
    one.board_sensors = {"ref_locked"};
    one.clock_sources = {"internal", "external", "gpsdo"};  // b200_impl.cpp:b200_impl
    one.time_sources = {"none", "internal", "external", "gpsdo"};
    one.not_fitted = {"gpsdo"};  // b200_impl.cpp:update_clock_source, update_time_source
    // b200_impl.cpp:b200_impl sets both to internal, whatever the device arguments
    one.heeds_clock_source = false;
    one.links = {{"usb3", 500e6, 3}, {"usb2", 53.248e6, 2}};  // b200_impl.hpp:B200_MAX_RATE_USB3, B200_MAX_RATE_USB2
    one.wires = {"sc16", "sc12", "sc8", "fc32"};              // b200_io_impl.cpp:get_rx_stream, get_tx_stream
    one.quantises = true;
    one.pairs_of_chains = true;  // b200_impl.cpp:update_enables
    // 16 frames (b200_impl.cpp:b200_impl, num_send_frames) of 2040 samples
    one.tx_buffer_samples = 32640;
    one.impairments = ad9361_impairments();
    return one;
}

}  // namespace fadelab
