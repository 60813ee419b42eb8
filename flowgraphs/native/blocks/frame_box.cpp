#include <gnuradio/fadelab/frame_box.h>
#include <gnuradio/io_signature.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "pdu.hpp"

namespace gr::fadelab {

namespace {

const pmt::pmt_t& send_port() {
    static const pmt::pmt_t port = pmt::mp("send");
    return port;
}

const pmt::pmt_t& received_port() {
    static const pmt::pmt_t port = pmt::mp("received");
    return port;
}

const pmt::pmt_t& events_port() {
    static const pmt::pmt_t port = pmt::mp("events");
    return port;
}

const pmt::pmt_t& departed_port() {
    static const pmt::pmt_t port = pmt::mp("departed");
    return port;
}

// The codes in gr-uhd's message of an event, a pair of a name and a dictionary with a list of them.
pmt::pmt_t codes_of(const pmt::pmt_t& message) {
    static const pmt::pmt_t key = pmt::mp("event_code");
    if (!pmt::is_pair(message) || !pmt::is_dict(pmt::cdr(message))) {
        return pmt::PMT_NIL;
    }
    return pmt::dict_ref(pmt::cdr(message), key, pmt::PMT_NIL);
}

bool is_late(const pmt::pmt_t& codes) {
    static const std::array<pmt::pmt_t, 5> late{pmt::mp("underflow"), pmt::mp("underflow_in_packet"),
                                                pmt::mp("time_error"), pmt::mp("seq_error"),
                                                pmt::mp("seq_error_in_burst")};
    return std::any_of(late.begin(), late.end(), [&](const pmt::pmt_t& code) { return pmt::list_has(codes, code); });
}

class frame_box_impl : public frame_box {
public:
    frame_box_impl()
        : block("frame box", io_signature::make(0, 0, 0), io_signature::make(0, 0, 0)),
          eventfd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (eventfd_ < 0) {
            throw std::system_error(errno, std::generic_category(), "eventfd");
        }
        message_port_register_out(send_port());
        message_port_register_in(received_port());
        message_port_register_in(events_port());
        message_port_register_in(departed_port());
    }
    frame_box_impl(const frame_box_impl&) = delete;
    frame_box_impl& operator=(const frame_box_impl&) = delete;
    ~frame_box_impl() override { close_descriptor(); }

    // Called by the thread of the block that publishes. Handled at once: to wake a thread for it would cost more.
    void post(pmt::pmt_t port, pmt::pmt_t message) override {
        if (pmt::eqv(port, received_port())) {
            keep(message);
        } else if (pmt::eqv(port, events_port())) {
            static const pmt::pmt_t acknowledged = pmt::mp("burst_ack");
            const pmt::pmt_t codes = codes_of(message);
            late_ += is_late(codes) ? 1 : 0;
            acknowledged_ += pmt::list_has(codes, acknowledged) ? 1 : 0;
        } else if (pmt::eqv(port, departed_port()) && pmt::is_integer(message)) {
            departed_ += static_cast<std::uint64_t>(std::max(pmt::to_long(message), 0L));
            const std::lock_guard<std::mutex> held(lock_);
            ::eventfd_write(eventfd_, 1);
        } else {
            block::post(port, message);
        }
    }

    void send(const std::uint8_t* octets, std::size_t count, const std::string& mode) override {
        static const pmt::pmt_t key = pmt::mp("mode");
        const pmt::pmt_t about =
            mode.empty() ? pmt::PMT_NIL : pmt::dict_add(pmt::make_dict(), key, pmt::intern(mode));
        message_port_pub(send_port(), pmt::cons(about, pmt::init_u8vector(count, octets)));
    }

    std::vector<frame> take() override {
        const std::lock_guard<std::mutex> held(lock_);
        if (frames_.empty()) {
            eventfd_t count = 0;
            ::eventfd_read(eventfd_, &count);
        }
        return std::exchange(frames_, {});
    }

    int eventfd() const override { return eventfd_; }
    std::uint64_t late() const override { return late_; }
    std::uint64_t acknowledged() const override { return acknowledged_; }
    std::uint64_t departed() const override { return departed_; }
    void close() override { close_descriptor(); }

private:
    void keep(const pmt::pmt_t& pdu) {
        frame received;
        if (!frame_from(pdu, received)) {
            d_logger->error("a message that is no PDU of a received frame came to port received: connect a receiver");
            return;
        }
        const std::lock_guard<std::mutex> held(lock_);
        frames_.push_back(std::move(received));
        // the first alone wakes the program
        if (frames_.size() == 1) {
            ::eventfd_write(eventfd_, 1);
        }
    }

    void close_descriptor() {
        const std::lock_guard<std::mutex> held(lock_);
        if (eventfd_ >= 0) {
            ::close(std::exchange(eventfd_, -1));
        }
    }

    std::atomic<std::uint64_t> late_{0};
    std::atomic<std::uint64_t> acknowledged_{0};
    std::atomic<std::uint64_t> departed_{0};
    std::mutex lock_;  // of what follows
    int eventfd_;
    std::vector<frame> frames_;
};

}  // namespace

frame_box::sptr frame_box::make() {
    return gnuradio::make_block_sptr<frame_box_impl>();
}

}  // namespace gr::fadelab
