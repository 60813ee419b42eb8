// A Fourier transform of FFTW's, with its buffers.
//
// Rules kept: plans are estimated, not measured, so that every process computes the same bits.

#pragma once

#include <fftw3.h>

#include <cstddef>
#include <memory>

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

class Fft {
public:
    enum class Direction { forward = FFTW_FORWARD, backward = FFTW_BACKWARD };

    // Of `size` samples, without a scale.
    Fft(std::size_t size, Direction direction);

    std::size_t size() const { return size_; }
    // To be filled before `execute`, which may overwrite it.
    Sample* in() { return in_.get(); }
    Sample* out() { return out_.get(); }
    void execute() { fftwf_execute(plan_.get()); }

private:
    struct Freed {
        void operator()(Sample* samples) const { fftwf_free(samples); }
    };

    std::size_t size_;
    std::unique_ptr<Sample, Freed> in_;
    std::unique_ptr<Sample, Freed> out_;
    Owned<fftwf_plan, fftwf_destroy_plan> plan_;
};

}  // namespace gr::fadelab::ofdm
