#include <gnuradio/fadelab/ofdm_receiver.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <cmath>

#include "../ofdm/demodulator.hpp"
#include "meter.hpp"
#include "numbers.hpp"
#include "pdu.hpp"

namespace gr::fadelab {

namespace {

// The receiver takes samples of about this duration at a time, so that its thread does not wake for every packet.
constexpr double kLotS = 0.5e-3;
constexpr int kLeastLot = 256;
constexpr int kLargestLot = 4096;
// Samples kept for those who ask.
constexpr int kNewest = 16384;

int lot_of(double rate_sps) {
    const double power = std::round(std::log2(rate_sps * kLotS));
    return static_cast<int>(std::clamp<double>(std::exp2(power), kLeastLot, kLargestLot));
}

const pmt::pmt_t& busy_port() {
    static const pmt::pmt_t port = pmt::mp("busy");
    return port;
}

frame_box::frame frame_of(const ofdm::Report& report, double rate_sps) {
    frame_box::frame received;
    received.payload = report.payload;
    received.crc_ok = report.crc_ok;
    received.sequence = report.sequence;
    received.sample = report.sample;
    received.nsamples = report.nsamples;
    received.snr_db = report.snr_db;
    received.evm_db = report.evm_db;
    received.cfo_hz = report.cfo / (2.0 * M_PI) * rate_sps;
    received.rssi_db = report.rssi_db;
    received.mode = report.mode;
    return received;
}

class ofdm_receiver_impl : public Metering<ofdm_receiver> {
public:
    ofdm_receiver_impl(double rate_sps, const ofdm::Format& format, std::uint16_t network, std::size_t reach)
        : sync_block("ofdm rx", io_signature::make(1, 1, sizeof(gr_complex)), io_signature::make(0, 0, 0)),
          Metering(kNewest),
          demodulator_(format, network, reach),
          take_([this, rate_sps](const ofdm::Report& report) {
              message_port_pub(frames_port(), pdu_of(frame_of(report, rate_sps)));
          }) {
        message_port_register_out(frames_port());
        message_port_register_out(busy_port());
        set_output_multiple(lot_of(rate_sps));
    }

    int work(int noutput_items, gr_vector_const_void_star& input_items,
             gr_vector_void_star& /*output_items*/) override {
        const auto* samples = static_cast<const gr_complex*>(input_items[0]);
        const auto count = static_cast<std::size_t>(noutput_items);
        std::size_t fed = 0;
        for (const tag_t& tag : measure(samples, count)) {
            const auto at = static_cast<std::size_t>(tag.offset - nitems_read(0));
            feed(samples + fed, at - fed);
            demodulator_.gap(take_);
            fed = at;
        }
        feed(samples + fed, count - fed);
        return noutput_items;
    }

    symbols constellation() const override {
        ofdm::Shown shown = demodulator_.constellation();
        return {std::move(shown.symbols), std::move(shown.modulation)};
    }

private:
    void feed(const gr_complex* samples, std::size_t count) {
        demodulator_.feed(samples, count, take_);
        if (demodulator_.busy_until() != busy_until_) {
            busy_until_ = demodulator_.busy_until();
            message_port_pub(busy_port(), pmt::from_uint64(busy_until_));
        }
    }

    ofdm::Demodulator demodulator_;
    ofdm::Demodulator::Take take_;
    std::uint64_t busy_until_ = 0;
};

}  // namespace

ofdm_receiver::sptr ofdm_receiver::make(double rate_sps, int subcarriers, int cyclic_prefix, int taper, int network,
                                        int reach) {
    const ofdm::Format format = format_of(subcarriers, cyclic_prefix, taper);
    return gnuradio::make_block_sptr<ofdm_receiver_impl>(checked_rate(rate_sps), format, checked_network(network),
                                                         checked_reach(reach, format));
}

}  // namespace gr::fadelab
