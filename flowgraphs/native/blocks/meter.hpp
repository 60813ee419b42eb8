// Measures a stream of samples, for other threads to ask.

#pragma once

#include <gnuradio/block.h>

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

    // Takes the next samples; `beginnings` of them begin the stream or follow a gap.
    void take(const Sample* samples, std::size_t count, std::size_t beginnings);

    float take_peak();
    std::vector<Sample> newest() const;
    std::vector<float> spectrum_db(int bins);
    std::uint64_t beginnings() const;

private:
    mutable std::mutex lock_;  // of what follows
    float peak_ = 0.0F;
    std::uint64_t beginnings_ = 0;
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
    std::uint64_t beginnings() const override { return meter_.beginnings(); }

protected:
    // Measures what comes to `work`.
    void measure(const Meter::Sample* samples, std::size_t count) {
        static const pmt::pmt_t time = pmt::mp("rx_time");
        tags_.clear();
        this->get_tags_in_window(tags_, 0, 0, count, time);
        meter_.take(samples, count, tags_.size());
    }

private:
    Meter meter_;
    std::vector<tag_t> tags_;
};

}  // namespace gr::fadelab
