#include "medium/rotation.hpp"

#include <algorithm>
#include <cmath>

#include "medium/random.hpp"

namespace fadelab::medium {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr std::int64_t kHold = 64;     // ticks over which a drift is a straight line
constexpr double kStep_s = 0.1;        // of the random walk
constexpr double kTwoPi = 6.283185307179586;

// Variance 1.
double normal(std::uint64_t key) {
    Generator generator(key);
    const double radius = std::sqrt(-2.0 * std::log(1.0 - generator.uniform()));
    return radius * std::cos(kTwoPi * generator.uniform());
}

}  // namespace

Drift::Drift(const Impairments& impairments, std::uint64_t seed)
    : warm_up_ppm_(impairments.warm_up_ppm),
      warm_up_s_(impairments.warm_up_s),
      walk_ppm_(impairments.walk_ppm),
      key_(hash(seed, "walk")) {}

double Drift::ppm_s(double time_s) {
    double sum = -warm_up_ppm_ * warm_up_s_ * std::expm1(-time_s / warm_up_s_);
    if (walk_ppm_ == 0.0 || time_s <= 0.0) return sum;
    const auto at = static_cast<std::size_t>(time_s / kStep_s);
    while (points_.size() < at + 2) {
        const Point& last = points_.back();
        const double ppm = last.ppm + walk_ppm_ * std::sqrt(kStep_s) * normal(hash(key_, points_.size()));
        points_.push_back({ppm, last.ppm_s + 0.5 * (last.ppm + ppm) * kStep_s});
    }
    const double into_s = time_s - static_cast<double>(at) * kStep_s;
    const double slope = (points_[at + 1].ppm - points_[at].ppm) / kStep_s;
    return sum + points_[at].ppm_s + into_s * (points_[at].ppm + 0.5 * slope * into_s);
}

Rotation::Rotation(const Impairments& impairments, const Chain& chain, double rate_sps, std::uint64_t device_seed,
                   std::uint64_t chain_seed)
    : rate_sps_(rate_sps), drift_(impairments, device_seed), noise_(chain.mask, rate_sps, hash(chain_seed, "phase")) {}

bool Rotation::needed(const Impairments& impairments, const Chain& chain) {
    return impairments.warm_up_ppm != 0.0 || impairments.walk_ppm != 0.0 || chain.mask[0].hz > 0.0;
}

void Rotation::turn(std::int64_t tick, std::size_t n, double freq_hz, double sense, std::complex<float>* samples) {
    radians_.resize(kBlock);
    const double per_ppm_s = kTwoPi * freq_hz * 1e-6;
    while (n > 0) {
        const std::size_t count = std::min(n, kBlock);
        std::fill_n(radians_.data(), count, 0.0);
        for (std::size_t i = 0; i < count && !drift_.still();) {
            const std::int64_t at = tick + static_cast<std::int64_t>(i);
            const std::int64_t begin = at - (at & (kHold - 1));
            const double first = drift_.ppm_s(static_cast<double>(begin) / rate_sps_);
            const double slope = (drift_.ppm_s(static_cast<double>(begin + kHold) / rate_sps_) - first) / kHold;
            const std::size_t end = std::min(count, i + static_cast<std::size_t>(begin + kHold - at));
            for (; i < end; ++i) {
                const auto into = static_cast<double>(tick + static_cast<std::int64_t>(i) - begin);
                radians_[i] = std::remainder(per_ppm_s * (first + slope * into), kTwoPi);
            }
        }
        noise_.add(tick, count, radians_.data());
        for (std::size_t i = 0; i < count; ++i) {
            const auto angle = static_cast<float>(sense * radians_[i]);
            const float cosine = std::cos(angle);
            const float sine = std::sin(angle);
            samples[i] = {samples[i].real() * cosine - samples[i].imag() * sine,
                          samples[i].real() * sine + samples[i].imag() * cosine};
        }
        tick += static_cast<std::int64_t>(count);
        samples += count;
        n -= count;
    }
}

}  // namespace fadelab::medium
