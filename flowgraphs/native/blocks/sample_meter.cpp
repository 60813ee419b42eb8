#include <gnuradio/fadelab/sample_meter.h>
#include <gnuradio/io_signature.h>

#include "levels.hpp"
#include "numbers.hpp"

namespace gr::fadelab {

namespace {

class sample_meter_impl : public sample_meter {
public:
    explicit sample_meter_impl(int lot)
        : sync_block("sample meter", io_signature::make(1, 1, sizeof(gr_complex)), io_signature::make(0, 0, 0)),
          levels_(lot) {
        set_output_multiple(lot);
    }

    int work(int noutput_items, gr_vector_const_void_star& input_items,
             gr_vector_void_star& /*output_items*/) override {
        const auto count = static_cast<std::size_t>(noutput_items);
        tags_.clear();
        get_tags_in_window(tags_, 0, 0, count, rx_time());
        levels_.take(static_cast<const gr_complex*>(input_items[0]), count, tags_.size());
        return noutput_items;
    }

    float take_peak() override { return levels_.take_peak(); }
    std::vector<gr_complex> newest() const override { return levels_.newest(); }
    std::uint64_t beginnings() const override { return levels_.beginnings(); }

private:
    std::vector<tag_t> tags_;
    levels levels_;
};

}  // namespace

sample_meter::sptr sample_meter::make(int lot) {
    return gnuradio::make_block_sptr<sample_meter_impl>(checked_lot(lot));
}

}  // namespace gr::fadelab
