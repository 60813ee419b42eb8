// How far the sample clocks at both ends of a path have wandered apart, a function of (seeds, tick).

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "medium/rotation.hpp"

namespace fadelab::medium {

// Most that a clock wanders, in seconds: a receiver waits so much longer for samples, and so the clock stays there.
constexpr double kMostWander_s = 100e-6;

class Wander {
public:
    Wander() = default;
    Wander(const std::optional<Drift>& tx, const std::optional<Drift>& rx, double rate_sps)
        : tx_(tx), rx_(rx), rate_sps_(rate_sps) {}

    bool none() const { return !tx_ && !rx_; }

    // Transmitter ticks that a receiver tick lies further on, straight between multiples of kLine.
    double ticks(std::int64_t tick) {
        const std::int64_t line = tick >> kLineBits;
        if (line != line_) {
            line_ = line;
            begin_ = exact(line * kLine);
            slope_ = (exact((line + 1) * kLine) - begin_) / static_cast<double>(kLine);
        }
        return begin_ + slope_ * static_cast<double>(tick - line * kLine);
    }

private:
    static constexpr int kLineBits = 12;
    static constexpr std::int64_t kLine = std::int64_t{1} << kLineBits;

    double exact(std::int64_t tick) {
        const double time_s = static_cast<double>(tick) / rate_sps_;
        return rate_sps_ * (seconds(tx_, time_s) - seconds(rx_, time_s));
    }

    static double seconds(std::optional<Drift>& drift, double time_s) {
        if (!drift || time_s <= 0.0) return 0.0;
        return std::clamp(drift->ppm_s(time_s) * 1e-6, -kMostWander_s, kMostWander_s);
    }

    std::optional<Drift> tx_;
    std::optional<Drift> rx_;
    double rate_sps_ = 1.0;
    std::int64_t line_ = INT64_MIN;
    double begin_ = 0.0;
    double slope_ = 0.0;
};

}  // namespace fadelab::medium
