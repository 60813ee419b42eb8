#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>

#include <memory>

namespace gr::fadelab {

// Bursts (tagged "packet_len") in, a continuous stream out: silence where there is no burst, as on the air. A burst is
// passed on without gaps. For flowgraphs without a radio; a block behind it, such as a throttle, must set the pace.
class FADELAB_API idle_filler : virtual public block {
public:
    using sptr = std::shared_ptr<idle_filler>;

    // `lot`: samples of silence at a time, between bursts.
    static sptr make(int lot = 1024);
};

}  // namespace gr::fadelab
