// All blocks in one flowgraph, started and stopped, for the sanitizers: frames go round, while another thread asks the
// meter and the receiver. Exit status 0: all frames came back in their order.

#include <gnuradio/fadelab/frame_box.h>
#include <gnuradio/fadelab/idle_filler.h>
#include <gnuradio/fadelab/ofdm_receiver.h>
#include <gnuradio/fadelab/ofdm_transmitter.h>
#include <gnuradio/fadelab/sample_meter.h>
#include <gnuradio/top_block.h>

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kStarts = 3;
constexpr std::size_t kFrames = 200;
constexpr int kPatience_ms = 60'000;

// Sends frames and takes them back; false when some are missing.
bool round_trip() {
    const auto top = gr::make_top_block("test");
    const auto box = gr::fadelab::frame_box::make();
    const auto transmitter = gr::fadelab::ofdm_transmitter::make("qam16");
    const auto filler = gr::fadelab::idle_filler::make();
    const auto receiver = gr::fadelab::ofdm_receiver::make(2e6);
    const auto meter = gr::fadelab::sample_meter::make();
    top->msg_connect(box, "send", transmitter, "frames");
    top->connect(transmitter, 0, filler, 0);
    top->connect(filler, 0, receiver, 0);
    top->connect(filler, 0, meter, 0);
    top->msg_connect(receiver, "frames", box, "received");
    top->start();
    std::atomic<bool> done{false};
    std::thread watcher([&] {
        while (!done) {
            static_cast<void>(meter->take_peak());
            static_cast<void>(meter->newest());
            static_cast<void>(meter->beginnings());
            static_cast<void>(receiver->constellation());
            static_cast<void>(box->late());
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
    return 0;
}
