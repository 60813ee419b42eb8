#include "medium/noise.hpp"

#include <algorithm>
#include <cmath>

#include "medium/random.hpp"

namespace fadelab::medium {
namespace {

// The half normal density under 256 layers of one area each: x[i] is the width of layer i, x[0] that of a rectangle as
// large as the base layer, whose tail begins at x[1].
struct Ziggurat {
    static constexpr int kLayers = 256;
    static constexpr double kTail = 3.6541528853610088;
    static constexpr double kArea = 0.00492867323399;

    float x[kLayers + 1];
    double density[kLayers + 1];

    Ziggurat() {
        double width = kTail;
        x[0] = static_cast<float>(kArea / std::exp(-0.5 * kTail * kTail));
        density[0] = 0.0;
        for (int i = 1; i < kLayers; ++i) {
            x[i] = static_cast<float>(width);
            density[i] = std::exp(-0.5 * width * width);
            width = std::sqrt(-2.0 * std::log(kArea / width + density[i]));
        }
        x[kLayers] = 0.0f;
        density[kLayers] = 1.0;
    }
};

// A try: bits 0-7 choose the layer, the others are uniform between its two ends.
inline float tried(const Ziggurat& z, std::uint32_t bits) {
    const auto across = static_cast<float>(static_cast<std::int32_t>(bits) >> 8);
    return (across + 0.5f) * 0x1p-23f * z.x[bits & 255];
}

double exponential(Generator& generator) { return -std::log(1.0 - generator.uniform()); }

// A draw whose first try lies where the density crosses its layer.
float draw_at_edge(const Ziggurat& z, Generator& generator, std::uint32_t bits) {
    for (;;) {
        const float value = tried(z, bits);
        const std::uint32_t layer = bits & 255;
        if (std::abs(value) < z.x[layer + 1]) return value;
        if (layer == 0) {
            double beyond = 0.0;
            do {
                beyond = exponential(generator) / Ziggurat::kTail;
            } while (2.0 * exponential(generator) < beyond * beyond);
            return std::copysign(static_cast<float>(Ziggurat::kTail + beyond), value);
        }
        const double height = z.density[layer] + (z.density[layer + 1] - z.density[layer]) * generator.uniform();
        if (height < std::exp(-0.5 * double(value) * double(value))) return value;
        bits = static_cast<std::uint32_t>(generator() >> 32);
    }
}

inline float draw(const Ziggurat& z, Generator& generator, std::uint32_t bits) {
    const float value = tried(z, bits);
    return std::abs(value) < z.x[(bits & 255) + 1] ? value : draw_at_edge(z, generator, bits);
}

}  // namespace

Noise::Noise(std::uint64_t seed, std::uint64_t port) : key_(hash(hash(seed, "noise"), port)) {}

void Noise::add(std::int64_t tick, std::size_t n, float sigma, std::complex<float>* acc) {
    const float deviation = sigma * 0.70710678f;
    while (n > 0) {
        const std::int64_t block = tick >> 8;
        const auto at = static_cast<std::size_t>(tick & 255);
        const std::size_t count = std::min(n, kBlock - at);
        if (block != filled_) fill(block);
        for (std::size_t i = 0; i < count; ++i) acc[i] += deviation * block_[at + i];
        tick += static_cast<std::int64_t>(count);
        acc += count;
        n -= count;
    }
}

void Noise::fill(std::int64_t block) {
    static const Ziggurat ziggurat;
    Generator generator(hash(key_, static_cast<std::uint64_t>(block)));
    for (auto& sample : block_) {
        const std::uint64_t bits = generator();
        const float real = draw(ziggurat, generator, static_cast<std::uint32_t>(bits));
        const float imag = draw(ziggurat, generator, static_cast<std::uint32_t>(bits >> 32));
        sample = {real, imag};
    }
    filled_ = block;
}

}  // namespace fadelab::medium
