#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>

#include <memory>

namespace gr::fadelab {

// Bursts (tagged "packet_len") in, the same with silence before and after each out: a device's antenna switch and
// amplifier settle before the first sample, and its filters let go of the last one. Other tags of a burst's first sample,
// such as its time ("tx_time"), are then those of the first silence.
class FADELAB_API burst_guard : virtual public block {
public:
    using sptr = std::shared_ptr<burst_guard>;

    // In samples. Throws std::invalid_argument.
    static sptr make(int head, int tail);
};

}  // namespace gr::fadelab
