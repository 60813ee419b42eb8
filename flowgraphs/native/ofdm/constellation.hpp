// Decisions: the points of a constellation nearest to received symbols.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format.hpp"
#include "liquid.hpp"

namespace gr::fadelab::ofdm {

// The level on one axis whose point is nearest to a value: 0 for the lowest. 0 for what is not a number, too.
class Slicer {
public:
    explicit Slicer(const Modulation& modulation)
        : unit_(modulation.unit()),
          per_unit_(0.5F / unit_),
          middle_(0.5F * static_cast<float>(modulation.levels)),
          last_(static_cast<float>(modulation.levels) - 0.5F),
          top_(modulation.levels - 1) {}

    int level(float value) const {
        float at = value * per_unit_ + middle_;
        at = at > 0.0F ? at : 0.0F;
        at = at < last_ ? at : last_;
        return static_cast<int>(at);
    }
    float point(int level) const { return static_cast<float>(2 * level - top_) * unit_; }
    float nearest(float value) const { return point(level(value)); }

private:
    float unit_;
    float per_unit_;
    float middle_;
    float last_;
    int top_;
};

// Puts the nearest points of `count` symbols into `points`.
void decide(const Modulation& modulation, const Sample* symbols, std::size_t count, Sample* points);

// Mean power of what the nearest points leave of the symbols, relative to the points' mean power of 1.
double error_power(const Modulation& modulation, const Sample* symbols, std::size_t count);

// The bits of a modulation's points, as liquid labels them.
class Labels {
public:
    explicit Labels(const Modulation& modulation);

    // Puts the bits of symbols, decided anew, into `octets`, the first bit highest; what does not fit is left out.
    void demap(const Sample* symbols, std::size_t count, std::vector<std::uint8_t>& octets) const;

private:
    template <unsigned kBits>
    void demap(const Sample* symbols, std::size_t count, std::vector<std::uint8_t>& octets) const;

    Modulation modulation_;
    Slicer slicer_;
    std::vector<std::uint8_t> of_;  // by level of I times levels of Q plus level of Q
};

}  // namespace gr::fadelab::ofdm
