#include "rotation.hpp"

#include <array>
#include <cmath>

#include "arithmetic.hpp"
#include "clones.hpp"

namespace gr::fadelab::ofdm {

namespace {

// Samples turned at once.
constexpr std::size_t kLanes = 8;

struct Lanes {
    std::array<float, kLanes> i;
    std::array<float, kLanes> q;
};

// Returns what the next sample is to be turned by.
FADELAB_CLONES
Sample turn(const float* samples, std::size_t rows, Lanes lanes, float step_i, float step_q, float* out) {
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float i = samples[2 * (row * kLanes + lane)];
            const float q = samples[2 * (row * kLanes + lane) + 1];
            out[2 * (row * kLanes + lane)] = i * lanes.i[lane] - q * lanes.q[lane];
            out[2 * (row * kLanes + lane) + 1] = i * lanes.q[lane] + q * lanes.i[lane];
        }
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float i = lanes.i[lane];
            lanes.i[lane] = i * step_i - lanes.q[lane] * step_q;
            lanes.q[lane] = i * step_q + lanes.q[lane] * step_i;
        }
    }
    return {lanes.i[0], lanes.q[0]};
}

}  // namespace

Sample phasor(double angle) {
    constexpr double kTurn = 2.0 * M_PI;
    const auto rest = static_cast<float>(angle - kTurn * std::rint(angle / kTurn));
    return {std::cos(rest), std::sin(rest)};
}

void rotate(const Sample* samples, std::size_t count, Sample first, Sample step, Sample* out) {
    Lanes lanes{};
    Sample at = first;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes.i[lane] = at.real();
        lanes.q[lane] = at.imag();
        at = product(at, step);
    }
    Sample row(1.0F, 0.0F);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        row = product(row, step);
    }
    const std::size_t rows = count / kLanes;
    at = turn(reinterpret_cast<const float*>(samples), rows, lanes, row.real(), row.imag(),
              reinterpret_cast<float*>(out));
    for (std::size_t i = rows * kLanes; i < count; ++i) {
        out[i] = product(samples[i], at);
        at = product(at, step);
    }
}

}  // namespace gr::fadelab::ofdm
