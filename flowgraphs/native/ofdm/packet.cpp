#include "packet.hpp"

#include <algorithm>

#include "crc32.hpp"
#include "format.hpp"

namespace gr::fadelab::ofdm {

namespace {

// liquid's CRC is replaced by ours: to its packetizer, the CRC is part of the message.
int no_check() {
    static const int scheme = liquid_getopt_str2crc("none");
    return scheme;
}

void write_crc(std::uint8_t* octets, std::size_t count) {
    const std::uint32_t crc = crc32(octets, count);
    for (std::size_t at = 0; at < kCrcBytes; ++at) {
        octets[count + at] = static_cast<std::uint8_t>(crc >> 8 * (kCrcBytes - 1 - at));
    }
}

bool crc_is_right(const std::uint8_t* octets, std::size_t count) {
    std::uint32_t crc = 0;
    for (std::size_t at = 0; at < kCrcBytes; ++at) {
        crc = crc << 8 | octets[count + at];
    }
    return crc == crc32(octets, count);
}

}  // namespace

void PacketCoder::encode(const std::uint8_t* octets, std::size_t count, unsigned fec,
                         std::vector<std::uint8_t>& coded) {
    checked_.resize(count + kCrcBytes);
    std::copy_n(octets, count, checked_.begin());
    write_crc(checked_.data(), count);
    coded.resize(encoded_bytes(count, fec));
    packetizer_encode(coder(count, fec), checked_.data(), coded.data());
}

bool PacketCoder::decode(const std::vector<std::uint8_t>& coded, std::size_t count, unsigned fec,
                         std::vector<std::uint8_t>& octets) {
    checked_.resize(count + kCrcBytes);
    packetizer_decode(coder(count, fec), coded.data(), checked_.data());
    octets.assign(checked_.begin(), checked_.end() - kCrcBytes);
    return crc_is_right(checked_.data(), count);
}

// liquid's object for frames of one length; the next frame is often as long.
packetizer PacketCoder::coder(std::size_t count, unsigned fec) {
    if (!coder_ || count != count_ || fec != fec_) {
        coder_.reset();
        const std::lock_guard<std::mutex> held(global_lock());
        coder_.reset(packetizer_create(static_cast<unsigned>(count + kCrcBytes), no_check(), static_cast<int>(fec),
                                       static_cast<int>(fec_named("none").scheme())));
        count_ = count;
        fec_ = fec;
    }
    return coder_.get();
}

}  // namespace gr::fadelab::ofdm
