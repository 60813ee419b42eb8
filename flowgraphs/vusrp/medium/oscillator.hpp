// A numerically controlled oscillator whose phase at any tick is exact.
//
// Phase is a 64-bit fraction of a turn and wraps by itself; the increment is rounded once, to 2^-63 of a turn per tick.

#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>

namespace fadelab::medium {

template <std::size_t Block>
class Oscillator {
public:
    explicit Oscillator(double cycles_per_tick) {
        const double fraction = cycles_per_tick - std::nearbyint(cycles_per_tick);
        increment_ = static_cast<std::uint64_t>(std::llrint(std::ldexp(fraction, 63))) << 1;
        for (std::size_t i = 0; i < Block && !still(); ++i) {
            turns_[i] = std::complex<float>(phasor(static_cast<std::int64_t>(i)));
        }
    }

    bool still() const { return increment_ == 0; }

    // Returns the oscillator at a tick; times turns()[i] it is the one i ticks later.
    std::complex<double> phasor(std::int64_t tick) const {
        const auto phase = static_cast<std::int64_t>(increment_ * static_cast<std::uint64_t>(tick));
        const double angle = static_cast<double>(phase) * (0x1p-63 * 3.14159265358979323846);
        return {std::cos(angle), std::sin(angle)};
    }

    // Block of them, unless the oscillator is still.
    const std::complex<float>* turns() const { return turns_.data(); }

private:
    std::uint64_t increment_;
    std::array<std::complex<float>, Block> turns_;
};

}  // namespace fadelab::medium
