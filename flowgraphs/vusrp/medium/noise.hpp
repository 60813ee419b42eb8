// White Gaussian noise, a function of (seed, port, tick).
//
// Read first: G. Marsaglia and W. W. Tsang, "The ziggurat method for generating random variables", Journal of
// Statistical Software 5 (2000). Every 256 ticks start a generator of their own, so that any stretch can be had without
// the ones before it.

#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>

namespace fadelab::medium {

class Noise {
public:
    // `port` tells the receivers of one seed apart.
    Noise(std::uint64_t seed, std::uint64_t port);

    // Adds noise at ticks [tick, tick + n) to acc[0 ... n): mean power per sample sigma squared, half of it in each of
    // the real and imaginary parts.
    void add(std::int64_t tick, std::size_t n, float sigma, std::complex<float>* acc);

private:
    static constexpr std::size_t kBlock = 256;  // ticks

    void fill(std::int64_t block);

    std::uint64_t key_;
    std::int64_t filled_ = INT64_MIN;  // the block that block_ holds
    std::array<std::complex<float>, kBlock> block_;
};

}  // namespace fadelab::medium
