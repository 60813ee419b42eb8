// Equalised symbols of a frame to its header and payload.
//
// Read first: format.hpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "constellation.hpp"
#include "format.hpp"
#include "liquid.hpp"
#include "packet.hpp"

namespace gr::fadelab::ofdm {

class FrameDecoder {
public:
    enum class Progress { more, passed_over, decoded };

    // Frames of other networks than `network` are passed over, as are damaged headers and those of other programs.
    FrameDecoder(const Format& format, std::uint16_t network);

    // The next symbol is a frame's first after its training.
    void begin();
    // Where the data subcarriers of the next symbol go.
    Sample* place() { return symbols_.data() + had_; }
    // They are there.
    Progress take();

    // Whether the header is not known yet.
    bool in_header() const { return in_header_; }
    // OFDM symbols to come, as far as known.
    std::size_t symbols_left() const { return (wanted_ - had_) / format_.data().size(); }

    // Of a frame that is decoded, until the next `begin`.
    const Header& header() const { return header_; }
    const Modulation& modulation() const { return *modulation_; }
    const std::vector<std::uint8_t>& payload() const { return payload_; }
    bool crc_ok() const { return crc_ok_; }
    // The payload's symbols, and how many there are.
    const Sample* symbols() const { return symbols_.data(); }
    std::size_t count() const { return count_; }
    // Mean power of what the nearest points leave of the header's symbols, and of the payload's; the points' is 1.
    double header_error() const { return header_error_; }
    double error() const;

private:
    Progress take_header();

    Format format_;
    std::uint16_t network_;
    std::map<unsigned, Labels> labels_;  // by bits of a symbol
    PacketCoder header_coder_;
    PacketCoder coder_;

    std::vector<Sample> symbols_;  // of the header, then of the payload
    std::size_t had_ = 0;          // how many of these are there
    std::size_t wanted_ = 0;       // how many there will be, the last OFDM symbol's filling included
    bool in_header_ = true;
    Header header_{};
    const Modulation* modulation_ = nullptr;
    double header_error_ = 0.0;
    std::size_t count_ = 0;
    std::vector<std::uint8_t> coded_;
    std::vector<std::uint8_t> payload_;
    bool crc_ok_ = false;
};

}  // namespace gr::fadelab::ofdm
