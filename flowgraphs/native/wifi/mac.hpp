// Link frames in IEEE 802.11 data frames and back.
//
// Read first: IEEE 802.11-2016, 9.2 (MAC frames), 17.3.5 (the PSDU's bits in OFDM symbols); docs/wifi.md.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gr::fadelab::wifi {

struct Encoding {
    const char* name;
    std::size_t data_bits;  // per OFDM symbol (table 17-4)
};

// In the order of gr-ieee802-11's numbers.
constexpr std::array<Encoding, 8> kEncodings{{
    {"bpsk-1/2", 24},
    {"bpsk-3/4", 36},
    {"qpsk-1/2", 48},
    {"qpsk-3/4", 72},
    {"qam16-1/2", 96},
    {"qam16-3/4", 144},
    {"qam64-2/3", 192},
    {"qam64-3/4", 216},
}};

// Throws std::invalid_argument.
const Encoding& encoding_named(const std::string& name);

// The longest link frame.
extern const std::size_t kMaxFrameBytes;

// How many samples a PSDU takes on the air, with its preamble, and how long a link frame's is.
std::size_t burst_samples(std::size_t psdu_bytes, const Encoding& encoding);
std::size_t psdu_bytes(std::size_t nbytes, const Encoding& encoding);

// The PSDU of a link frame: a broadcast data frame of an IBSS, which is not acknowledged.
std::vector<std::uint8_t> mac_frame(const std::uint8_t* frame, std::size_t count, std::uint32_t sequence,
                                    std::uint16_t network, const Encoding& encoding);

struct LinkFrame {
    std::uint32_t sequence;
    std::vector<std::uint8_t> payload;
};

// The link frame in an MPDU without its FCS; nothing when it is none of this network's.
std::optional<LinkFrame> link_frame(const std::uint8_t* mpdu, std::size_t count, std::uint16_t network);

}  // namespace gr::fadelab::wifi
