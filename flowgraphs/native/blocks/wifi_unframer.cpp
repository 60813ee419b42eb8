#include <gnuradio/fadelab/wifi_unframer.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "../ofdm/arithmetic.hpp"
#include "../wifi/mac.hpp"
#include "numbers.hpp"
#include "pdu.hpp"

namespace gr::fadelab {

namespace {

const pmt::pmt_t& mpdus_port() {
    static const pmt::pmt_t port = pmt::mp("mpdus");
    return port;
}

class wifi_unframer_impl : public wifi_unframer {
public:
    wifi_unframer_impl(wifi_synchronizer::sptr synchronizer, std::uint16_t network)
        : block("wifi unframer", io_signature::make(0, 0, 0), io_signature::make(0, 0, 0)),
          synchronizer_(std::move(synchronizer)),
          network_(network) {
        message_port_register_out(frames_port());
        message_port_register_in(mpdus_port());
    }

    // Called by the thread of the block that publishes. Handled at once: to wake a thread for it would cost more.
    void post(pmt::pmt_t port, pmt::pmt_t message) override {
        if (pmt::eqv(port, mpdus_port())) {
            take(message);
        } else {
            block::post(port, message);
        }
    }

private:
    void take(const pmt::pmt_t& mpdu) {
        static const pmt::pmt_t offset_key = pmt::mp("frequency offset");
        static const pmt::pmt_t encoding_key = pmt::mp("encoding");
        static const pmt::pmt_t bytes_key = pmt::mp("frame bytes");
        std::uint64_t encoding = 0;
        std::uint64_t nbytes = 0;
        const bool decoded = holds_octets(mpdu) && pmt::is_dict(pmt::car(mpdu)) &&
                             whole(pmt::car(mpdu), encoding_key, encoding) && encoding < wifi::kEncodings.size() &&
                             whole(pmt::car(mpdu), bytes_key, nbytes);
        const auto cfo_hz = decoded ? real(pmt::car(mpdu), offset_key) : std::nullopt;
        if (!cfo_hz) {
            d_logger->error("a message that is no decoded MPDU came to port mpdus: connect gr-ieee802-11's decoder");
            return;
        }
        std::size_t count = 0;
        const std::uint8_t* octets = pmt::u8vector_elements(pmt::cdr(mpdu), count);
        auto heard = wifi::link_frame(octets, count, network_);
        if (!heard) {
            return;
        }
        const auto preamble = synchronizer_->take_preamble(*cfo_hz);
        if (!preamble) {
            d_logger->error("an MPDU without a preamble came to port mpdus: it is of another synchronizer");
            return;
        }
        const wifi::Encoding& used = wifi::kEncodings[encoding];
        frame_box::frame received;
        received.payload = std::move(heard->payload);
        received.crc_ok = true;
        received.sequence = heard->sequence;
        received.sample = static_cast<std::uint64_t>(std::max<std::int64_t>(preamble->sample, 0));
        received.nsamples = wifi::burst_samples(nbytes, used);
        if (preamble->snr > 0.0) {
            received.snr_db = ofdm::decibels(preamble->snr);
        }
        received.cfo_hz = cfo_hz;
        received.rssi_db = ofdm::decibels(preamble->power);
        received.mode = used.name;
        message_port_pub(frames_port(), pdu_of(received));
    }

    wifi_synchronizer::sptr synchronizer_;
    std::uint16_t network_;
};

}  // namespace

wifi_unframer::sptr wifi_unframer::make(wifi_synchronizer::sptr synchronizer, int network) {
    if (!synchronizer) {
        throw std::invalid_argument("an unframer needs its synchronizer");
    }
    return gnuradio::make_block_sptr<wifi_unframer_impl>(std::move(synchronizer), checked_network(network));
}

}  // namespace gr::fadelab
