// What a channel of few taps can be over frequency.

#pragma once

#include <vector>

#include "format.hpp"
#include "liquid.hpp"

namespace gr::fadelab::ofdm {

// Returns an orthonormal basis of what `cyclic_prefix` taps can be, as seen by the active subcarriers.
std::vector<std::vector<Sample>> tap_basis(const Format& format);

}  // namespace gr::fadelab::ofdm
