#include "medium/interpolator.hpp"

#include <cmath>
#include <type_traits>

#include "medium/clones.hpp"

namespace fadelab::medium {
namespace {

constexpr std::size_t kLength = Interpolator::kLength;
constexpr std::size_t kPhases = 128;

// Modified Bessel function of the first kind, order zero.
double bessel_i0(double x) {
    double sum = 1.0;
    double term = 1.0;
    for (int k = 1; term > 1e-18 * sum; ++k) {
        term *= (x / (2 * k)) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

struct Table {
    float phase[kPhases + 1][kLength];

    Table() {
        constexpr double kPi = 3.14159265358979323846;
        constexpr double kBeta = 7.5;
        constexpr double kHalf = kLength / 2.0;
        for (std::size_t p = 0; p <= kPhases; ++p) {
            for (std::size_t k = 0; k < kLength; ++k) {
                const double t =
                    static_cast<double>(k) - Interpolator::kBefore - static_cast<double>(p) / double(kPhases);
                const double sinc = t == 0.0 ? 1.0 : std::sin(kPi * t) / (kPi * t);
                const double edge = 1.0 - (t / kHalf) * (t / kHalf);
                phase[p][k] =
                    edge < 0.0 ? 0.0f
                               : static_cast<float>(sinc * bessel_i0(kBeta * std::sqrt(edge)) / bessel_i0(kBeta));
            }
        }
    }
};

// Real coefficients treat real and imaginary parts alike, so a sample is two floats to it.
template <typename Count>
inline __attribute__((always_inline)) void convolve(const float* coefficients, const float* samples, Count floats,
                                                    float* out) {
    for (std::size_t i = 0; i < floats; ++i) out[i] = 0.0f;
    for (std::size_t k = 0; k < kLength; ++k) {
        for (std::size_t i = 0; i < floats; ++i) out[i] += coefficients[k] * samples[2 * k + i];
    }
}

}  // namespace

MEDIUM_CLONES
void Interpolator::read(double fraction, const std::complex<float>* samples, std::size_t n, std::complex<float>* out) {
    static const Table table;
    const double position = fraction * double(kPhases);
    const auto at = static_cast<std::size_t>(position);
    const auto weight = static_cast<float>(position - static_cast<double>(at));
    const float* from = table.phase[at];
    const float* to = table.phase[at + 1];
    float coefficients[kLength];
    for (std::size_t k = 0; k < kLength; ++k) coefficients[k] = from[k] + weight * (to[k] - from[k]);

    const auto* floats = reinterpret_cast<const float*>(samples);
    float sums[2 * kHold];
    if (n == kHold) {
        convolve(coefficients, floats, std::integral_constant<std::size_t, 2 * kHold>(), sums);
    } else {
        convolve(coefficients, floats, 2 * n, sums);
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = {sums[2 * i], sums[2 * i + 1]};
}

}  // namespace fadelab::medium
