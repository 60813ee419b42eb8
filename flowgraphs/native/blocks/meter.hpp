// Measures a stream of samples, for other threads to ask.

#pragma once

#include <gnuradio/block.h>
#include <gnuradio/fadelab/metered.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "spectrum.hpp"

namespace gr::fadelab {

class Meter {
public:
    using Sample = std::complex<float>;

    // Keeps the newest `kept` samples.
    explicit Meter(int kept) : newest_(static_cast<std::size_t>(kept)) {}

    // Takes the next samples. The tags tell when some of them were received.
    void take(const Sample* samples, std::size_t count, const std::vector<tag_t>& times);

    float take_peak();
    std::vector<Sample> newest() const;
    std::vector<float> spectrum_db(int bins);
    std::vector<metered::beginning> beginnings(std::size_t known) const;

private:
    mutable std::mutex lock_;  // of what follows
    float peak_ = 0.0F;
    std::vector<metered::beginning> beginnings_;
    pmt::pmt_t began_;  // the time of the first one
    std::uint64_t taken_ = 0;
    std::vector<Sample> newest_;  // sample i lies at i modulo its size
    std::mutex spectrum_lock_;    // of what follows
    std::optional<Spectrum> spectrum_;
};

// A block whose samples are measured on the way.
template <typename Block>
class Metering : public Block {
public:
    explicit Metering(int kept) : meter_(kept) {}

    float take_peak() override { return meter_.take_peak(); }
    std::vector<Meter::Sample> newest() const override { return meter_.newest(); }
    std::vector<float> spectrum_db(int bins) override { return meter_.spectrum_db(bins); }
    std::vector<metered::beginning> beginnings(std::size_t known) const override { return meter_.beginnings(known); }

protected:
    // Measures what comes to `work`; returns the tags of samples that begin the stream or follow a gap, in order.
    const std::vector<tag_t>& measure(const Meter::Sample* samples, std::size_t count) {
        static const pmt::pmt_t time = pmt::mp("rx_time");
        tags_.clear();
        this->get_tags_in_window(tags_, 0, 0, count, time);
        meter_.take(samples, count, tags_);
        return tags_;
    }

private:
    Meter meter_;
    std::vector<tag_t> tags_;
};

}  // namespace gr::fadelab
