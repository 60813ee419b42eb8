#include "medium/options.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <tuple>

namespace fadelab::medium {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

void require_finite(double value, const std::string& name) {
    if (!std::isfinite(value)) refuse(name + " must be a finite number");
}

void require_gain(double value_db, const std::string& name) {
    require_finite(value_db, name);
    if (value_db > kMostGain_db) refuse(name + " must be at most 200 dB");
}

void require_shift(double value_hz, const std::string& name) {
    require_finite(value_hz, name);
    if (std::abs(value_hz) > kMostShift_hz) refuse(name + " must lie between -1e9 and 1e9 Hz");
}

void require_delay(double delay_ns, const std::string& name) {
    if (!(delay_ns >= 0.0 && delay_ns <= 1e9)) refuse(name + " must lie between 0 and 1e9 (one second)");
}

// All members but `reserved`; a member too few or too many does not compile.
auto members(const Tap& tap) {
    const auto& [delay, power, kind, reserved, k, doppler, los_doppler, phase] = tap;
    static_cast<void>(reserved);
    return std::tie(delay, power, kind, k, doppler, los_doppler, phase);
}

// All members but the arrays.
auto members(const LinkOptions& options) {
    const auto& [gain, delay, cfo, seed_salt, flags, n_taps, taps, series_path] = options;
    static_cast<void>(taps);
    static_cast<void>(series_path);
    return std::tie(gain, delay, cfo, seed_salt, flags, n_taps);
}

}  // namespace

bool operator==(const Tap& a, const Tap& b) { return members(a) == members(b); }

bool operator==(const LinkOptions& a, const LinkOptions& b) {
    return members(a) == members(b) && std::equal(std::begin(a.taps), std::end(a.taps), std::begin(b.taps)) &&
           std::strncmp(a.series_path, b.series_path, kSeriesPathBytes) == 0;
}

void validate(const LinkOptions& options) {
    require_gain(options.gain_db, "gain_db");
    require_shift(options.cfo_hz, "cfo_hz");
    require_delay(options.delay_ns, "delay_ns");
    if ((options.flags & ~kKeepTapPowers) != 0) refuse("flags has unknown bits");
    if (options.n_taps < 0 || options.n_taps > static_cast<std::int32_t>(kMaxTaps)) {
        refuse("a path has 0 to " + std::to_string(kMaxTaps) + " taps, not " + std::to_string(options.n_taps));
    }
    for (std::int32_t i = 0; i < options.n_taps; ++i) {
        const Tap& tap = options.taps[i];
        const std::string name = "tap " + std::to_string(i) + ": ";
        if (tap.kind != kStatic && tap.kind != kRayleigh && tap.kind != kRician) {
            refuse(name + "kind is 0 (static), 1 (Rayleigh) or 2 (Rician), not " + std::to_string(tap.kind));
        }
        require_delay(tap.delay_ns, name + "delay_ns");
        require_gain(tap.power_db, name + "power_db");
        require_gain(tap.k_db, name + "k_db");
        require_shift(tap.los_doppler_hz, name + "los_doppler_hz");
        require_finite(tap.phase_rad, name + "phase_rad");
        require_shift(tap.doppler_hz, name + "doppler_hz");
        if (tap.doppler_hz < 0.0) refuse(name + "doppler_hz must be 0 or more");
    }
    if (std::memchr(options.series_path, '\0', kSeriesPathBytes) == nullptr) {
        refuse("series_path is longer than " + std::to_string(kSeriesPathBytes - 1) + " bytes");
    }
    if (options.series_path[0] != '\0') {
        if (options.series_path[0] != '/') refuse("series_path must be absolute: several programs open it");
        if (options.n_taps != 0) refuse("a path has taps of its own or those of a series, not both");
    }
}

}  // namespace fadelab::medium
