#include "crc32.hpp"

#include <array>

namespace gr::fadelab::ofdm {

namespace {

// IEEE 802.3's polynomial, the lowest power's bit first.
constexpr std::uint32_t kPolynomial = 0xEDB88320;
constexpr std::size_t kSlices = 8;

// Of each slice: what an octet becomes after so many octets of zeros.
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t octet = 0; octet < 256; ++octet) {
        std::uint32_t rest = octet;
        for (int bit = 0; bit < 8; ++bit) {
            rest = rest >> 1 ^ ((rest & 1U) != 0 ? kPolynomial : 0U);
        }
        tables[0][octet] = rest;
    }
    for (std::size_t slice = 1; slice < kSlices; ++slice) {
        for (std::size_t octet = 0; octet < 256; ++octet) {
            const std::uint32_t before = tables[slice - 1][octet];
            tables[slice][octet] = before >> 8 ^ tables[0][before & 0xFF];
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32(const std::uint8_t* octets, std::size_t count) {
    std::uint32_t rest = 0xFFFFFFFF;
    for (; count >= kSlices; octets += kSlices, count -= kSlices) {
        std::uint32_t next = 0;
        for (std::size_t at = 0; at < kSlices; ++at) {
            const std::uint32_t octet = octets[at] ^ (at < 4 ? rest >> 8 * at & 0xFF : 0U);
            next ^= kTables[kSlices - 1 - at][octet];
        }
        rest = next;
    }
    for (; count > 0; ++octets, --count) {
        rest = rest >> 8 ^ kTables[0][(rest ^ *octets) & 0xFF];
    }
    return ~rest;
}

}  // namespace gr::fadelab::ofdm
