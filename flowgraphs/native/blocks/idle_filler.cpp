#include <gnuradio/fadelab/idle_filler.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <vector>

#include "numbers.hpp"

namespace gr::fadelab {

namespace {

class idle_filler_impl : public idle_filler {
public:
    explicit idle_filler_impl(int lot)
        : block("idle filler", io_signature::make(1, 1, sizeof(gr_complex)),
                io_signature::make(1, 1, sizeof(gr_complex))),
          lot_(lot) {
        // the default policy would misplace the tags of bursts
        set_tag_propagation_policy(TPP_DONT);
    }

    void forecast(int /*noutput_items*/, gr_vector_int& ninput_items_required) override {
        // nothing is waited for between bursts
        ninput_items_required[0] = left_ > 0 ? 1 : 0;
    }

    int general_work(int noutput_items, gr_vector_int& ninput_items, gr_vector_const_void_star& input_items,
                     gr_vector_void_star& output_items) override {
        auto* out = static_cast<gr_complex*>(output_items[0]);
        if (left_ == 0 && ninput_items[0] == 0) {
            const int count = std::min(noutput_items, lot_);
            std::fill_n(out, count, gr_complex());
            return count;
        }
        if (left_ == 0) {
            left_ = length_of_burst();
        }
        const auto count = static_cast<int>(std::min<long>({ninput_items[0], noutput_items, left_}));
        std::copy_n(static_cast<const gr_complex*>(input_items[0]), count, out);
        left_ -= count;
        consume(0, count);
        return count;
    }

private:
    // Of the one that begins with the next sample; a sample outside of bursts counts as one of its own.
    long length_of_burst() {
        static const pmt::pmt_t key = pmt::mp("packet_len");
        std::vector<tag_t> tags;
        get_tags_in_window(tags, 0, 0, 1, key);
        return tags.empty() ? 1 : std::max(pmt::to_long(tags.front().value), 1L);
    }

    int lot_;
    long left_ = 0;  // samples of the present burst that have not come yet
};

}  // namespace

idle_filler::sptr idle_filler::make(int lot) {
    return gnuradio::make_block_sptr<idle_filler_impl>(checked_lot(lot));
}

}  // namespace gr::fadelab
