#include "mac.hpp"

#include <algorithm>
#include <stdexcept>

#include "synchronizer.hpp"

namespace gr::fadelab::wifi {

namespace {

using Octets = std::vector<std::uint8_t>;

// Frame control, duration, receiver, transmitter, BSSID, sequence control (9.2.4.1).
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kAddressBytes = 6;
constexpr std::size_t kBssidAt = 16;
constexpr std::size_t kControlAt = 22;
constexpr std::uint16_t kDataFrame = 0x0008;
// Ours, at the end of the frame body: the whole sequence number, and how many octets of filler are before it.
constexpr std::size_t kTrailerBytes = 5;
constexpr std::size_t kFcsBytes = 4;
constexpr std::size_t kOverhead = kHeaderBytes + kTrailerBytes + kFcsBytes;
// Sequence control: 12 bits of sequence number above 4 of fragment number.
constexpr std::uint32_t kSequenceMask = 0xFFF;
constexpr unsigned kFragmentBits = 4;

// Around the PSDU in the data bits (17.3.5.2, 17.3.5.3).
constexpr std::size_t kServiceAndTailBits = 16 + 6;
// gr-ieee802-11's Viterbi decoder does not know where a frame ends: with fewer pad bits behind the tail it loses up to
// a third of the frames at any SNR (docs/wifi.md), so that the frame body is filled up until there are as many.
constexpr std::size_t kLeastPadBits = 18;
constexpr std::size_t kMostFiller = 2;
// gr-ieee802-11 decodes no PSDU of more octets.
constexpr std::size_t kMaxPsduBytes = 1528;
// A symbol's flanks of two samples (17.3.2.6): one is the neighbour's too, so that a burst is longer by one.
constexpr std::size_t kFlank = 2;

std::size_t filler(std::size_t nbytes, const Encoding& encoding) {
    for (std::size_t filler = 0; filler < kMostFiller; ++filler) {
        const std::size_t bits = kServiceAndTailBits + 8 * (nbytes + kOverhead + filler);
        if ((encoding.data_bits - bits % encoding.data_bits) % encoding.data_bits >= kLeastPadBits) {
            return filler;
        }
    }
    return kMostFiller;
}

// The MAC address that stands for a network: locally administered.
std::array<std::uint8_t, kAddressBytes> network_address(std::uint16_t network) {
    return {0x02, 'f', 'a', 'd', static_cast<std::uint8_t>(network >> 8U), static_cast<std::uint8_t>(network)};
}

void put_little(Octets& octets, std::uint32_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        octets.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
}

std::uint32_t little(const std::uint8_t* octets, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
        value |= static_cast<std::uint32_t>(octets[i]) << (8 * i);
    }
    return value;
}

// What of an octet's remainder is left (9.2.4.8; CRC-32 of IEEE 802.3, least significant bit first).
std::array<std::uint32_t, 256> make_remainders() {
    std::array<std::uint32_t, 256> remainders{};
    for (std::uint32_t octet = 0; octet < remainders.size(); ++octet) {
        std::uint32_t value = octet;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
        }
        remainders[octet] = value;
    }
    return remainders;
}

std::uint32_t fcs(const Octets& octets) {
    static const std::array<std::uint32_t, 256> remainders = make_remainders();
    std::uint32_t value = 0xFFFFFFFFU;
    for (const std::uint8_t octet : octets) {
        value = (value >> 8U) ^ remainders[(value ^ octet) & 0xFFU];
    }
    return ~value;
}

std::uint32_t control_of(std::uint32_t sequence) {
    return (sequence & kSequenceMask) << kFragmentBits;
}

}  // namespace

const std::size_t kMaxFrameBytes = kMaxPsduBytes - kOverhead - kMostFiller;

const Encoding& encoding_named(const std::string& name) {
    const auto* const found =
        std::find_if(kEncodings.begin(), kEncodings.end(), [&](const Encoding& one) { return name == one.name; });
    if (found == kEncodings.end()) {
        throw std::invalid_argument("there is no encoding " + name);
    }
    return *found;
}

std::size_t burst_samples(std::size_t psdu_bytes, const Encoding& encoding) {
    const std::size_t bits = kServiceAndTailBits + 8 * psdu_bytes;
    const std::size_t symbols = (bits + encoding.data_bits - 1) / encoding.data_bits;
    return kPreambleSamples + (1 + symbols) * kSymbolSamples + kFlank - 1;
}

std::size_t psdu_bytes(std::size_t nbytes, const Encoding& encoding) {
    return nbytes + kOverhead + filler(nbytes, encoding);
}

Octets mac_frame(const std::uint8_t* frame, std::size_t count, std::uint32_t sequence, std::uint16_t network,
                 const Encoding& encoding) {
    const auto address = network_address(network);
    const std::size_t filled = filler(count, encoding);
    Octets octets;
    octets.reserve(psdu_bytes(count, encoding));
    put_little(octets, kDataFrame, 2);
    put_little(octets, 0, 2);
    octets.insert(octets.end(), kAddressBytes, 0xFF);
    octets.insert(octets.end(), address.begin(), address.end());
    octets.insert(octets.end(), address.begin(), address.end());
    put_little(octets, control_of(sequence), 2);
    octets.insert(octets.end(), frame, frame + count);
    octets.insert(octets.end(), filled, 0);
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        octets.push_back(static_cast<std::uint8_t>(sequence >> shift));
    }
    octets.push_back(static_cast<std::uint8_t>(filled));
    put_little(octets, fcs(octets), kFcsBytes);
    return octets;
}

std::optional<LinkFrame> link_frame(const std::uint8_t* mpdu, std::size_t count, std::uint16_t network) {
    if (count < kHeaderBytes + kTrailerBytes) {
        return std::nullopt;
    }
    const std::uint8_t* trailer = mpdu + count - kTrailerBytes;
    std::uint32_t sequence = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        sequence = sequence << 8U | trailer[i];
    }
    const std::size_t filled = trailer[4];
    const auto address = network_address(network);
    const bool ours = little(mpdu, 2) == kDataFrame && std::equal(address.begin(), address.end(), mpdu + kBssidAt) &&
                      little(mpdu + kControlAt, 2) == control_of(sequence);
    const std::size_t body = count - kHeaderBytes - kTrailerBytes;
    if (!ours || filled > body) {
        return std::nullopt;
    }
    return LinkFrame{sequence, Octets(mpdu + kHeaderBytes, trailer - filled)};
}

}  // namespace gr::fadelab::wifi
