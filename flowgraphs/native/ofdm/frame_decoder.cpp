#include "frame_decoder.hpp"

#include <algorithm>

namespace gr::fadelab::ofdm {

namespace {

const Modulation& header_modulation() {
    return modulation_named("bpsk");
}

}  // namespace

FrameDecoder::FrameDecoder(const Format& format, std::uint16_t network) : format_(format), network_(network) {
    for (const Modulation& modulation : kModulations) {
        labels_.emplace(modulation.bits, Labels(modulation));
    }
}

void FrameDecoder::begin() {
    in_header_ = true;
    had_ = 0;
    wanted_ = format_.header_symbols() * format_.data().size();
    symbols_.resize(wanted_);
}

FrameDecoder::Progress FrameDecoder::take() {
    had_ += format_.data().size();
    if (had_ < wanted_) {
        return Progress::more;
    }
    if (in_header_) {
        return take_header();
    }
    coded_.resize(encoded_bytes(header_.nbytes, header_.fec));
    labels_.at(modulation_->bits).demap(symbols_.data(), count_, coded_);
    crc_ok_ = coder_.decode(coded_, header_.nbytes, header_.fec, payload_);
    return Progress::decoded;
}

double FrameDecoder::error() const {
    return error_power(*modulation_, symbols_.data(), count_);
}

FrameDecoder::Progress FrameDecoder::take_header() {
    const Modulation& bpsk = header_modulation();
    coded_.resize(encoded_bytes(kAllHeaderBytes, header_fec()));
    const std::size_t symbols = 8 * coded_.size();
    header_error_ = error_power(bpsk, symbols_.data(), symbols);
    labels_.at(bpsk.bits).demap(symbols_.data(), symbols, coded_);
    unscramble_data(coded_.data(), static_cast<unsigned>(coded_.size()));
    if (!header_coder_.decode(coded_, kAllHeaderBytes, header_fec(), payload_)) {
        return Progress::passed_over;
    }
    Header::Octets octets{};
    std::copy(payload_.begin(), payload_.end(), octets.begin());
    const std::optional<Header> header = Header::parsed(octets);
    if (!header || header->network != network_ || header->nbytes < 1 || header->nbytes > kMaxFrameBytes ||
        modulation_numbered(header->modulation) == nullptr || fec_numbered(header->fec) == nullptr) {
        return Progress::passed_over;
    }
    header_ = *header;
    modulation_ = modulation_numbered(header_.modulation);
    const std::size_t bits = 8 * encoded_bytes(header_.nbytes, header_.fec);
    count_ = (bits + modulation_->bits - 1) / modulation_->bits;
    const std::size_t columns = format_.data().size();
    in_header_ = false;
    had_ = 0;
    wanted_ = (count_ + columns - 1) / columns * columns;
    symbols_.resize(wanted_);
    return Progress::more;
}

}  // namespace gr::fadelab::ofdm
