// What the stages of a radio do to samples, one by one and without memory. Samples of amplitude 1 are full scale.

#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "medium/impairments.hpp"
#include "medium/oscillator.hpp"

namespace fadelab::medium {

// I stays; Q is I and Q seen askew, and too large or small.
class Imbalance {
public:
    explicit Imbalance(const Chain& chain);
    void apply(std::size_t n, std::complex<float>* samples) const;

private:
    bool none_;
    float of_i_;
    float of_q_;
};

// A tone at the spur's frequency, and one at the carrier where `leakage` is asked for; `seed` gives their phases.
class Tones {
public:
    Tones(const Chain& chain, bool leakage, double rate_sps, std::uint64_t seed);
    void add(std::int64_t tick, std::size_t n, std::complex<float>* samples) const;

private:
    static constexpr std::size_t kBlock = 256;
    std::complex<float> leakage_;
    std::complex<float> spur_;
    Oscillator<kBlock> oscillator_;
};

// The leakage of a chain at its carrier.
std::complex<float> leakage(const Chain& chain, std::uint64_t seed);

// C. Rapp's amplifier: saturates without turning the phase.
class Amplifier {
public:
    explicit Amplifier(const Impairments& impairments);
    // `full_scale_dbm`: output of a sample of amplitude 1 if it were linear.
    void apply(double full_scale_dbm, std::size_t n, std::complex<float>* samples) const;
    // The `first` sample lies so many ticks after the amplifier was switched on.
    void ramp(std::int64_t first, double rate_sps, std::size_t n, std::complex<float>* samples) const;

private:
    double p1db_dbm_;
    double smoothness_;
    double ramp_s_;
};

// The filters' slope and the loss at their edges, by a look at one sample on either side:
// 1 - a (1 - cos w) / 2 + b sin w at w radians per sample.
class Filter {
public:
    static constexpr std::size_t kReach = 1;

    explicit Filter(const Impairments& impairments);
    bool none() const { return none_; }
    // Filters `samples`, whose first lies kReach before the first of `out` and whose last as far behind its last.
    void apply(const std::complex<float>* samples, std::size_t n, std::complex<float>* out) const;

private:
    bool none_;
    float middle_;
    float even_;  // of the sum of both neighbours
    float odd_;   // of the one behind less the one before, turned back by a quarter
};

// Rounds the parts to steps of 2^(1 - bits) and clips them.
class Converter {
public:
    explicit Converter(const Chain& chain);
    void apply(std::size_t n, std::complex<float>* samples) const;
    // Clips when a signal beyond the sample rate, of this power at each sample, comes on top.
    static void clip_below(const float* power, std::size_t n, std::complex<float>* samples);

private:
    float steps_;  // per unit; 0: none
};

}  // namespace fadelab::medium
