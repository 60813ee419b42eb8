#include "medium/gain.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "medium/clones.hpp"
#include "medium/random.hpp"

namespace fadelab::medium {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kPointsPerPeriod = 128.0;
constexpr double kPointsPerInterval = 16.0;
constexpr int kMaxShift = 12;

int shift_for(double ticks) {
    if (!(ticks < double(1 << kMaxShift))) return kMaxShift;
    return ticks < 1.0 ? 0 : std::ilogb(ticks);
}

double largest_doppler_hz(const Tap& tap) {
    const double los_hz = tap.kind == kRayleigh ? 0.0 : std::abs(tap.los_doppler_hz);
    return tap.kind == kStatic ? los_hz : std::max(los_hz, tap.doppler_hz);
}

MEDIUM_CLONES
void line(std::complex<float> start, std::complex<float> step, std::int64_t first, std::size_t n,
          std::complex<float>* out) {
    for (std::size_t i = 0; i < n; ++i) {
        const auto k = static_cast<float>(static_cast<std::int32_t>(first) + static_cast<std::int32_t>(i));
        out[i] = {start.real() + step.real() * k, start.imag() + step.imag() * k};
    }
}

constexpr std::size_t kLanes = 8;

// Writes sums of phasors, each phasor turned by its step from one sum to the next; `count` is a multiple of kLanes.
MEDIUM_CLONES
void sum_turning(double* re, double* im, const double* step_re, const double* step_im, std::size_t count,
                 std::size_t n, std::complex<float>* out) {
    for (std::size_t i = 0; i < n; ++i) {
        double sum_re[kLanes] = {};
        double sum_im[kLanes] = {};
        for (std::size_t p = 0; p < count; p += kLanes) {
            for (std::size_t l = 0; l < kLanes; ++l) {
                const double x = re[p + l];
                const double y = im[p + l];
                sum_re[l] += x;
                sum_im[l] += y;
                re[p + l] = x * step_re[p + l] - y * step_im[p + l];
                im[p + l] = x * step_im[p + l] + y * step_re[p + l];
            }
        }
        const auto total = [](const double* sum) {
            return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
        };
        out[i] = {static_cast<float>(total(sum_re)), static_cast<float>(total(sum_im))};
    }
}

}  // namespace

Gain::Gain(double ticks_per_point) : shift_(shift_for(ticks_per_point)) {}

void Gain::fill(std::int64_t tick, std::size_t n, std::complex<float>* out) {
    const std::int64_t spacing = ticks_per_point();
    const float per_tick = 1.0f / static_cast<float>(spacing);
    while (n > 0) {
        const std::int64_t point = tick >> shift_;
        const std::int64_t group = point >> 6;
        if (group != computed_) {
            compute((group << 6) << shift_, points_.data());
            computed_ = group;
        }
        const std::int64_t first = tick & (spacing - 1);
        const std::size_t count = std::min(n, static_cast<std::size_t>(spacing - first));
        const auto* points = &points_[static_cast<std::size_t>(point & 63)];
        line(points[0], (points[1] - points[0]) * per_tick, first, count, out);
        tick += static_cast<std::int64_t>(count);
        out += count;
        n -= count;
    }
}

Fading::Fading(const Tap& tap, double amplitude, double ticks_per_second, std::uint64_t seed)
    : Gain(ticks_per_second / (kPointsPerPeriod * largest_doppler_hz(tap))),
      varies_(largest_doppler_hz(tap) > 0.0),
      seconds_per_tick_(1.0 / ticks_per_second) {
    const double k = std::pow(10.0, tap.k_db / 10.0);
    const double scattered = tap.kind == kStatic ? 0.0 : tap.kind == kRayleigh ? 1.0 : std::sqrt(1.0 / (1.0 + k));
    const double specular = std::sqrt(1.0 - scattered * scattered);
    Generator generator(seed);
    for (std::size_t n = 0; n < kSinusoids; ++n) {
        const double theta = kPi * (2.0 * generator.uniform() - 1.0);
        const double alpha = (2.0 * kPi * static_cast<double>(n) + theta) / double(kSinusoids);
        amplitude_[n] = amplitude * scattered / std::sqrt(double(kSinusoids));
        frequency_hz_[n] = tap.doppler_hz * std::cos(alpha);
        phase_rad_[n] = kPi * (2.0 * generator.uniform() - 1.0);
    }
    amplitude_[kSinusoids] = amplitude * specular;
    frequency_hz_[kSinusoids] = tap.los_doppler_hz;
    phase_rad_[kSinusoids] = tap.phase_rad;
    const double seconds_per_point = static_cast<double>(ticks_per_point()) * seconds_per_tick_;
    for (std::size_t n = 0; n < kAll; ++n) {
        const double angle = 2.0 * kPi * frequency_hz_[n] * seconds_per_point;
        step_re_[n] = std::cos(angle);
        step_im_[n] = std::sin(angle);
    }
}

std::complex<float> Fading::at_start() const {
    std::complex<double> sum;
    for (std::size_t n = 0; n < kAll; ++n) sum += std::polar(amplitude_[n], phase_rad_[n]);
    return std::complex<float>(sum);
}

void Fading::compute(std::int64_t tick, std::complex<float>* points) const {
    const double seconds = static_cast<double>(tick) * seconds_per_tick_;
    double re[kAll];
    double im[kAll];
    for (std::size_t n = 0; n < kAll; ++n) {
        const double turns = frequency_hz_[n] * seconds;
        const double angle = 2.0 * kPi * (turns - std::floor(turns)) + phase_rad_[n];
        re[n] = amplitude_[n] * std::cos(angle);
        im[n] = amplitude_[n] * std::sin(angle);
    }
    static_assert(kAll % kLanes == 0);
    sum_turning(re, im, step_re_.data(), step_im_.data(), kAll, kPoints + 1, points);
}

Followed::Followed(std::shared_ptr<const Series> series, std::size_t tap, double amplitude, double ticks_per_second)
    : Gain(series->interval_ns() * 1e-9 * ticks_per_second / kPointsPerInterval),
      series_(std::move(series)),
      tap_(tap),
      amplitude_(amplitude),
      ns_per_tick_(1e9 / ticks_per_second) {}

void Followed::compute(std::int64_t tick, std::complex<float>* points) const {
    for (std::size_t p = 0; p <= kPoints; ++p) {
        const std::int64_t at = tick + static_cast<std::int64_t>(p) * ticks_per_point();
        points[p] = std::complex<float>(amplitude_ * series_->gain(tap_, static_cast<double>(at) * ns_per_tick_));
    }
}

}  // namespace fadelab::medium
