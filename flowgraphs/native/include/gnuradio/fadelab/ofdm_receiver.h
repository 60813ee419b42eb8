#pragma once

#include <gnuradio/fadelab/api.h>
#include <gnuradio/fadelab/metered.h>
#include <gnuradio/sync_block.h>

#include <complex>
#include <memory>
#include <string>
#include <vector>

namespace gr::fadelab {

// Samples to frames. Message port "frames": a PDU for each frame whose header is good, of any modulation and code. The
// keys of its dictionary: crc_ok (false: some octets of the frame are damaged), sequence, sample (index of the frame's
// first sample), nsamples, snr_db, evm_db, cfo_hz, rssi_db (dB of full scale), mode. A frame that a gap in the samples
// (tag "rx_time") cuts is given up, and the next one is sought behind the gap. Message port "busy": the index of the sample
// at which the frame that is on the air ends, as soon as its header tells, and before that the header's end. The block measures the samples on the
// way, which saves a block with a thread of its own.
class FADELAB_API ofdm_receiver : virtual public sync_block, public metered {
public:
    using sptr = std::shared_ptr<ofdm_receiver>;

    struct symbols {
        std::vector<std::complex<float>> points;
        std::string modulation;
    };

    // `reach`: carrier offsets of so many whole subcarriers are sought, too, which costs time. Throws
    // std::invalid_argument.
    static sptr make(double rate_sps, int subcarriers = 64, int cyclic_prefix = 16, int taper = 4, int network = 0,
                     int reach = 0);

    // The newest frame's first 256 equalised payload symbols, and their modulation; empty before the first frame.
    virtual symbols constellation() const = 0;
};

}  // namespace gr::fadelab
