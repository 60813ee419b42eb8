#pragma once

#include <gnuradio/fadelab/api.h>

#include <complex>
#include <cstdint>
#include <vector>

namespace gr::fadelab {

// What a program may ask of received samples at any time: the largest, the newest, and the gaps between them.
class FADELAB_API metered {
public:
    virtual ~metered() = default;

    // The largest I or Q since the last call; full scale is 1.
    virtual float take_peak() = 0;
    // The newest samples; empty at first.
    virtual std::vector<std::complex<float>> newest() const = 0;
    // Their power spectrum: the level of each bin in dB of full scale, lowest frequency first; empty at first. Throws
    // std::invalid_argument for more bins than samples.
    virtual std::vector<float> spectrum_db(int bins) = 0;
    // How often the stream began: a device tags its first sample, and the first after every gap, with "rx_time".
    virtual std::uint64_t beginnings() const = 0;
};

}  // namespace gr::fadelab
