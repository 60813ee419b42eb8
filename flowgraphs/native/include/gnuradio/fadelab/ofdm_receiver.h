#pragma once

#include <gnuradio/fadelab/api.h>
#include <gnuradio/sync_block.h>

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gr::fadelab {

// Samples to frames. Message port "frames": a PDU for each frame whose header is good, of any modulation and code. The
// keys of its dictionary: crc_ok (false: some octets of the frame are damaged), sequence, sample (index of the frame's
// first sample), nsamples, snr_db, evm_db, cfo_hz, rssi_db (dB of full scale), mode.
class FADELAB_API ofdm_receiver : virtual public sync_block {
public:
    using sptr = std::shared_ptr<ofdm_receiver>;

    struct symbols {
        std::vector<std::complex<float>> points;
        std::string modulation;
    };

    // Throws std::invalid_argument.
    static sptr make(double rate_sps, int subcarriers = 64, int cyclic_prefix = 16, int taper = 4, int network = 0);

    // The newest frame's first 256 equalised payload symbols, and their modulation; empty before the first frame.
    virtual symbols constellation() const = 0;

    // What a sample_meter has, without a thread for it; the newest 16384 samples.
    virtual float take_peak() = 0;
    virtual std::vector<std::complex<float>> newest() const = 0;
    virtual std::uint64_t beginnings() const = 0;
};

}  // namespace gr::fadelab
