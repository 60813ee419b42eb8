#include <gnuradio/fadelab/burst_guard.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <vector>

#include "numbers.hpp"

namespace gr::fadelab {

namespace {

const pmt::pmt_t& length_key() {
    static const pmt::pmt_t key = pmt::mp("packet_len");
    return key;
}

class burst_guard_impl : public burst_guard {
public:
    burst_guard_impl(int head, int tail)
        : block("burst guard", io_signature::make(1, 1, sizeof(gr_complex)),
                io_signature::make(1, 1, sizeof(gr_complex))),
          head_(head),
          tail_(tail) {
        // bursts get longer on the way, and so do their tags
        set_tag_propagation_policy(TPP_DONT);
    }

    void forecast(int /*noutput_items*/, gr_vector_int& ninput_items_required) override {
        // silence is not waited for
        ninput_items_required[0] = silence_before_ == 0 && (left_ > 0 || silence_after_ == 0) ? 1 : 0;
    }

    int general_work(int noutput_items, gr_vector_int& ninput_items, gr_vector_const_void_star& input_items,
                     gr_vector_void_star& output_items) override {
        auto* out = static_cast<gr_complex*>(output_items[0]);
        if (silence_before_ + left_ + silence_after_ == 0) {
            if (ninput_items[0] == 0) {
                return 0;
            }
            begin();
        }
        long made = silence(silence_before_, noutput_items, out);
        const long count = std::min<long>({left_, ninput_items[0], noutput_items - made});
        std::copy_n(static_cast<const gr_complex*>(input_items[0]), count, out + made);
        consume(0, static_cast<int>(count));
        left_ -= count;
        made += count;
        if (left_ == 0) {
            made += silence(silence_after_, noutput_items - made, out + made);
        }
        return static_cast<int>(made);
    }

private:
    // The next sample is a burst's first; one outside of bursts counts as a burst of its own.
    void begin() {
        left_ = 1;
        std::vector<tag_t> tags;
        get_tags_in_window(tags, 0, 0, 1);
        for (const tag_t& tag : tags) {
            if (pmt::eqv(tag.key, length_key())) {
                left_ = std::max(pmt::to_long(tag.value), 1L);
            } else {
                add_item_tag(0, nitems_written(0), tag.key, tag.value);
            }
        }
        silence_before_ = head_;
        silence_after_ = tail_;
        add_item_tag(0, nitems_written(0), length_key(), pmt::from_long(head_ + left_ + tail_));
    }

    // Writes as much of `left` as there is room for.
    static long silence(long& left, long room, gr_complex* out) {
        const long count = std::min(left, room);
        std::fill_n(out, count, gr_complex());
        left -= count;
        return count;
    }

    long head_;
    long tail_;
    // Of the present burst: what has not gone out yet.
    long silence_before_ = 0;
    long left_ = 0;
    long silence_after_ = 0;
};

}  // namespace

burst_guard::sptr burst_guard::make(int head, int tail) {
    return gnuradio::make_block_sptr<burst_guard_impl>(checked_silence("head", head), checked_silence("tail", tail));
}

}  // namespace gr::fadelab
