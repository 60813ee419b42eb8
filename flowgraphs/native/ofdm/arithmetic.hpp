// Complex arithmetic without C++'s care for infinities, which costs a branch for every product.

#pragma once

#include <algorithm>
#include <cmath>

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

inline Sample product(Sample a, Sample b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// a times the conjugate of b.
inline Sample product_conjugate(Sample a, Sample b) {
    return {a.real() * b.real() + a.imag() * b.imag(), a.imag() * b.real() - a.real() * b.imag()};
}

inline float power(Sample a) {
    return a.real() * a.real() + a.imag() * a.imag();
}

// Kept away from 0, to divide by.
inline float floored(float value) {
    return std::max(value, 1e-20F);
}

// The factor that takes a gain away again.
inline Sample inverse(Sample gain) {
    const float scale = 1.0F / floored(power(gain));
    return {gain.real() * scale, -gain.imag() * scale};
}

inline double decibels(double ratio) {
    return 10.0 * std::log10(std::max(ratio, 1e-20));
}

}  // namespace gr::fadelab::ofdm
