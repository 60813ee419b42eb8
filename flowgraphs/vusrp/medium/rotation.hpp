// What an oscillator's wandering does to a signal: its phase over time, a function of (seeds, tick).

#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "medium/impairments.hpp"
#include "medium/phase_noise.hpp"

namespace fadelab::medium {

// The frequency error beyond the constant one: warm-up and a random walk, straight between tenths of a second.
class Drift {
public:
    Drift(const Impairments& impairments, std::uint64_t seed);

    bool still() const { return warm_up_ppm_ == 0.0 && walk_ppm_ == 0.0; }
    // The integral of the error since the air began, in ppm times seconds.
    double ppm_s(double time_s);

private:
    struct Point {
        double ppm;
        double ppm_s;
    };

    double warm_up_ppm_;
    double warm_up_s_;
    double walk_ppm_;
    std::uint64_t key_;
    std::vector<Point> points_{{0.0, 0.0}};
};

class Rotation {
public:
    // `device` seeds the oscillator, `chain` the noise of one direction's synthesizer.
    Rotation(const Impairments& impairments, const Chain& chain, double rate_sps, std::uint64_t device_seed,
             std::uint64_t chain_seed);

    static bool needed(const Impairments& impairments, const Chain& chain);

    // Turns the samples at ticks [tick, tick + n) of an oscillator at `freq_hz`; `sense` is 1 for a transmitter and -1
    // for a receiver.
    void turn(std::int64_t tick, std::size_t n, double freq_hz, double sense, std::complex<float>* samples);

private:
    double rate_sps_;
    Drift drift_;
    PhaseNoise noise_;
    std::vector<double> radians_;
};

}  // namespace fadelab::medium
