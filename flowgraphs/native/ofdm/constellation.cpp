#include "constellation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "clones.hpp"

namespace gr::fadelab::ofdm {

namespace {

// Sums are kept in so many parts, which a processor adds at once.
constexpr std::size_t kParts = 16;
// Values added as floats before they go to a double.
constexpr std::size_t kRun = 1024;

FADELAB_CLONES
void nearest(const Slicer& slicer, const float* values, std::size_t count, float* points) {
    for (std::size_t i = 0; i < count; ++i) {
        points[i] = slicer.nearest(values[i]);
    }
}

FADELAB_CLONES
float squared_error(const Slicer& slicer, const float* values, std::size_t count) {
    std::array<float, kParts> sums{};
    std::size_t at = 0;
    for (; at + kParts <= count; at += kParts) {
        for (std::size_t part = 0; part < kParts; ++part) {
            const float value = values[at + part];
            const float error = value - slicer.nearest(value);
            sums[part] += error * error;
        }
    }
    for (; at < count; ++at) {
        const float error = values[at] - slicer.nearest(values[at]);
        sums[0] += error * error;
    }
    float sum = 0.0F;
    for (const float part : sums) {
        sum += part;
    }
    return sum;
}

}  // namespace

void decide(const Modulation& modulation, const Sample* symbols, std::size_t count, Sample* points) {
    nearest(Slicer(modulation), reinterpret_cast<const float*>(symbols), 2 * count, reinterpret_cast<float*>(points));
    if (modulation.axes == 1) {
        std::for_each_n(points, count, [](Sample& point) { point.imag(0.0F); });
    }
}

double error_power(const Modulation& modulation, const Sample* symbols, std::size_t count) {
    const Slicer slicer(modulation);
    double sum = 0.0;
    if (modulation.axes == 1) {
        for (std::size_t i = 0; i < count; ++i) {
            const float error = symbols[i].real() - slicer.nearest(symbols[i].real());
            sum += error * error + symbols[i].imag() * symbols[i].imag();
        }
    } else {
        const auto* values = reinterpret_cast<const float*>(symbols);
        for (std::size_t at = 0; at < 2 * count; at += kRun) {
            sum += squared_error(slicer, values + at, std::min(kRun, 2 * count - at));
        }
    }
    return sum / static_cast<double>(std::max<std::size_t>(count, 1));
}

Labels::Labels(const Modulation& modulation)
    : modulation_(modulation), slicer_(modulation), of_(modulation.levels * modulation.levels) {
    const Modem modem = [&] {
        const std::lock_guard<std::mutex> held(global_lock());
        return Modem(modemcf_create(static_cast<modulation_scheme>(modulation.scheme())));
    }();
    for (unsigned bits = 0; bits < 1U << modulation.bits; ++bits) {
        Sample point;
        modemcf_modulate(modem.get(), bits, &point);
        const int q = modulation.axes == 2 ? slicer_.level(point.imag()) : 0;
        of_[slicer_.level(point.real()) * modulation.levels + q] = static_cast<std::uint8_t>(bits);
    }
}

void Labels::demap(const Sample* symbols, std::size_t count, std::vector<std::uint8_t>& octets) const {
    switch (modulation_.bits) {
        case 1:
            return demap<1>(symbols, count, octets);
        case 2:
            return demap<2>(symbols, count, octets);
        case 4:
            return demap<4>(symbols, count, octets);
        default:
            return demap<6>(symbols, count, octets);
    }
}

template <unsigned kBits>
void Labels::demap(const Sample* symbols, std::size_t count, std::vector<std::uint8_t>& octets) const {
    // so many symbols are whole octets
    constexpr std::size_t kGroup = kBits == 6 ? 4 : 8 / kBits;
    constexpr std::size_t kOctets = kGroup * kBits / 8;
    const auto label = [&](Sample symbol) -> std::uint32_t {
        const int q = kBits == 1 ? 0 : slicer_.level(symbol.imag());
        return of_[slicer_.level(symbol.real()) * modulation_.levels + q];
    };
    std::size_t octet = 0;
    for (std::size_t at = 0; at < count && octet < octets.size(); at += kGroup) {
        std::uint32_t held = 0;
        for (std::size_t i = 0; i < kGroup; ++i) {
            held = held << kBits | (at + i < count ? label(symbols[at + i]) : 0U);
        }
        for (std::size_t i = kOctets; i > 0 && octet < octets.size(); --i) {
            octets[octet++] = static_cast<std::uint8_t>(held >> 8 * (i - 1));
        }
    }
}

}  // namespace gr::fadelab::ofdm
