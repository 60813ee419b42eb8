// What is known of a stream's samples at any time: the largest, the newest, and how often the stream began.

#pragma once

#include <gnuradio/gr_complex.h>
#include <pmt/pmt.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace gr::fadelab {

// The tag with which a device marks its first sample, and the first after every gap.
const pmt::pmt_t& rx_time();

// For any thread.
class levels {
public:
    // Keeps the newest `size` samples: 1 or more.
    explicit levels(std::size_t size);

    // Takes the next samples, in which the stream began so many times.
    void take(const gr_complex* samples, std::size_t count, std::size_t beginnings);
    // The largest I or Q since the last call; full scale is 1.
    float take_peak();
    // Empty until there were as many as are kept.
    std::vector<gr_complex> newest() const;
    std::uint64_t beginnings() const;

private:
    mutable std::mutex lock_;  // of what follows
    float peak_ = 0.0F;
    std::uint64_t beginnings_ = 0;
    std::vector<gr_complex> ring_;
    std::uint64_t had_ = 0;
};

}  // namespace gr::fadelab
