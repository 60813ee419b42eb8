// The frame: its symbols, its modes, its lengths.
//
// Read first: README.md; https://liquidsdr.org/doc/ofdmflexframe.
//
//     | S0 | S0 | S1 | header: BPSK, Golay (24,12), CRC-32 | payload: any mode, CRC-32 |
//     detection,  channel                            one OFDM symbol is a cyclic prefix and `subcarriers` samples
//     carrier offset
//
// Rules kept: what liquid decides (which subcarriers are pilots, how long a coded frame is) is asked of liquid.

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gr::fadelab::ofdm {

// The longest frame: an IP packet of 9000 octets and any link header.
constexpr std::size_t kMaxFrameBytes = 10'000;
// Our part of the header: sequence number (32 bits), network (16 bits), big endian.
constexpr std::size_t kHeaderBytes = 6;
// S0 twice, S1 once.
constexpr std::size_t kTrainingSymbols = 3;

// A header's octets: ours, and liquid's part, which is version, payload length, modulation, codes.
constexpr std::size_t kLiquidHeaderBytes = 6;
constexpr std::size_t kAllHeaderBytes = kHeaderBytes + kLiquidHeaderBytes;

// A constellation: on each axis the odd numbers up to `levels` - 1, times `unit`, which makes their mean power 1.
struct Modulation {
    const char* name;
    unsigned bits;
    int levels;
    int axes;

    float unit() const { return static_cast<float>(std::sqrt(3.0 / (axes * (levels * levels - 1)))); }
    // liquid's number.
    unsigned scheme() const;
};

constexpr std::array<Modulation, 4> kModulations{
    {{"bpsk", 1, 2, 1}, {"qpsk", 2, 2, 2}, {"qam16", 4, 4, 2}, {"qam64", 6, 8, 2}}};

// Our names of the block codes, with liquid's.
struct Fec {
    const char* name;
    const char* liquids;

    // liquid's number.
    unsigned scheme() const;
};

constexpr std::array<Fec, 10> kFecs{{{"none", "none"},
                                     {"rep3", "rep3"},
                                     {"rep5", "rep5"},
                                     {"hamming74", "h74"},
                                     {"hamming84", "h84"},
                                     {"hamming128", "h128"},
                                     {"golay2412", "g2412"},
                                     {"secded2216", "secded2216"},
                                     {"secded3932", "secded3932"},
                                     {"secded7264", "secded7264"}}};

// By our names. Throw std::invalid_argument, one line, for others.
const Modulation& modulation_named(std::string_view name);
const Fec& fec_named(std::string_view name);
// By liquid's numbers; null for one we do not know.
const Modulation* modulation_numbered(unsigned scheme);
const Fec* fec_numbered(unsigned scheme);

// liquid's number of CRC-32.
unsigned crc32_scheme();
// liquid's number of the header's code.
unsigned header_fec();
// The octets that `nbytes` and their CRC become in liquid's code number `fec`.
std::size_t encoded_bytes(std::size_t nbytes, unsigned fec);
// Modulation and code by their name of `mode_name`; none for other names.
std::optional<std::pair<Modulation, Fec>> mode_named(std::string_view name);
// Modulation and code in a few words, as in "qpsk golay2412".
std::string mode_name(const Modulation& modulation, unsigned fec);

// What a header says.
struct Header {
    std::uint32_t sequence;
    std::uint16_t network;
    std::size_t nbytes;   // of the payload: 1 to 65535
    unsigned modulation;  // liquid's number
    unsigned fec;         // likewise

    using Octets = std::array<std::uint8_t, kAllHeaderBytes>;
    Octets octets() const;
    // None for a header of another version of liquid, or of a frame that is not coded as ours are.
    static std::optional<Header> parsed(const Octets& octets);
};

// What does not depend on a frame's mode.
class Format {
public:
    // Throws std::invalid_argument, one line, for sizes that make no frame.
    Format(std::size_t subcarriers, std::size_t cyclic_prefix, std::size_t taper);

    std::size_t subcarriers() const { return subcarriers_; }
    std::size_t cyclic_prefix() const { return cyclic_prefix_; }
    std::size_t taper() const { return taper_; }
    // Samples of an OFDM symbol and its cyclic prefix.
    std::size_t symbol_samples() const { return subcarriers_ + cyclic_prefix_; }
    // OFDM symbols of the header.
    std::size_t header_symbols() const { return header_symbols_; }
    // Subcarriers that carry data or are pilots, in the order of the FFT.
    const std::vector<std::size_t>& active() const { return active_; }
    // Subcarriers that carry data.
    const std::vector<std::size_t>& data() const { return data_; }
    // Pilots, from the lowest frequency to the highest: the order of the pilot sequence.
    const std::vector<std::size_t>& pilots() const { return pilots_; }

    // OFDM symbols of a frame of `nbytes` in liquid's code number `fec`, training and header included.
    std::size_t symbols(std::size_t nbytes, const Modulation& modulation, unsigned fec) const;
    // Airtime in samples. Throws std::invalid_argument, one line, for lengths that no frame has.
    std::size_t frame_samples(std::size_t nbytes, const Modulation& modulation, unsigned fec) const;

private:
    std::size_t subcarriers_;
    std::size_t cyclic_prefix_;
    std::size_t taper_;
    std::vector<std::size_t> active_;
    std::vector<std::size_t> data_;
    std::vector<std::size_t> pilots_;
    std::size_t header_symbols_;
};

}  // namespace gr::fadelab::ofdm
