#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>

#include <memory>
#include <string>

namespace gr::fadelab {

// Link frames (message port "frames") into PSDUs (port "psdus") for gr-ieee802-11's mapper: IEEE 802.11 data frames with
// FCS, numbered from 0. A message that is no frame, or a frame that is too long, is reported to the log and left out.
class FADELAB_API wifi_framer : virtual public block {
public:
    using sptr = std::shared_ptr<wifi_framer>;

    // The encoding's name is as in "qpsk-1/2". Throws std::invalid_argument.
    static sptr make(const std::string& encoding = "qpsk-1/2", int network = 0);
};

}  // namespace gr::fadelab
