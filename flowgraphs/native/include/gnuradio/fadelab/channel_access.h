#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/api.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace gr::fadelab {

// Listen before talk: lets stations share one carrier. Streams in: 0, bursts tagged "packet_len", as a transmitter makes
// them; 1, the device's received samples, tagged "rx_time". Streams out: 0, the bursts of a channel access as one, tagged
// "packet_len" and "tx_time", for gr-uhd's sink; 1, the received samples, zero while the own burst is on the air and a
// turnaround longer, for a receiver. Message ports: "busy" in, the index of the received sample up to which a receiver
// knows the carrier to be in use; "departed" out, the number of bursts that leave with a channel access.
//
// Nothing is sent without received samples, whose times are the block's clock.
class FADELAB_API channel_access : virtual public block {
public:
    using sptr = std::shared_ptr<channel_access>;

    // A burst's time on the air, by the device's clock.
    struct span {
        double begin_s;
        double end_s;
    };

    // Since the start.
    struct counters {
        std::uint64_t bursts;
        std::uint64_t deferrals;  // bursts that had to wait for another station
        double backoff_s;         // idle carrier that bursts waited
        double airtime_s;
        std::uint64_t collisions_heard;
    };

    // `defer_us`: idle carrier before the slots of a backoff; `slot_us`: more than `lead_us`, which lies between a decision and the first sample on the air; `occupancy_us`: a
    // channel access lasts no longer, but for a single longer burst; `window`: slots that are drawn from; `yield`: slots
    // that the last sender leaves to others; `threshold_db`:
    // power above the noise from which the carrier is busy. Throws std::invalid_argument.
    static sptr make(double rate_sps, double defer_us = 100.0, double slot_us = 900.0, double lead_us = 800.0,
                     double turnaround_us = 20.0, double occupancy_us = 13'000.0, int window = 4, int yield = 4,
                     double threshold_db = 6.0, std::uint64_t seed = 1);

    // The receiver's gain has changed: the noise is measured anew, and nothing is sent meanwhile.
    virtual void forget_noise() = 0;
    virtual counters counts() const = 0;
    // Takes the times of the bursts since the last call.
    virtual std::vector<span> take_spans() = 0;
    // Most that received samples came late here since the last call: later than they can come (s).
    virtual double take_lag_s() = 0;
};

}  // namespace gr::fadelab
