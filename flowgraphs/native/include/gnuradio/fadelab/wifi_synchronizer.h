#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace gr::fadelab {

// Samples into OFDM symbols of IEEE 802.11: vectors of 64 carriers for gr-ieee802-11's equalizer, the first of a frame
// with the tag "wifi_start" that it wants.
//
// The tag's value is the frequency offset in radians per sample. In Hz it comes back with the decoded frame, to the last
// bit as it is computed here, and so tells which preamble was this frame's.
class FADELAB_API wifi_synchronizer : virtual public block {
public:
    using sptr = std::shared_ptr<wifi_synchronizer>;

    // Where a frame began, and how it was heard.
    struct preamble {
        std::int64_t sample;  // index of its first sample
        double power;         // of a sample, relative to full scale
        double snr;           // per sample, as a ratio; 0: noise alone
    };

    // Throws std::invalid_argument.
    static sptr make(double rate_sps);

    // Takes the preamble that had this offset, if it is one of the newest 64.
    virtual std::optional<preamble> take_preamble(double cfo_hz) = 0;
};

}  // namespace gr::fadelab
