// CRC-32 of IEEE 802.3, eight octets at a time; liquid's goes bit by bit.
//
// Read first: IEEE 802.3, 3.2.9; M. E. Kounavis and F. L. Berry, "Novel Table Lookup-Based Algorithms for
// High-Performance CRC Generation", IEEE Transactions on Computers 57(11), 2008 (slicing by 8).

#pragma once

#include <cstddef>
#include <cstdint>

namespace gr::fadelab::ofdm {

// Octets of a CRC.
constexpr std::size_t kCrcBytes = 4;

std::uint32_t crc32(const std::uint8_t* octets, std::size_t count);

}  // namespace gr::fadelab::ofdm
