#pragma once

#include <gnuradio/fadelab/api.h>
#include <gnuradio/fadelab/metered.h>
#include <gnuradio/sync_block.h>

#include <memory>

namespace gr::fadelab {

// Measures samples, for receivers that do not measure them themselves.
class FADELAB_API sample_meter : virtual public sync_block, public metered {
public:
    using sptr = std::shared_ptr<sample_meter>;

    // Takes `lot` samples at a time; the newest ones are as many.
    static sptr make(int lot = 16384);
};

}  // namespace gr::fadelab
