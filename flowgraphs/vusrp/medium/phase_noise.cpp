#include "medium/phase_noise.hpp"

#include <algorithm>
#include <cmath>

#include "medium/clones.hpp"
#include "medium/random.hpp"

namespace fadelab::medium {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr std::size_t kMostLevels = 30;
constexpr double kPi = 3.14159265358979323846;

double mask_at(const MaskPoint (&mask)[kMaskPoints], std::size_t n, double hz) {
    if (hz <= mask[0].hz) return std::pow(10.0, mask[0].dbc_hz / 10.0);
    for (std::size_t i = 1; i < n; ++i) {
        if (hz > mask[i].hz) continue;
        const double share = std::log(hz / mask[i - 1].hz) / std::log(mask[i].hz / mask[i - 1].hz);
        return std::pow(10.0, (mask[i - 1].dbc_hz + share * (mask[i].dbc_hz - mask[i - 1].dbc_hz)) / 10.0);
    }
    return std::pow(10.0, mask[n - 1].dbc_hz / 10.0);
}

// Power at a frequency, in cycles per tick, that a white noise of one level has left; 1 at frequency 0.
double left_of(std::size_t level, double cycles) {
    double power = 1.0;
    for (std::size_t i = 0; i < level; ++i) {
        const double cosine = std::cos(kPi * cycles * std::ldexp(1.0, static_cast<int>(i)));
        power *= std::pow(cosine * cosine, 4);
    }
    return power;
}

// Sum of four uniform numbers: variance 1, ends at 3.5.
float gaussian(std::uint64_t bits) {
    const auto part = [bits](int shift) { return static_cast<std::int32_t>((bits >> shift) & 0xffff); };
    return static_cast<float>(part(0) + part(16) + part(32) + part(48) - 131070) * (1.0F / 37837.2266F);
}

MEDIUM_CLONES
void add_white(std::uint64_t key, std::int64_t first, std::size_t n, float deviation, float* out) {
    for (std::size_t i = 0; i < n; ++i) {
        out[i] += deviation * gaussian(hash(key, static_cast<std::uint64_t>(first + static_cast<std::int64_t>(i))));
    }
}

}  // namespace

PhaseNoise::PhaseNoise(const MaskPoint (&mask)[kMaskPoints], double rate_sps, std::uint64_t seed) {
    std::size_t n = 0;
    while (n < kMaskPoints && mask[n].hz > 0.0) ++n;
    if (n == 0) return;
    const double octaves = std::log2(rate_sps / mask[0].hz);
    const auto count = std::min(static_cast<std::size_t>(std::max(std::ceil(octaves), 0.0)) + 1, kMostLevels);

    constexpr int kPerOctave = 8;
    constexpr int kRounds = 400;
    std::vector<double> wanted;
    std::vector<std::vector<double>> shapes;  // of each frequency: all levels
    const double lowest = std::ldexp(0.125, 1 - static_cast<int>(count));
    double cycles = 0.5;
    while (cycles >= lowest) {
        wanted.push_back(mask_at(mask, n, cycles * rate_sps));
        std::vector<double>& shape = shapes.emplace_back();
        for (std::size_t level = 0; level < count; ++level) shape.push_back(left_of(level, cycles));
        cycles *= std::exp2(-1.0 / kPerOctave);
    }
    std::vector<double> density(count);
    for (std::size_t level = 0; level < count; ++level) {
        density[level] = mask_at(mask, n, 0.2 * std::ldexp(rate_sps, -static_cast<int>(level)));
    }
    // Least squares of relative errors without negative densities, by multiplicative updates.
    for (int round = 0; round < kRounds; ++round) {
        std::vector<double> asked(count);
        std::vector<double> there(count);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            double sum = 0.0;
            for (std::size_t level = 0; level < count; ++level) sum += density[level] * shapes[i][level];
            for (std::size_t level = 0; level < count; ++level) {
                asked[level] += shapes[i][level] / wanted[i];
                there[level] += shapes[i][level] * sum / (wanted[i] * wanted[i]);
            }
        }
        for (std::size_t level = 0; level < count; ++level) density[level] *= asked[level] / there[level];
    }
    for (std::size_t level = 0; level < count; ++level) {
        const double rate = std::ldexp(rate_sps, -static_cast<int>(level));
        levels_.push_back({static_cast<float>(std::sqrt(density[level] * rate)), hash(seed, level), {}});
    }
}

void PhaseNoise::add(std::int64_t tick, std::size_t n, double* radians) {
    if (levels_.empty()) return;
    while (n > 0) {
        const std::size_t count = std::min(n, kBlock);
        const float* found = points(0, tick, count);
        for (std::size_t i = 0; i < count; ++i) radians[i] += static_cast<double>(found[i]);
        tick += static_cast<std::int64_t>(count);
        radians += count;
        n -= count;
    }
}

// As deep as there are levels. NOLINTNEXTLINE(misc-no-recursion)
const float* PhaseNoise::points(std::size_t level, std::int64_t first, std::size_t n) {
    Level& one = levels_[level];
    one.points.assign(n, 0.0F);
    if (level + 1 < levels_.size()) {
        const std::int64_t last = first + static_cast<std::int64_t>(n) - 1;
        const std::int64_t begin = (first >> 1) - 1;
        const float* coarse = points(level + 1, begin, static_cast<std::size_t>((last >> 1) + 2 - begin));
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t at = first + static_cast<std::int64_t>(i);
            const float* c = coarse + ((at >> 1) - begin);
            one.points[i] = (at & 1) != 0 ? 0.5F * (c[0] + c[1]) : 0.125F * (c[-1] + 6.0F * c[0] + c[1]);
        }
    }
    add_white(one.key, first, n, one.deviation, one.points.data());
    return one.points.data();
}

}  // namespace fadelab::medium
