// What one directed path of the air does to a signal, as plain data.
//
// LinkOptions lives in shared memory and is written and read by different processes: it is trivially copyable, of one
// size everywhere, and holds no pointer. A default constructed one is a static path of -60 dB.

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fadelab::medium {

constexpr std::size_t kMaxTaps = 24;  // TDL-C of TR 38.901 has the most
constexpr std::size_t kSeriesPathBytes = 256;

// Beyond these, sums of taps would be infinite, and their phases no numbers.
constexpr double kMostGain_db = 200.0;
constexpr double kMostShift_hz = 1e9;

enum TapKind : std::int32_t { kStatic = 0, kRayleigh = 1, kRician = 2 };

// One tap of a tapped delay line. Its Doppler spectrum is the classical one (Clarke, Jakes) of maximum `doppler_hz`;
// with Doppler 0 a fading tap keeps the gain that the seed gave it. A static tap is a line of sight and nothing else.
struct Tap {
    double delay_ns = 0.0;  // on top of the path's own delay
    double power_db = 0.0;  // mean power, line of sight included
    std::int32_t kind = kStatic;
    std::int32_t reserved = 0;
    double k_db = 0.0;            // Rician: line of sight over scattered power
    double doppler_hz = 0.0;      // largest Doppler shift of what is scattered
    double los_doppler_hz = 0.0;  // static, Rician: Doppler shift of the line of sight
    double phase_rad = 0.0;       // static, Rician: phase of the line of sight when the air began
};

// LinkOptions::flags
constexpr std::uint32_t kKeepTapPowers = 1;  // do not normalise the taps to unit total mean power

struct LinkOptions {
    double gain_db = -60.0;
    double delay_ns = 0.0;
    double cfo_hz = 0.0;  // on top of what the two ends' frequencies and clocks make
    std::uint64_t seed_salt = 0;
    std::uint32_t flags = 0;
    std::int32_t n_taps = 0;  // 0: one static tap
    Tap taps[kMaxTaps] = {};
    char series_path[kSeriesPathBytes] = {};  // absolute path of a series that gives the taps; empty: none
};

static_assert(std::is_trivially_copyable_v<LinkOptions> && std::is_standard_layout_v<LinkOptions>);

bool operator==(const Tap& a, const Tap& b);
bool operator==(const LinkOptions& a, const LinkOptions& b);

// Throws std::invalid_argument, one line saying what is wrong, for options no path can be built from. Does not open the
// series.
void validate(const LinkOptions& options);

}  // namespace fadelab::medium
