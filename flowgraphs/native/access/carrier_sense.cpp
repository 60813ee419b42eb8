#include "carrier_sense.hpp"

#include <volk/volk.h>

#include <algorithm>
#include <cmath>

namespace gr::fadelab::access {

CarrierSense::CarrierSense(std::size_t window, double threshold_db, std::size_t memory)
    : window_(window),
      ratio_(static_cast<float>(std::pow(10.0, threshold_db / 10.0))),
      part_windows_(std::max<std::size_t>(memory / (window * kParts), kNoiseWindows)) {
    forget();
}

bool CarrierSense::busy(const Sample* samples) {
    const auto* values = reinterpret_cast<const float*>(samples);
    float power = 0.0F;
    volk_32f_x2_dot_prod_32f(&power, values, values, static_cast<unsigned>(2 * window_));
    power /= static_cast<float>(window_);
    sum_ += power;
    if (++summed_ == kNoiseWindows) {
        least_[at_] = std::min(least_[at_], sum_ / static_cast<float>(kNoiseWindows));
        skip();
    }
    if (++in_part_ >= part_windows_) {
        in_part_ = 0;
        known_ = true;
        at_ = (at_ + 1) % kParts;
        least_[at_] = std::numeric_limits<float>::infinity();
    }
    const float floor = noise();
    // also when the power is no number
    return !(power <= ratio_ * floor) || std::isinf(floor);
}

void CarrierSense::skip() {
    sum_ = 0.0F;
    summed_ = 0;
}

void CarrierSense::forget() {
    least_.fill(std::numeric_limits<float>::infinity());
    in_part_ = 0;
    known_ = false;
    skip();
}

float CarrierSense::noise() const {
    return known_ ? *std::min_element(least_.begin(), least_.end()) : std::numeric_limits<float>::infinity();
}

}  // namespace gr::fadelab::access
