#include <gnuradio/fadelab/channel_access.h>
#include <gnuradio/io_signature.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "../access/carrier_sense.hpp"
#include "../access/contention.hpp"
#include "numbers.hpp"

namespace gr::fadelab {

namespace {

// The carrier is looked at for so long at a time.
constexpr double kSense_s = 16e-6;
constexpr int kLeastSense = 16;
// The noise is forgotten after.
constexpr double kNoise_s = 0.5;
// The clocks of host and device are compared anew after, as they drift apart.
constexpr double kCompare_s = 4.0;
constexpr double kNever_s = 1e18;

const pmt::pmt_t& length_key() {
    static const pmt::pmt_t key = pmt::mp("packet_len");
    return key;
}

const pmt::pmt_t& received_key() {
    static const pmt::pmt_t key = pmt::mp("rx_time");
    return key;
}

const pmt::pmt_t& sent_key() {
    static const pmt::pmt_t key = pmt::mp("tx_time");
    return key;
}

const pmt::pmt_t& busy_port() {
    static const pmt::pmt_t port = pmt::mp("busy");
    return port;
}

const pmt::pmt_t& departed_port() {
    static const pmt::pmt_t port = pmt::mp("departed");
    return port;
}

std::size_t sense_of(double rate_sps) {
    return static_cast<std::size_t>(std::max(static_cast<int>(rate_sps * kSense_s), kLeastSense));
}

// How much later samples come than they can.
class Lag {
public:
    // A sample with this time of the device has just come.
    double of(double at_s) {
        const double host_s =
            std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        const double behind_s = host_s - at_s;
        if (host_s >= renew_at_s_) {
            before_s_ = std::exchange(least_s_, behind_s);
            renew_at_s_ = host_s + kCompare_s;
        }
        least_s_ = std::min(least_s_, behind_s);
        return behind_s - std::min(least_s_, before_s_);
    }

private:
    double renew_at_s_ = 0.0;
    double least_s_ = kNever_s;
    double before_s_ = kNever_s;  // in the time before
};

class channel_access_impl : public channel_access {
public:
    channel_access_impl(double rate_sps, const access::Rules& rules, std::int64_t occupancy, double threshold_db,
                        std::uint64_t seed)
        : block("channel access", io_signature::make(2, 2, sizeof(gr_complex)),
                io_signature::make(2, 2, sizeof(gr_complex))),
          rate_sps_(rate_sps),
          occupancy_(occupancy),
          patience_s_(static_cast<double>(rules.lead) / rate_sps / 2.0),
          contention_(rules, seed),
          sense_(sense_of(rate_sps), threshold_db, static_cast<std::size_t>(rate_sps * kNoise_s)),
          window_(sense_.window()) {
        // bursts are joined, and their tags with them
        set_tag_propagation_policy(TPP_DONT);
        // a burst that waits for its time must not keep received samples waiting
        set_min_output_buffer(static_cast<long>(4 * occupancy));
        message_port_register_out(departed_port());
        message_port_register_in(busy_port());
        set_msg_handler(busy_port(), [this](const pmt::pmt_t& until) {
            if (pmt::is_uint64(until)) {
                reserved_until_ = std::max(reserved_until_, tick_of(pmt::to_uint64(until)));
            }
        });
    }

    void forecast(int /*noutput_items*/, gr_vector_int& ninput_items_required) override {
        // received samples are the clock
        ninput_items_required[0] = 0;
        ninput_items_required[1] = 1;
    }

    int general_work(int noutput_items, gr_vector_int& ninput_items, gr_vector_const_void_star& input_items,
                     gr_vector_void_star& output_items) override {
        const auto* samples = static_cast<const gr_complex*>(input_items[1]);
        auto* passed = static_cast<gr_complex*>(output_items[1]);
        const auto count = static_cast<std::size_t>(std::min(ninput_items[1], noutput_items));
        if (forget_.exchange(false)) {
            sense_.forget();
        }
        waiting_ = ninput_items[0];
        newest_ = tick_of(nitems_read(1)) + static_cast<std::int64_t>(count);
        tags_.clear();
        get_tags_in_window(tags_, 1, 0, count, received_key());
        std::size_t at = 0;
        for (const tag_t& tag : tags_) {
            const auto next = static_cast<std::size_t>(tag.offset - nitems_read(1));
            listen(samples + at, next - at, passed + at);
            at = next;
            place(tag);
            newest_ = tick_of(nitems_read(1)) + static_cast<std::int64_t>(count);
            add_item_tag(1, nitems_written(1) + at, received_key(), tag.value);
        }
        lag_s_ = lag_.of(static_cast<double>(newest_) / rate_sps_);
        listen(samples + at, count - at, passed + at);
        consume(1, static_cast<int>(count));
        produce(1, static_cast<int>(count));
        const auto leaving = static_cast<int>(std::min<std::int64_t>({leaving_, ninput_items[0], noutput_items}));
        std::copy_n(static_cast<const gr_complex*>(input_items[0]), leaving, static_cast<gr_complex*>(output_items[0]));
        leaving_ -= leaving;
        consume(0, leaving);
        produce(0, leaving);
        const std::lock_guard<std::mutex> held(lock_);
        counts_ = contention_.counts();
        worst_lag_s_ = std::max(worst_lag_s_, lag_s_);
        return WORK_CALLED_PRODUCE;
    }

    counters counts() const override {
        const std::lock_guard<std::mutex> held(lock_);
        return {counts_.bursts, counts_.deferrals, static_cast<double>(counts_.backoff) / rate_sps_,
                static_cast<double>(counts_.airtime) / rate_sps_, counts_.collisions_heard};
    }

    std::vector<span> take_spans() override {
        const std::lock_guard<std::mutex> held(lock_);
        return std::exchange(spans_, {});
    }

    void forget_noise() override { forget_ = true; }

    double take_lag_s() override {
        const std::lock_guard<std::mutex> held(lock_);
        return std::exchange(worst_lag_s_, 0.0);
    }

private:
    // Samples of the device's clock from the first received one on, lost ones included.
    std::int64_t tick_of(std::uint64_t sample) const { return static_cast<std::int64_t>(sample) + lost_; }

    // The sample at the tag begins the stream, or follows lost ones.
    void place(const tag_t& tag) {
        if (!pmt::is_tuple(tag.value) || pmt::length(tag.value) != 2) {
            return;
        }
        const std::uint64_t whole_s = pmt::to_uint64(pmt::tuple_ref(tag.value, 0));
        const double fraction_s = pmt::to_double(pmt::tuple_ref(tag.value, 1));
        if (tag.offset == 0) {
            whole_s_ = whole_s;
            fraction_s_ = fraction_s;
        }
        const double elapsed_s = static_cast<double>(whole_s - whole_s_) + (fraction_s - fraction_s_);
        lost_ = std::max(lost_, std::llround(elapsed_s * rate_sps_) - static_cast<long long>(tag.offset));
        now_ = tick_of(tag.offset);
        had_ = 0;
        sense_.skip();
        contention_.miss(now_);
    }

    // Takes the next received samples; those that are not the own ones are passed on.
    void listen(const gr_complex* samples, std::size_t count, gr_complex* passed) {
        std::size_t at = 0;
        while (at < count) {
            const std::size_t part = std::min(count - at, window_.size() - had_);
            std::copy_n(samples + at, part, window_.begin() + static_cast<std::ptrdiff_t>(had_));
            pass(samples + at, part, passed + at);
            now_ += static_cast<std::int64_t>(part);
            had_ += part;
            at += part;
            if (had_ == window_.size()) {
                had_ = 0;
                look();
            }
        }
    }

    void pass(const gr_complex* samples, std::size_t count, gr_complex* passed) const {
        const std::int64_t end = now_ + static_cast<std::int64_t>(count);
        const std::int64_t from = std::clamp(contention_.deaf_from(), now_, end);
        const std::int64_t until = std::clamp(contention_.deaf_until(), from, end);
        std::copy_n(samples, count, passed);
        std::fill(passed + (from - now_), passed + (until - now_), gr_complex());
    }

    // A window is complete.
    void look() {
        const std::int64_t from = now_ - static_cast<std::int64_t>(window_.size());
        bool busy = false;
        if (from < contention_.deaf_until() && now_ > contention_.deaf_from()) {
            sense_.skip();
        } else {
            busy = sense_.busy(window_.data()) || from < reserved_until_;
        }
        contention_.hear(now_, busy, waiting_ > 0 && leaving_ == 0 && sense_.known());
        // of samples that are too old to tell, the burst would come too late as well
        const double age_s = lag_s_ + static_cast<double>(newest_ - now_) / rate_sps_;
        if (contention_.free() && waiting_ > 0 && leaving_ == 0 && age_s <= patience_s_) {
            send();
        }
    }

    // Sends the bursts that wait, as many as the occupancy has room for.
    void send() {
        tags_sent_.clear();
        get_tags_in_window(tags_sent_, 0, 0, static_cast<std::uint64_t>(waiting_), length_key());
        std::int64_t bursts = 0;
        for (const tag_t& tag : tags_sent_) {
            const std::int64_t length = pmt::to_long(tag.value);
            const bool whole = leaving_ + length <= waiting_;
            if (!whole || (bursts > 0 && leaving_ + length > occupancy_)) {
                break;
            }
            leaving_ += length;
            ++bursts;
        }
        if (bursts == 0) {
            return;
        }
        const std::int64_t begin = contention_.send(leaving_);
        const double at_s = fraction_s_ + static_cast<double>(begin) / rate_sps_;
        const double whole_s = std::floor(at_s);
        const pmt::pmt_t time = pmt::make_tuple(pmt::from_uint64(whole_s_ + static_cast<std::uint64_t>(whole_s)),
                                                pmt::from_double(at_s - whole_s));
        add_item_tag(0, nitems_written(0), length_key(), pmt::from_long(static_cast<long>(leaving_)));
        add_item_tag(0, nitems_written(0), sent_key(), time);
        message_port_pub(departed_port(), pmt::from_long(static_cast<long>(bursts)));
        const double begin_s = static_cast<double>(whole_s_) + at_s;
        const std::lock_guard<std::mutex> held(lock_);
        spans_.push_back({begin_s, begin_s + static_cast<double>(leaving_) / rate_sps_});
    }

    double rate_sps_;
    std::int64_t occupancy_;
    double patience_s_;
    access::Contention contention_;
    access::CarrierSense sense_;
    std::vector<gr_complex> window_;  // the newest samples, `had_` of them
    std::size_t had_ = 0;
    std::vector<tag_t> tags_;
    std::vector<tag_t> tags_sent_;

    // The device's time of the first received sample, and the samples lost since.
    std::uint64_t whole_s_ = 0;
    double fraction_s_ = 0.0;
    long long lost_ = 0;
    std::int64_t now_ = 0;             // samples up to here are heard
    std::int64_t newest_ = 0;          // and up to here they have come
    std::int64_t reserved_until_ = 0;  // a frame is on the air
    std::int64_t waiting_ = 0;         // samples to send
    std::int64_t leaving_ = 0;         // those that may go
    Lag lag_;
    double lag_s_ = 0.0;

    std::atomic<bool> forget_{false};
    mutable std::mutex lock_;  // of what follows
    access::Counts counts_;
    std::vector<span> spans_;
    double worst_lag_s_ = 0.0;
};

}  // namespace

channel_access::sptr channel_access::make(double rate_sps, double defer_us, double slot_us, double lead_us,
                                          double turnaround_us, double occupancy_us, int window, int yield,
                                          double threshold_db, std::uint64_t seed) {
    const double rate = checked_rate(rate_sps);
    const access::Rules rules{samples_of("defer_us", defer_us, rate), samples_of("slot_us", slot_us, rate),
                              samples_of("lead_us", lead_us, rate), samples_of("turnaround_us", turnaround_us, rate),
                              checked_slots("window", window, 1), checked_slots("yield", yield, 0)};
    check_slot(slot_us, lead_us);
    return gnuradio::make_block_sptr<channel_access_impl>(rate, rules, samples_of("occupancy_us", occupancy_us, rate),
                                                          threshold_db, seed);
}

}  // namespace gr::fadelab
