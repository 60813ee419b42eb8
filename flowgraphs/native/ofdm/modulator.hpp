// Link frames to bursts of samples.
//
// Rules kept: equal frames with equal sequence numbers make equal samples. liquid fills a frame's last symbols from C's
// rand(), which is therefore seeded for every frame. The exception is Hamming (7,4), where the words of a frame may end
// within an octet, whose other bits liquid does not set.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format.hpp"
#include "liquid.hpp"

namespace gr::fadelab::ofdm {

class Modulator {
public:
    // `rms` is the amplitude of a burst; full scale is 1. Throws std::invalid_argument, one line.
    Modulator(const Format& format, const Modulation& modulation, const Fec& fec, float rms, std::uint16_t network);

    // Throws std::invalid_argument, one line, for lengths that no frame has.
    std::size_t frame_samples(std::size_t nbytes) const;
    // Puts the burst of a frame into `burst`, whose size becomes the frame's. Frames are numbered from 0.
    void modulate(const std::uint8_t* frame, std::size_t nbytes, std::vector<Sample>& burst);

private:
    Format format_;
    Modulation modulation_;
    unsigned fec_;
    float rms_;
    std::uint16_t network_;
    std::uint32_t sequence_ = 0;
    Generator generator_;
};

}  // namespace gr::fadelab::ofdm
