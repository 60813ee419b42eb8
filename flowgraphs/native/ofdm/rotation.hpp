// Samples turned by a phase that advances evenly: a carrier offset, or a delay as subcarriers see it.

#pragma once

#include <cstddef>

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

// e^(j `angle`), the angle in radians and of any size.
Sample phasor(double angle);

// Puts `count` samples, each times `first` and as many times `step` as its index says, into `out`, which may be
// `samples`. Both factors have amplitude 1.
void rotate(const Sample* samples, std::size_t count, Sample first, Sample step, Sample* out);

}  // namespace gr::fadelab::ofdm
