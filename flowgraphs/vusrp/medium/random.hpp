// Hashes and a generator: the only randomness of the medium.
//
// Read first: S. Vigna, https://prng.di.unimi.it (splitmix64, xoshiro256++). Everything random is drawn from a
// generator seeded by a hash of (seed, what it is for), so that no draw depends on another one having been made.

#pragma once

#include <cstdint>
#include <string_view>

namespace fadelab::medium {

// splitmix64's output function: a bijection in which every input bit reaches every output bit.
constexpr std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Hash of two words; nest it for more.
constexpr std::uint64_t hash(std::uint64_t a, std::uint64_t b) {
    return mixed(mixed(a + 0x9e3779b97f4a7c15u) ^ (b + 0x9e3779b97f4a7c15u));
}

// Hash of a word and a text, such as an air's seed and a path's name.
constexpr std::uint64_t hash(std::uint64_t a, std::string_view text) {
    for (const char c : text) a = hash(a, static_cast<std::uint8_t>(c));
    return hash(a, text.size());
}

// xoshiro256++.
class Generator {
public:
    explicit constexpr Generator(std::uint64_t seed) {
        for (auto& word : state_) word = mixed(seed += 0x9e3779b97f4a7c15u);
    }

    constexpr std::uint64_t operator()() {
        const std::uint64_t result = rotated(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotated(state_[3], 45);
        return result;
    }

    // Uniform in [0, 1).
    constexpr double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

private:
    static constexpr std::uint64_t rotated(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

    std::uint64_t state_[4] = {};
};

}  // namespace fadelab::medium
