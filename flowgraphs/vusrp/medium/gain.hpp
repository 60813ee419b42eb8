// The complex gain of a tap over time: fading, or followed from a series.
//
// Read first: C. Xiao, Y. R. Zheng and N. C. Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and
// Rician fading channels", IEEE Trans. Wireless Commun. 5(12), 2006.
//
// A gain is computed at points 2^shift ticks apart, counted from tick 0, and linear between them. Fading has 128 points
// or more per period of its largest Doppler shift (error below -70 dB, root mean square), a series 16 or more per
// interval; both have one at least every 4096 ticks.

#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "medium/options.hpp"
#include "medium/series.hpp"

namespace fadelab::medium {

class Gain {
public:
    virtual ~Gain() = default;

    // Writes the gain at ticks [tick, tick + n).
    void fill(std::int64_t tick, std::size_t n, std::complex<float>* out);

protected:
    static constexpr std::size_t kPoints = 64;  // computed together

    // `ticks_per_point` is rounded down to a power of two, 4096 at most.
    explicit Gain(double ticks_per_point);

    std::int64_t ticks_per_point() const { return std::int64_t{1} << shift_; }

    // Writes kPoints + 1 points, the first of them at `tick`.
    virtual void compute(std::int64_t tick, std::complex<float>* points) const = 0;

private:
    int shift_;
    std::int64_t computed_ = INT64_MIN;  // which points points_ holds, in kPoints
    std::array<std::complex<float>, kPoints + 1> points_;
};

// Rayleigh and Rician fading; a static tap with a Doppler shift is a Rician one without scattering.
class Fading : public Gain {
public:
    // `amplitude` is the root of the tap's mean power, `ticks_per_second` in air time.
    Fading(const Tap& tap, double amplitude, double ticks_per_second, std::uint64_t seed);

    // Returns the gain when the air began, which it keeps unless it varies.
    std::complex<float> at_start() const;
    bool varies() const { return varies_; }

private:
    static constexpr std::size_t kSinusoids = 64;
    static constexpr std::size_t kAll = kSinusoids + 8;  // the line of sight, then zeros up to a whole vector

    void compute(std::int64_t tick, std::complex<float>* points) const override;

    bool varies_;
    double seconds_per_tick_;
    std::array<double, kAll> amplitude_{};
    std::array<double, kAll> frequency_hz_{};
    std::array<double, kAll> phase_rad_{};
    std::array<double, kAll> step_re_{};  // turn from one point to the next
    std::array<double, kAll> step_im_{};
};

class Followed : public Gain {
public:
    Followed(std::shared_ptr<const Series> series, std::size_t tap, double amplitude, double ticks_per_second);

private:
    void compute(std::int64_t tick, std::complex<float>* points) const override;

    std::shared_ptr<const Series> series_;
    std::size_t tap_;
    double amplitude_;
    double ns_per_tick_;
};

}  // namespace fadelab::medium
