#include <gnuradio/fadelab/sample_meter.h>
#include <gnuradio/io_signature.h>

#include "meter.hpp"
#include "numbers.hpp"

namespace gr::fadelab {

namespace {

class sample_meter_impl : public Metering<sample_meter> {
public:
    explicit sample_meter_impl(int lot)
        : sync_block("sample meter", io_signature::make(1, 1, sizeof(gr_complex)), io_signature::make(0, 0, 0)),
          Metering(lot) {
        set_output_multiple(lot);
    }

    int work(int noutput_items, gr_vector_const_void_star& input_items,
             gr_vector_void_star& /*output_items*/) override {
        measure(static_cast<const gr_complex*>(input_items[0]), static_cast<std::size_t>(noutput_items));
        return noutput_items;
    }
};

}  // namespace

sample_meter::sptr sample_meter::make(int lot) {
    return gnuradio::make_block_sptr<sample_meter_impl>(checked_lot(lot));
}

}  // namespace gr::fadelab
