// The power model: what a sample of amplitude 1 is worth at the antenna. See README.md.

#pragma once

#include <cmath>

namespace fadelab {

constexpr double kMaxGain_db = 60.0;
constexpr double kDefaultNoise_dbm_hz = -168.0;  // kT at 290 K and a noise figure of 6 dB

inline double tx_full_scale_dbm(double gain_db) { return gain_db - 40.0; }
inline double rx_full_scale_dbm(double gain_db) { return -10.0 - gain_db; }

// Linear amplitude of a level.
inline double amplitude(double db) { return std::pow(10.0, db / 20.0); }

}  // namespace fadelab
