// Phase noise after a mask, a function of (seed, tick).
//
// White noises at the sample rate and at a half, a quarter, ... of it are smoothed by cubic B-splines and added; their
// powers are fitted to the mask. A spline of one rate is one of twice that rate (subdivision), so that a stretch costs
// two operations per tick and level of a few, and any stretch can be had without the ones before it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "medium/impairments.hpp"

namespace fadelab::medium {

class PhaseNoise {
public:
    PhaseNoise(const MaskPoint (&mask)[kMaskPoints], double rate_sps, std::uint64_t seed);

    // Adds the phase at ticks [tick, tick + n), in radians.
    void add(std::int64_t tick, std::size_t n, double* radians);

private:
    struct Level {
        float deviation;
        std::uint64_t key;
        std::vector<float> points;
    };

    const float* points(std::size_t level, std::int64_t first, std::size_t n);

    std::vector<Level> levels_;  // empty: none
};

}  // namespace fadelab::medium
