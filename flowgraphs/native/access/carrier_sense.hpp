// Whether a carrier is in use, from the power of received samples.
//
// Rules kept: the noise is the least mean power of `kNoiseWindows` windows in a row within the memory; until a part of
// the memory is full, it is not known, and the carrier counts as busy. Samples of deaf times do not count.

#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <limits>

namespace gr::fadelab::access {

class CarrierSense {
public:
    using Sample = std::complex<float>;

    // Power is the mean of `window` samples; from `threshold_db` above the noise on the carrier is busy. The noise is
    // forgotten after `memory` samples.
    CarrierSense(std::size_t window, double threshold_db, std::size_t memory);

    std::size_t window() const { return window_; }
    // Takes one window; returns whether the carrier is busy.
    bool busy(const Sample* samples);
    // The next window does not follow the last one.
    void skip();
    // The noise is another from now on.
    void forget();
    bool known() const { return known_; }
    // Mean power of a sample; infinite until it is known.
    float noise() const;

private:
    static constexpr std::size_t kNoiseWindows = 8;
    static constexpr std::size_t kParts = 8;

    std::size_t window_;
    float ratio_;
    std::size_t part_windows_;
    // The least power of each part of the memory; `least_[at_]` is the newest.
    std::array<float, kParts> least_;
    std::size_t at_ = 0;
    std::size_t in_part_ = 0;
    bool known_ = false;
    float sum_ = 0.0F;
    std::size_t summed_ = 0;
};

}  // namespace gr::fadelab::access
