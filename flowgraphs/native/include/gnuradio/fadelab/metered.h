#pragma once

#include <gnuradio/fadelab/api.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gr::fadelab {

// What a program may ask of received samples at any time: the largest, the newest, and the gaps between them.
class FADELAB_API metered {
public:
    // Where the stream begins, or goes on after a gap.
    struct beginning {
        std::uint64_t sample;  // index of the first sample
        double at_s;           // its time after that of the stream's first beginning, by the device's clock
    };

    virtual ~metered() = default;

    // The largest I or Q since the last call; full scale is 1.
    virtual float take_peak() = 0;
    // The newest samples; empty at first.
    virtual std::vector<std::complex<float>> newest() const = 0;
    // Their power spectrum: the level of each bin in dB of full scale, lowest frequency first; empty at first. Throws
    // std::invalid_argument for more bins than samples.
    virtual std::vector<float> spectrum_db(int bins) = 0;
    // The beginnings but for the `known` oldest: a device tags its first sample, and the first after every gap, with
    // "rx_time".
    virtual std::vector<beginning> beginnings(std::size_t known) const = 0;
};

}  // namespace gr::fadelab
