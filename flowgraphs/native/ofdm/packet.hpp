// Octets with a CRC-32 to coded octets and back, as liquid's packetizer does it: whitened, coded, interleaved.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

// One for each thread.
class PacketCoder {
public:
    // Codes of liquid's number `fec`. `coded` becomes as long as it must.
    void encode(const std::uint8_t* octets, std::size_t count, unsigned fec, std::vector<std::uint8_t>& coded);
    // Puts `count` octets into `octets`; false if their CRC is wrong. `coded` is of the length that `encode` gives.
    bool decode(const std::vector<std::uint8_t>& coded, std::size_t count, unsigned fec,
                std::vector<std::uint8_t>& octets);

private:
    packetizer coder(std::size_t count, unsigned fec);

    Packetizer coder_;
    std::size_t count_ = 0;
    unsigned fec_ = 0;
    std::vector<std::uint8_t> checked_;  // octets and their CRC
};

}  // namespace gr::fadelab::ofdm
