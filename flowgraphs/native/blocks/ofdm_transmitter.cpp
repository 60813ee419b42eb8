#include <gnuradio/fadelab/ofdm_transmitter.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../ofdm/modulator.hpp"
#include "numbers.hpp"
#include "pdu.hpp"

namespace gr::fadelab {

namespace {

class ofdm_transmitter_impl : public ofdm_transmitter {
public:
    ofdm_transmitter_impl(const ofdm::Format& format, const ofdm::Modulation& modulation, const ofdm::Fec& fec,
                          float rms, std::uint16_t network)
        : sync_block("ofdm tx", io_signature::make(0, 0, 0), io_signature::make(1, 1, sizeof(gr_complex))),
          modulator_(format, modulation, fec, rms, network),
          own_{modulation, fec} {
        // room for a whole burst and the next one, so that the device does not run dry
        set_min_output_buffer(static_cast<long>(2 * modulator_.frame_samples(ofdm::kMaxFrameBytes)));
        message_port_register_in(frames_port());
        set_msg_handler(frames_port(), [this](const pmt::pmt_t& pdu) { take(pdu); });
    }

    int work(int noutput_items, gr_vector_const_void_star& /*input_items*/,
             gr_vector_void_star& output_items) override {
        if (sent_ == burst_.size() && !begin()) {
            // the next message wakes this block; waiting here would block its message handler
            return 0;
        }
        const std::size_t count = std::min<std::size_t>(noutput_items, burst_.size() - sent_);
        std::copy_n(burst_.data() + sent_, count, static_cast<gr_complex*>(output_items[0]));
        sent_ += count;
        return static_cast<int>(count);
    }

private:
    // GNU Radio calls this from the thread that calls work().
    void take(const pmt::pmt_t& pdu) {
        if (!holds_octets(pdu)) {
            d_logger->error(
                "a message that is no PDU of octets came to port frames: send pairs of a dictionary and a "
                "u8vector");
            return;
        }
        const std::size_t nbytes = pmt::length(pmt::cdr(pdu));
        if (nbytes < 1 || nbytes > ofdm::kMaxFrameBytes) {
            d_logger->error("a frame of {} bytes is left out: OFDM carries 1 to {}", nbytes, ofdm::kMaxFrameBytes);
            return;
        }
        Mode mode = own_;
        static const pmt::pmt_t key = pmt::mp("mode");
        const pmt::pmt_t about = pmt::car(pdu);
        const pmt::pmt_t wanted = pmt::is_dict(about) ? pmt::dict_ref(about, key, pmt::PMT_NIL) : pmt::PMT_NIL;
        if (pmt::is_symbol(wanted)) {
            const auto named = ofdm::mode_named(pmt::symbol_to_string(wanted));
            if (!named) {
                d_logger->error("a frame is left out: OFDM has no mode {}", pmt::symbol_to_string(wanted));
                return;
            }
            mode = *named;
        }
        waiting_.push_back({pmt::cdr(pdu), mode});
    }

    // Modulates the next frame, if one waits.
    bool begin() {
        if (waiting_.empty()) {
            return false;
        }
        std::size_t nbytes = 0;
        const std::uint8_t* frame = pmt::u8vector_elements(waiting_.front().octets, nbytes);
        modulator_.set_mode(waiting_.front().mode.first, waiting_.front().mode.second);
        modulator_.modulate(frame, nbytes, burst_);
        waiting_.pop_front();
        sent_ = 0;
        static const pmt::pmt_t key = pmt::mp("packet_len");
        add_item_tag(0, nitems_written(0), key, pmt::from_long(static_cast<long>(burst_.size())));
        return true;
    }

    using Mode = std::pair<ofdm::Modulation, ofdm::Fec>;

    struct Waiting {
        pmt::pmt_t octets;
        Mode mode;
    };

    ofdm::Modulator modulator_;
    Mode own_;
    std::deque<Waiting> waiting_;
    std::vector<gr_complex> burst_;
    std::size_t sent_ = 0;
};

}  // namespace

ofdm_transmitter::sptr ofdm_transmitter::make(const std::string& modulation, const std::string& fec, int subcarriers,
                                              int cyclic_prefix, int taper, float rms, int network) {
    return gnuradio::make_block_sptr<ofdm_transmitter_impl>(format_of(subcarriers, cyclic_prefix, taper),
                                                            ofdm::modulation_named(modulation), ofdm::fec_named(fec),
                                                            checked_rms(rms), checked_network(network));
}

}  // namespace gr::fadelab
