// The flaws of a device's radio, as plain data; a default constructed one is a perfect radio.
//
// Like LinkOptions it lives in shared memory: trivially copyable, of one size everywhere, no pointer, no padding.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fadelab::medium {

constexpr std::size_t kMaskPoints = 6;

// Phase noise at an offset from the carrier, in one sideband.
struct MaskPoint {
    double hz = 0.0;  // 0: no point
    double dbc_hz = 0.0;
};

// One direction of a device. Full scale is a sample of amplitude 1 at the present gain.
struct Chain {
    double iq_gain_db = 0.0;     // of Q over I, within +-6
    double iq_phase_deg = 0.0;   // how far Q leans to I, within +-30
    double leakage_dbfs = -HUGE_VAL;  // at the carrier, at most 0: transmitting between bursts too, receiving the DC offset
    double bits = 0.0;           // of the converter, each part: 2 to 24; 0: no steps
    double spur_hz = 0.0;        // from the carrier
    double spur_dbfs = -HUGE_VAL;
    MaskPoint mask[kMaskPoints];  // rising offsets, falling noise; straight in dB over log offset, level at both ends
};

struct Impairments {
    Chain rx;
    Chain tx;
    // One oscillator, of carriers and sample clock. Its error is drawn once within +-tolerance; an offset that is set for the device replaces it.
    double tolerance_ppm = 0.0;  // 0 to 100
    double warm_up_ppm = 0.0;    // when the air begins, vanishing with the time constant; within +-100
    double warm_up_s = 60.0;
    double walk_ppm = 0.0;  // root mean square of a random walk after one second, 0 to 10
    // Power amplifier: compressed by 1 dB when it gives p1db_dbm (C. Rapp's model), and its switching on.
    double p1db_dbm = HUGE_VAL;
    double smoothness = 2.0;  // 0.5 to 20
    double ramp_us = 0.0;     // time constant at the start of a burst, 0 to 1000
    // Noise figures at the lowest and highest gain; in between the part that stages behind the gain add falls with it
    // (H. T. Friis, "Noise figures of radio receivers", Proc. IRE 32, 1944). 0 and 0: the same noise at every gain. The
    // air's noise density, where it has been set, takes the place of that at the highest gain.
    double noise_figure_lowest_db = 0.0;
    double noise_figure_highest_db = 0.0;
    double settling_us = 0.0;    // time constant with which the receiver's gain, in dB, follows a change; 0 to 10000
    // The receiver's filters: level a quarter of the sample rate above the carrier over that as far below, within +-6;
    // loss at half the rate, 0 to 20.
    double slope_db = 0.0;
    double edge_db = 0.0;
    double wideband = 0.0;       // 1: the converter sees, and clips, what lies beyond the sample rate
    double isolation_db = 0.0;   // of the own transmitters from the own receivers; 0: their links say it
    // Host and link.
    double hiccups_hz = 0.0;    // mean rate of moments in which received samples are lost, 0 to 10
    double hiccup_ms = 10.0;    // how long each is, 0 to 1000
    double unplug_s = -1.0;     // air time when the device is pulled out; negative: never
};

static_assert(std::is_trivially_copyable_v<Impairments> && std::is_standard_layout_v<Impairments>);

// Throws std::invalid_argument, one line saying what is wrong.
void validate(const Impairments& impairments);

bool operator==(const MaskPoint& a, const MaskPoint& b);
bool operator==(const Chain& a, const Chain& b);
bool operator==(const Impairments& a, const Impairments& b);

// The noise figure at a gain between the lowest and the highest one, in dB.
double noise_figure_db(const Impairments& impairments, double gain_db, double lowest_db, double highest_db);

// The frequency error that a seed draws within the tolerance.
double drawn_ppm(const Impairments& impairments, std::uint64_t seed);

}  // namespace fadelab::medium
