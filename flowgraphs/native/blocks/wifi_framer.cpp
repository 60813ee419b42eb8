#include <gnuradio/fadelab/wifi_framer.h>
#include <gnuradio/io_signature.h>

#include <mutex>
#include <vector>

#include "../wifi/mac.hpp"
#include "numbers.hpp"
#include "pdu.hpp"

namespace gr::fadelab {

namespace {

const pmt::pmt_t& psdus_port() {
    static const pmt::pmt_t port = pmt::mp("psdus");
    return port;
}

class wifi_framer_impl : public wifi_framer {
public:
    wifi_framer_impl(const wifi::Encoding& encoding, std::uint16_t network)
        : block("wifi framer", io_signature::make(0, 0, 0), io_signature::make(0, 0, 0)),
          encoding_(encoding),
          network_(network) {
        message_port_register_out(psdus_port());
        message_port_register_in(frames_port());
    }

    // Called by the thread that publishes. Handled at once: to wake a thread for it would cost more.
    void post(pmt::pmt_t port, pmt::pmt_t message) override {
        if (pmt::eqv(port, frames_port())) {
            take(message);
        } else {
            block::post(port, message);
        }
    }

private:
    void take(const pmt::pmt_t& pdu) {
        if (!holds_octets(pdu)) {
            d_logger->error(
                "a message that is no PDU of octets came to port frames: send pairs of a dictionary and a u8vector");
            return;
        }
        std::size_t nbytes = 0;
        const std::uint8_t* frame = pmt::u8vector_elements(pmt::cdr(pdu), nbytes);
        if (nbytes > wifi::kMaxFrameBytes) {
            d_logger->error("a frame of {} bytes is left out: 802.11 carries up to {}", nbytes, wifi::kMaxFrameBytes);
            return;
        }
        const std::lock_guard<std::mutex> held(lock_);
        const auto psdu = wifi::mac_frame(frame, nbytes, sequence_++, network_, encoding_);
        message_port_pub(psdus_port(), pmt::cons(pmt::make_dict(), pmt::init_u8vector(psdu.size(), psdu)));
    }

    const wifi::Encoding& encoding_;
    std::uint16_t network_;
    std::mutex lock_;  // of what follows, and of the order of PSDUs
    std::uint32_t sequence_ = 0;
};

}  // namespace

wifi_framer::sptr wifi_framer::make(const std::string& encoding, int network) {
    return gnuradio::make_block_sptr<wifi_framer_impl>(wifi::encoding_named(encoding), checked_network(network));
}

}  // namespace gr::fadelab
