#include "training.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gr::fadelab::ofdm {

namespace {

// The feedback of shift registers of 4 to 9 bits: those bits whose parity comes in at the lowest place.
constexpr unsigned kLeastBits = 4;
constexpr std::array<unsigned, 6> kFeedback{0x009, 0x012, 0x021, 0x044, 0x08E, 0x108};
// The pilots' register.
constexpr unsigned kPilotBits = 8;
// The training's signs are every third value of a sequence.
constexpr std::size_t kStride = 3;

// Of `bits`, whether an odd number is set.
bool parity(unsigned bits) {
    unsigned odd = 0;
    for (; bits != 0; bits >>= 1) {
        odd ^= bits & 1U;
    }
    return odd != 0;
}

// A period of a register's maximal-length sequence: 1 or -1.
std::vector<float> sequence(unsigned bits) {
    const unsigned period = (1U << bits) - 1;
    unsigned state = 1U << (bits - 1);
    std::vector<float> values(period);
    for (float& value : values) {
        const bool next = parity(state & kFeedback[bits - kLeastBits]);
        state = (state << 1 | (next ? 1U : 0U)) & period;
        value = next ? 1.0F : -1.0F;
    }
    return values;
}

// The register of S0: as many bits as the subcarriers' numbers have, but 4 to 8. That of S1 has one more.
unsigned training_bits(std::size_t subcarriers) {
    unsigned bits = kLeastBits;
    while (bits < kPilotBits && std::size_t{1} << bits < subcarriers) {
        ++bits;
    }
    return bits;
}

// By subcarriers: the signs of every `step`-th active one, and 0 for the others.
std::vector<float> signs(const Format& format, unsigned bits, std::size_t step) {
    const std::vector<float> all = sequence(bits);
    std::vector<float> values(format.subcarriers());
    for (const std::size_t carrier : format.active()) {
        if (carrier % step == 0) {
            values[carrier] = all[(kStride * carrier + kStride - 1) % all.size()];
        }
    }
    return values;
}

// The symbol of such signs, without a prefix, mean power 1. By liquid's own transform, whose rounding liquid's bursts have.
std::vector<Sample> symbol_of(const std::vector<float>& signs) {
    std::vector<Sample> carriers(signs.begin(), signs.end());
    std::vector<Sample> symbol(signs.size());
    {
        const std::lock_guard<std::mutex> held(global_lock());
        fft_run(static_cast<unsigned>(signs.size()), carriers.data(), symbol.data(), LIQUID_FFT_BACKWARD, 0);
    }
    const auto used = signs.size() - static_cast<std::size_t>(std::count(signs.begin(), signs.end(), 0.0F));
    const float scale = 1.0F / std::sqrt(static_cast<float>(used));
    std::transform(symbol.begin(), symbol.end(), symbol.begin(), [scale](Sample value) { return value * scale; });
    return symbol;
}

// A squared sine.
std::vector<float> taper_of(std::size_t size) {
    std::vector<float> taper(size);
    for (std::size_t i = 0; i < size; ++i) {
        const float at = (static_cast<float>(i) + 0.5F) / static_cast<float>(size);
        const float sine = std::sin(static_cast<float>(M_PI_2 * at));
        taper[i] = sine * sine;
    }
    return taper;
}

}  // namespace

Training::Training(const Format& format)
    : samples(kTrainingSymbols * format.symbol_samples()),
      taper(taper_of(format.taper())),
      s1(signs(format, training_bits(format.subcarriers()) + 1, 1)),
      pilots(sequence(kPilotBits)) {
    const std::vector<float> even = signs(format, training_bits(format.subcarriers()), 2);
    for (std::size_t carrier = 0; carrier < even.size(); carrier += 2) {
        s0.push_back(even[carrier]);
    }
    const std::vector<Sample> short_symbol = symbol_of(even);
    const std::vector<Sample> long_symbol = symbol_of(s1);
    const std::size_t size = format.subcarriers();
    const std::size_t prefix = format.cyclic_prefix();
    // both S0 are one stretch with a prefix of twice the length
    const std::size_t third = 2 * format.symbol_samples();
    for (std::size_t at = 0; at < third; ++at) {
        samples[at] = short_symbol[(at + 2 * (size - prefix)) % size];
    }
    for (std::size_t at = 0; at < format.symbol_samples(); ++at) {
        samples[third + at] = long_symbol[(at + size - prefix) % size];
    }
    for (std::size_t i = 0; i < taper.size(); ++i) {
        samples[i] *= taper[i];
        Sample& value = samples[third + i];
        value = value * taper[i] + short_symbol[i] * taper[taper.size() - 1 - i];
    }
    postfix.assign(long_symbol.begin(), long_symbol.begin() + static_cast<std::ptrdiff_t>(taper.size()));
}

}  // namespace gr::fadelab::ofdm
