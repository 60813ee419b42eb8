#include <gnuradio/fadelab/sample_meter.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "../ofdm/clones.hpp"
#include "numbers.hpp"
#include "spectrum.hpp"

namespace gr::fadelab {

namespace {

// Largest values are kept in so many parts, which a processor compares at once.
constexpr std::size_t kParts = 16;

FADELAB_CLONES
float largest(const float* values, std::size_t count) {
    std::array<float, kParts> parts{};
    std::size_t at = 0;
    for (; at + kParts <= count; at += kParts) {
        for (std::size_t part = 0; part < kParts; ++part) {
            const float value = std::fabs(values[at + part]);
            parts[part] = parts[part] < value ? value : parts[part];
        }
    }
    for (; at < count; ++at) {
        parts[0] = std::max(parts[0], std::fabs(values[at]));
    }
    return *std::max_element(parts.begin(), parts.end());
}

class sample_meter_impl : public sample_meter {
public:
    explicit sample_meter_impl(int lot)
        : sync_block("sample meter", io_signature::make(1, 1, sizeof(gr_complex)), io_signature::make(0, 0, 0)),
          lot_(lot) {
        set_output_multiple(lot);
    }

    int work(int noutput_items, gr_vector_const_void_star& input_items,
             gr_vector_void_star& /*output_items*/) override {
        const auto* samples = static_cast<const gr_complex*>(input_items[0]);
        const auto count = static_cast<std::size_t>(noutput_items);
        const float peak = largest(reinterpret_cast<const float*>(samples), 2 * count);
        static const pmt::pmt_t time = pmt::mp("rx_time");
        tags_.clear();
        get_tags_in_window(tags_, 0, 0, count, time);
        const std::lock_guard<std::mutex> held(lock_);
        peak_ = std::max(peak_, peak);
        beginnings_ += tags_.size();
        newest_.assign(samples + count - lot_, samples + count);
        return noutput_items;
    }

    float take_peak() override {
        const std::lock_guard<std::mutex> held(lock_);
        return std::exchange(peak_, 0.0F);
    }
    std::vector<gr_complex> newest() const override {
        const std::lock_guard<std::mutex> held(lock_);
        return newest_;
    }
    std::vector<float> spectrum_db(int bins) override {
        const std::lock_guard<std::mutex> shown(spectrum_lock_);
        if (!spectrum_ || spectrum_->bins() != static_cast<std::size_t>(bins)) {
            spectrum_.emplace(bins);
        }
        // copied, so that the flowgraph does not wait for the transforms
        const std::vector<gr_complex> samples = newest();
        return samples.empty() ? std::vector<float>() : spectrum_->decibels(samples.data(), samples.size());
    }
    std::uint64_t beginnings() const override {
        const std::lock_guard<std::mutex> held(lock_);
        return beginnings_;
    }

private:
    std::size_t lot_;
    std::vector<tag_t> tags_;
    mutable std::mutex lock_;  // of what follows
    float peak_ = 0.0F;
    std::uint64_t beginnings_ = 0;
    std::vector<gr_complex> newest_;
    std::mutex spectrum_lock_;  // of what follows
    std::optional<Spectrum> spectrum_;
};

}  // namespace

sample_meter::sptr sample_meter::make(int lot) {
    return gnuradio::make_block_sptr<sample_meter_impl>(checked_lot(lot));
}

}  // namespace gr::fadelab
