// All blocks in one flowgraph, started and stopped, for the sanitizers: frames go round, while another thread asks the
// meter and the receiver. Exit status 0: all frames came back in their order.

#include <gnuradio/fadelab/burst_guard.h>
#include <gnuradio/fadelab/channel_access.h>
#include <gnuradio/fadelab/frame_box.h>
#include <gnuradio/fadelab/idle_filler.h>
#include <gnuradio/fadelab/ofdm_receiver.h>
#include <gnuradio/fadelab/ofdm_transmitter.h>
#include <gnuradio/fadelab/sample_meter.h>
#include <gnuradio/fadelab/wifi_framer.h>
#include <gnuradio/fadelab/wifi_synchronizer.h>
#include <gnuradio/fadelab/wifi_unframer.h>
#include <gnuradio/io_signature.h>
#include <gnuradio/sync_block.h>
#include <gnuradio/top_block.h>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kStarts = 3;
constexpr std::size_t kFrames = 200;
constexpr std::size_t kAccessFrames = 20;
constexpr int kPatience_ms = 60'000;

// Takes symbols, and stands for gr-ieee802-11's decoder: every frame's beginning becomes an MPDU.
class decoder : public gr::sync_block {
public:
    decoder() : sync_block("decoder", gr::io_signature::make(1, 1, 64 * sizeof(gr_complex)), gr::io_signature::make(0, 0, 0)) {
        message_port_register_out(pmt::mp("out"));
    }
    int work(int noutput_items, gr_vector_const_void_star& /*input_items*/,
             gr_vector_void_star& /*output_items*/) override {
        std::vector<gr::tag_t> tags;
        get_tags_in_window(tags, 0, 0, noutput_items, pmt::mp("wifi_start"));
        for (const auto& tag : tags) {
            pmt::pmt_t about = pmt::make_dict();
            about = pmt::dict_add(about, pmt::mp("frequency offset"), tag.value);
            about = pmt::dict_add(about, pmt::mp("encoding"), pmt::from_uint64(0));
            about = pmt::dict_add(about, pmt::mp("frame bytes"), pmt::from_uint64(40));
            message_port_pub(pmt::mp("out"), pmt::cons(about, pmt::make_u8vector(36, 0)));
        }
        return noutput_items;
    }
};

// Noise at 2 Msps of the wall clock, the first sample tagged with a time as a device's.
class device : public gr::sync_block {
public:
    device() : sync_block("device", gr::io_signature::make(0, 0, 0), gr::io_signature::make(1, 1, sizeof(gr_complex))) {}
    int work(int noutput_items, gr_vector_const_void_star& /*input_items*/,
             gr_vector_void_star& output_items) override {
        if (nitems_written(0) == 0) {
            add_item_tag(0, 0, pmt::mp("rx_time"), pmt::make_tuple(pmt::from_uint64(1), pmt::from_double(0.5)));
        }
        const int count = std::min(noutput_items, 200);
        std::this_thread::sleep_until(begun_ + std::chrono::nanoseconds(500 * (nitems_written(0) + count)));
        auto* out = static_cast<gr_complex*>(output_items[0]);
        for (int i = 0; i < count; ++i) {
            noise_ = noise_ * 1664525U + 1013904223U;
            out[i] = gr_complex(static_cast<float>(noise_ >> 8U) * 1e-10F, 1e-3F);
        }
        return count;
    }

private:
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::uint32_t noise_ = 1;
};

// Frames that leave by listen before talk on an idle carrier come back, and are counted; false when some are missing.
bool access_lets_all_leave() {
    const auto top = gr::make_top_block("access");
    const auto box = gr::fadelab::frame_box::make();
    const auto transmitter = gr::fadelab::ofdm_transmitter::make("qam16");
    const auto access = gr::fadelab::channel_access::make(2e6, 100.0, 60'000.0, 50'000.0, 20.0, 13'000.0, 1, 0);
    const auto receiver = gr::fadelab::ofdm_receiver::make(2e6);
    const auto heard = gr::fadelab::ofdm_receiver::make(2e6);
    const auto source = gnuradio::make_block_sptr<device>();
    top->msg_connect(box, "send", transmitter, "frames");
    top->connect(transmitter, 0, access, 0);
    top->connect(source, 0, access, 1);
    const auto filler = gr::fadelab::idle_filler::make();
    top->connect(access, 0, filler, 0);
    top->connect(filler, 0, receiver, 0);
    top->connect(access, 1, heard, 0);
    top->msg_connect(heard, "busy", access, "busy");
    top->msg_connect(access, "departed", box, "departed");
    top->msg_connect(receiver, "frames", box, "received");
    top->start();
    std::size_t back = 0;
    for (std::size_t i = 0; i < kAccessFrames; ++i) {
        const std::vector<std::uint8_t> frame(100, static_cast<std::uint8_t>(i));
        box->send(frame.data(), frame.size());
    }
    while (back < kAccessFrames) {
        pollfd readable{box->eventfd(), POLLIN, 0};
        if (poll(&readable, 1, kPatience_ms) != 1) {
            break;
        }
        back += box->take().size();
        static_cast<void>(access->counts());
        static_cast<void>(access->take_lag_s());
    }
    top->stop();
    top->wait();
    const bool all = back == kAccessFrames && box->departed() == kAccessFrames && !access->take_spans().empty();
    box->close();
    return all;
}

// Sends frames and takes them back; false when some are missing.
bool round_trip() {
    const auto top = gr::make_top_block("test");
    const auto box = gr::fadelab::frame_box::make();
    const auto transmitter = gr::fadelab::ofdm_transmitter::make("qam16");
    const auto guard = gr::fadelab::burst_guard::make(30, 50);
    const auto filler = gr::fadelab::idle_filler::make();
    const auto receiver = gr::fadelab::ofdm_receiver::make(2e6);
    const auto meter = gr::fadelab::sample_meter::make();
    top->msg_connect(box, "send", transmitter, "frames");
    top->connect(transmitter, 0, guard, 0);
    top->connect(guard, 0, filler, 0);
    top->connect(filler, 0, receiver, 0);
    top->connect(filler, 0, meter, 0);
    top->msg_connect(receiver, "frames", box, "received");
    // PHY wifi hears the same samples, in which there is nothing for it
    const auto framer = gr::fadelab::wifi_framer::make();
    const auto synchronizer = gr::fadelab::wifi_synchronizer::make(2e6);
    const auto unframer = gr::fadelab::wifi_unframer::make(synchronizer);
    const auto symbols = gnuradio::make_block_sptr<decoder>();
    top->msg_connect(box, "send", framer, "frames");
    top->connect(filler, 0, synchronizer, 0);
    top->connect(synchronizer, 0, symbols, 0);
    top->msg_connect(symbols, "out", unframer, "mpdus");
    top->msg_connect(unframer, "frames", box, "received");
    top->start();
    std::atomic<bool> done{false};
    std::thread watcher([&] {
        while (!done) {
            static_cast<void>(meter->take_peak());
            static_cast<void>(meter->newest());
            static_cast<void>(meter->beginnings(0));
            static_cast<void>(receiver->constellation());
            static_cast<void>(box->late());
            static_cast<void>(box->acknowledged());
            static_cast<void>(synchronizer->take_preamble(0.0));
        }
    });
    for (std::size_t i = 0; i < kFrames; ++i) {
        const std::vector<std::uint8_t> frame(100 + i, static_cast<std::uint8_t>(i));
        box->send(frame.data(), frame.size());
    }
    std::size_t back = 0;
    while (back < kFrames) {
        pollfd readable{box->eventfd(), POLLIN, 0};
        if (poll(&readable, 1, kPatience_ms) != 1) {
            break;
        }
        for (const auto& frame : box->take()) {
            if (!frame.crc_ok || frame.sequence != back || frame.payload.size() != 100 + back) {
                return false;
            }
            ++back;
        }
    }
    done = true;
    watcher.join();
    top->stop();
    top->wait();
    box->close();
    return back == kFrames;
}

}  // namespace

int main() {
    for (int i = 0; i < kStarts; ++i) {
        if (!round_trip()) {
            std::puts("frames were lost");
            return 1;
        }
    }
    if (!access_lets_all_leave()) {
        std::puts("channel access kept frames");
        return 1;
    }
    return 0;
}
