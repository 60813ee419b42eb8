// Link frames to bursts of samples.
//
// Read first: format.hpp; liquid's ofdmflexframegen, whose bursts these are, bit by bit.
//
// Rules kept: equal frames with equal sequence numbers make equal samples. liquid fills a frame's last symbols from C's
// rand(), which is therefore seeded, and asked once. The exception is Hamming (7,4), where the words of a frame may end
// within an octet, whose other bits liquid does not set.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fft.hpp"
#include "format.hpp"
#include "liquid.hpp"
#include "packet.hpp"
#include "training.hpp"

namespace gr::fadelab::ofdm {

class Modulator {
public:
    // `rms` is the amplitude of a burst; full scale is 1. Throws std::invalid_argument, one line.
    Modulator(const Format& format, const Modulation& modulation, const Fec& fec, float rms, std::uint16_t network);

    // Modulation and code of the frames from now on.
    void set_mode(const Modulation& modulation, const Fec& fec);
    // Throws std::invalid_argument, one line, for lengths that no frame has.
    std::size_t frame_samples(std::size_t nbytes) const;
    // Puts the burst of a frame into `burst`, whose size becomes the frame's. Frames are numbered from 0.
    void modulate(const std::uint8_t* frame, std::size_t nbytes, std::vector<Sample>& burst);

private:
    // A constellation's points, by bits, with the amplitude of a subcarrier.
    using Points = std::array<Sample, 64>;

    Points points_of(const Modulation& modulation) const;
    void label(const Modulation& modulation);
    void write(const Points& points, Sample*& to);
    void write_symbol(Sample* to);

    Format format_;
    Modulation modulation_;
    Modulation header_modulation_;
    unsigned fec_;
    unsigned header_fec_;
    float rms_;
    std::uint16_t network_;
    std::uint32_t sequence_ = 0;

    Training training_;  // the samples with the amplitude of the burst
    float amplitude_;    // of a subcarrier
    Points points_;
    Points header_points_;
    std::vector<unsigned> fill_;  // of a frame's header and payload
    std::size_t filled_ = 0;      // how many of these a frame has used
    std::size_t pilot_ = 0;       // how many pilots a frame has had, modulo their sequence
    PacketCoder header_coder_;
    PacketCoder coder_;
    std::vector<std::uint8_t> coded_;
    std::vector<std::uint8_t> labels_;  // the bits of every symbol's subcarriers
    Fft fft_;
    std::vector<Sample> postfix_;  // the newest symbol's
};

}  // namespace gr::fadelab::ofdm
