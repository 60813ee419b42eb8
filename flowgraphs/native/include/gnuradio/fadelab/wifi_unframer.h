#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>
#include <gnuradio/fadelab/wifi_synchronizer.h>

#include <memory>

namespace gr::fadelab {

// gr-ieee802-11's MPDUs (message port "mpdus") into received frames (port "frames"), with what the synchronizer heard of
// their preambles. Frames of another network, and frames that are none of ours, are passed over.
class FADELAB_API wifi_unframer : virtual public block {
public:
    using sptr = std::shared_ptr<wifi_unframer>;

    // Throws std::invalid_argument.
    static sptr make(wifi_synchronizer::sptr synchronizer, int network = 0);
};

}  // namespace gr::fadelab
