#pragma once

#include <gnuradio/fadelab/api.h>
#include <gnuradio/sync_block.h>

#include <cstdint>
#include <memory>
#include <string>

namespace gr::fadelab {

// Frames to bursts. Message port "frames": PDUs, a frame each; a symbol "mode" in the dictionary, as "qam16 golay2412",
// is that of its frame, others have the block's own. Out: the bursts of the frames, one after the other, the
// first sample of each tagged "packet_len" with its samples (a long), from which gr-uhd's sink makes SOB and EOB.
// Between bursts there are no samples.
//
// A message that is no PDU, whose frame is empty or too long, or whose mode is unknown, is reported to the log and left out.
class FADELAB_API ofdm_transmitter : virtual public sync_block {
public:
    using sptr = std::shared_ptr<ofdm_transmitter>;

    // `modulation`: bpsk, qpsk, qam16, qam64; `fec`: none, rep3, rep5, hamming74, ... Throws std::invalid_argument.
    static sptr make(const std::string& modulation = "qpsk", const std::string& fec = "none", int subcarriers = 64,
                     int cyclic_prefix = 16, int taper = 4, float rms = 0.25F, int network = 0);
};

}  // namespace gr::fadelab
