// The power model; a profile says what a sample of amplitude 1 is worth at the antenna. See README.md.

#pragma once

#include <cmath>

namespace fadelab {

constexpr double kThermalNoise_dbm_hz = -174.0;    // kT at 290 K
constexpr double kDefaultNoise_dbm_hz = -168.0;  // kT at 290 K and a noise figure of 6 dB

// Linear amplitude of a level.
inline double amplitude(double db) { return std::pow(10.0, db / 20.0); }

}  // namespace fadelab
