#include "format.hpp"

#include <algorithm>
#include <stdexcept>

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

namespace {

// liquid's OFDMFLEXFRAME_PROTOCOL of releases 1.4 and 1.5, which is no part of its interface.
constexpr std::uint8_t kVersion = 105;
// The CRC's number stands above the code's.
constexpr unsigned kCrcShift = 5;
constexpr unsigned kFecMask = 0x1F;

template <typename Entries>
auto& named(const Entries& entries, std::string_view name, const char* what) {
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return name == entry.name; });
    if (at == entries.end()) {
        std::string known;
        for (const auto& entry : entries) {
            known += (known.empty() ? "" : ", ") + std::string(entry.name);
        }
        throw std::invalid_argument("there is no " + std::string(what) + " '" + std::string(name) + "': choose from " +
                                    known);
    }
    return *at;
}

template <typename Entries>
auto numbered(const Entries& entries, unsigned scheme) -> decltype(entries.data()) {
    const auto at =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.scheme() == scheme; });
    return at == entries.end() ? nullptr : &*at;
}

std::size_t divided_up(std::size_t count, std::size_t by) {
    return (count + by - 1) / by;
}

}  // namespace

unsigned Modulation::scheme() const {
    return static_cast<unsigned>(liquid_getopt_str2mod(name));
}

unsigned Fec::scheme() const {
    return static_cast<unsigned>(liquid_getopt_str2fec(liquids));
}

const Modulation& modulation_named(std::string_view name) {
    return named(kModulations, name, "modulation");
}

const Fec& fec_named(std::string_view name) {
    return named(kFecs, name, "code");
}

const Modulation* modulation_numbered(unsigned scheme) {
    return numbered(kModulations, scheme);
}

const Fec* fec_numbered(unsigned scheme) {
    return numbered(kFecs, scheme);
}

unsigned crc32_scheme() {
    return static_cast<unsigned>(liquid_getopt_str2crc("crc32"));
}

unsigned header_fec() {
    return fec_named("golay2412").scheme();
}

std::size_t encoded_bytes(std::size_t nbytes, unsigned fec) {
    static const int uncoded = static_cast<int>(fec_named("none").scheme());
    return packetizer_compute_enc_msg_len(static_cast<unsigned>(nbytes), static_cast<int>(crc32_scheme()),
                                          static_cast<int>(fec), uncoded);
}

std::optional<std::pair<Modulation, Fec>> mode_named(std::string_view name) {
    const std::size_t space = name.find(' ');
    const std::string_view code = space == std::string_view::npos ? "none" : name.substr(space + 1);
    for (const Modulation& modulation : kModulations) {
        for (const Fec& fec : kFecs) {
            // one name each: the code "none" goes without
            if (modulation.name == name.substr(0, space) && fec.name == code &&
                mode_name(modulation, fec.scheme()) == name) {
                return std::pair{modulation, fec};
            }
        }
    }
    return std::nullopt;
}

std::string mode_name(const Modulation& modulation, unsigned fec) {
    const Fec* code = fec_numbered(fec);
    const std::string name = code == nullptr ? "code " + std::to_string(fec) : code->name;
    return name == "none" ? modulation.name : std::string(modulation.name) + " " + name;
}

Header::Octets Header::octets() const {
    const auto octet = [](std::size_t value, unsigned shift) { return static_cast<std::uint8_t>(value >> shift); };
    return {octet(sequence, 24),
            octet(sequence, 16),
            octet(sequence, 8),
            octet(sequence, 0),
            octet(network, 8),
            octet(network, 0),
            kVersion,
            octet(nbytes, 8),
            octet(nbytes, 0),
            octet(modulation, 0),
            octet(crc32_scheme() << kCrcShift | fec, 0),
            octet(fec_named("none").scheme(), 0)};
}

std::optional<Header> Header::parsed(const Octets& octets) {
    const auto octet = [&](std::size_t at, unsigned shift) { return std::uint32_t{octets[at]} << shift; };
    const bool ours = octets[6] == kVersion && octets[10] >> kCrcShift == crc32_scheme() &&
                      (octets[11] & kFecMask) == fec_named("none").scheme();
    if (!ours) {
        return std::nullopt;
    }
    return Header{octet(0, 24) | octet(1, 16) | octet(2, 8) | octet(3, 0),
                  static_cast<std::uint16_t>(octet(4, 8) | octet(5, 0)), octet(7, 8) | octet(8, 0), octets[9],
                  octets[10] & kFecMask};
}

Format::Format(std::size_t subcarriers, std::size_t cyclic_prefix, std::size_t taper)
    : subcarriers_(subcarriers), cyclic_prefix_(cyclic_prefix), taper_(taper) {
    if (subcarriers < 16 || subcarriers > 2048 || subcarriers % 2 != 0) {
        throw std::invalid_argument("subcarriers is " + std::to_string(subcarriers) +
                                    ": must be an even number from 16 to 2048");
    }
    if (cyclic_prefix < 4 || cyclic_prefix > subcarriers / 2) {
        throw std::invalid_argument("cyclic_prefix is " + std::to_string(cyclic_prefix) +
                                    ": must be 4 or more, and half the subcarriers, " +
                                    std::to_string(subcarriers / 2) + ", at most");
    }
    if (taper >= cyclic_prefix) {
        throw std::invalid_argument("taper is " + std::to_string(taper) + ": must be less than cyclic_prefix, " +
                                    std::to_string(cyclic_prefix));
    }
    std::vector<unsigned char> allocation(subcarriers);
    ofdmframe_init_default_sctype(static_cast<unsigned>(subcarriers), allocation.data());
    for (std::size_t carrier = 0; carrier < subcarriers; ++carrier) {
        if (allocation[carrier] == OFDMFRAME_SCTYPE_NULL) {
            continue;
        }
        active_.push_back(carrier);
        (allocation[carrier] == OFDMFRAME_SCTYPE_DATA ? data_ : pilots_).push_back(carrier);
    }
    // the upper half of the FFT's order are the negative frequencies
    const auto positive = std::find_if(pilots_.begin(), pilots_.end(), [&](auto at) { return at >= subcarriers / 2; });
    std::rotate(pilots_.begin(), positive, pilots_.end());
    header_symbols_ = divided_up(8 * encoded_bytes(kAllHeaderBytes, header_fec()), data_.size());
}

std::size_t Format::symbols(std::size_t nbytes, const Modulation& modulation, unsigned fec) const {
    const std::size_t bits = 8 * encoded_bytes(nbytes, fec);
    return kTrainingSymbols + header_symbols_ + divided_up(bits, modulation.bits * data_.size());
}

std::size_t Format::frame_samples(std::size_t nbytes, const Modulation& modulation, unsigned fec) const {
    if (nbytes < 1 || nbytes > kMaxFrameBytes) {
        throw std::invalid_argument("frames of 1 to " + std::to_string(kMaxFrameBytes) + " bytes, not of " +
                                    std::to_string(nbytes));
    }
    return symbols(nbytes, modulation, fec) * symbol_samples() + taper_;
}

}  // namespace gr::fadelab::ofdm
