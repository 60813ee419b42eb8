#include <gnuradio/fadelab/wifi_synchronizer.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "../wifi/synchronizer.hpp"
#include "numbers.hpp"

namespace gr::fadelab {

namespace {

// Preambles remembered until their frame is decoded; most never are, being another's or noise. More than there are
// symbols in the buffers between this block and the decoder, which may lag behind by all of them.
constexpr std::size_t kPreambles = 4096;

class wifi_synchronizer_impl : public wifi_synchronizer {
public:
    explicit wifi_synchronizer_impl(double rate_sps)
        : block("wifi synchronizer", io_signature::make(1, 1, sizeof(gr_complex)),
                io_signature::make(1, 1, wifi::kCarriers * sizeof(gr_complex))),
          rate_sps_(rate_sps) {
        set_tag_propagation_policy(TPP_DONT);
    }

    void forecast(int /*noutput_items*/, gr_vector_int& ninput_items_required) override {
        // fewer would wake this block for nothing
        ninput_items_required[0] = taken_ < found_.count() ? 0 : static_cast<int>(synchronizer_.missing());
    }

    int general_work(int noutput_items, gr_vector_int& ninput_items, gr_vector_const_void_star& input_items,
                     gr_vector_void_star& output_items) override {
        if (taken_ == found_.count()) {
            found_.clear();
            taken_ = 0;
            feed(static_cast<const gr_complex*>(input_items[0]), static_cast<std::size_t>(ninput_items[0]));
            consume(0, ninput_items[0]);
        }
        const std::size_t count = std::min<std::size_t>(noutput_items, found_.count() - taken_);
        for (const auto& [symbol, heard] : found_.beginnings) {
            if (symbol >= taken_ && symbol < taken_ + count) {
                mark(nitems_written(0) + symbol - taken_, heard);
            }
        }
        std::copy_n(found_.carriers.data() + taken_ * wifi::kCarriers, count * wifi::kCarriers,
                    static_cast<gr_complex*>(output_items[0]));
        taken_ += count;
        return static_cast<int>(count);
    }

    std::optional<preamble> take_preamble(double cfo_hz) override {
        const std::lock_guard<std::mutex> held(lock_);
        const auto known = std::find_if(preambles_.begin(), preambles_.end(),
                                        [&](const auto& one) { return one.first == cfo_hz; });
        if (known == preambles_.end()) {
            return std::nullopt;
        }
        const preamble found = known->second;
        preambles_.erase(known);
        return found;
    }

private:
    // The device tags its first sample, and the first one behind every gap.
    void feed(const gr_complex* samples, std::size_t count) {
        static const pmt::pmt_t time = pmt::mp("rx_time");
        std::vector<tag_t> tags;
        get_tags_in_window(tags, 0, 0, count, time);
        std::size_t fed = 0;
        for (const tag_t& tag : tags) {
            const auto at = static_cast<std::size_t>(tag.offset - nitems_read(0));
            synchronizer_.feed(samples + fed, at - fed, found_);
            synchronizer_.gap();
            fed = at;
        }
        synchronizer_.feed(samples + fed, count - fed, found_);
    }

    double hertz(double cfo) const { return cfo * rate_sps_ / (2.0 * M_PI); }  // as the equalizer computes it

    void mark(std::uint64_t item, const wifi::Preamble& heard) {
        static const pmt::pmt_t key = pmt::mp("wifi_start");
        double cfo = heard.cfo;
        {
            const std::lock_guard<std::mutex> held(lock_);
            // two frames never share a value
            while (std::any_of(preambles_.begin(), preambles_.end(),
                               [&](const auto& known) { return known.first == hertz(cfo); })) {
                cfo = std::nextafter(cfo, std::numeric_limits<double>::infinity());
            }
            preambles_.emplace_back(hertz(cfo), preamble{heard.sample, heard.power, heard.snr});
            if (preambles_.size() > kPreambles) {
                preambles_.pop_front();
            }
        }
        add_item_tag(0, item, key, pmt::from_double(cfo));
    }

    double rate_sps_;
    wifi::Synchronizer synchronizer_;
    wifi::Symbols found_;
    std::size_t taken_ = 0;  // of the symbols found
    std::mutex lock_;        // of what follows
    std::deque<std::pair<double, preamble>> preambles_;  // by frequency offset (Hz), the oldest first
};

}  // namespace

wifi_synchronizer::sptr wifi_synchronizer::make(double rate_sps) {
    return gnuradio::make_block_sptr<wifi_synchronizer_impl>(checked_rate(rate_sps));
}

}  // namespace gr::fadelab
