#include "tx_stream.hpp"

#include <uhd/exception.hpp>
#include <uhd/utils/log.hpp>

#include <algorithm>
#include <utility>

namespace fadelab {
namespace {

using uhd::async_metadata_t;
using uhd::tx_metadata_t;

constexpr std::size_t kMaxBursts = 1024;  // unfinished ones; a channel's other segments are for receivers that lag
constexpr std::size_t kRoomAtOnce = 8 * 2040;  // samples of room that a long send() waits for, to wake less often
constexpr std::int64_t kLinkAhead_ns = 1'000'000;  // that a link is ahead of send(), to wake less often
constexpr std::int64_t kLockstepBuffer = kRingSamples / 2;

}  // namespace

TxStream::TxStream(std::shared_ptr<Radio> radio, const uhd::stream_args_t& args, std::vector<std::size_t> channels)
    : radio_(std::move(radio)),
      channels_(std::move(channels)),
      format_(args, radio_->profile().wires),
      quantiser_(radio_->profile().quantises ? Quantiser(args) : Quantiser()),
      sample_octets_(wire_octets(args.otw_format) * channels_.size()),
      packet_size_(packet_samples(radio_->direction(true), radio_->link(), args.otw_format)),
      next_burst_policy_(args.args.get("underflow_policy", "next_packet") == "next_burst"),
      grid_(radio_->grid(true, channels_.front())) {
    Air& air = radio_->air();
    for (const std::size_t channel : channels_) {
        air.reserve_samples(air.slot_index(), channel);
        const TxChannel& tx = air.slot().tx[channel];
        if (tx.segments == 0) continue;
        const Segment& last = tx.ring[(tx.segments - 1) % kSegments];
        const std::int64_t end_ns = Grid{last.rate_sps, last.ppm}.ns_of(last.start_tick + last.length);
        free_tick_ = std::max(free_tick_, grid_.first_tick_at(end_ns));
    }
}

TxStream::~TxStream() { replace(); }

bool TxStream::has(std::size_t channel) const {
    return std::find(channels_.begin(), channels_.end(), channel) != channels_.end();
}

bool TxStream::busy() {
    const std::lock_guard lock(mutex_);
    report_locked();
    return !bursts_.empty() && bursts_.front().grid.ns_of(bursts_.front().start_tick) <= radio_->air().now_ns();
}

void TxStream::replace() {
    const std::lock_guard lock(mutex_);
    if (!replaced_) leave_open_burst();
    replaced_ = true;
}

std::size_t TxStream::send(const buffs_type& buffs, std::size_t nsamps_per_buff, const tx_metadata_t& metadata,
                           double timeout) {
    std::unique_lock lock(mutex_);
    if (replaced_) throw uhd::runtime_error("vusrp: another streamer has taken over this one's transmit channel");
    radio_->follow_clock();
    if (radio_->unplugged()) {
        lock.unlock();
        radio_->mourn(timeout);
        return 0;
    }
    if (nsamps_per_buff == 0 && metadata.start_of_burst) {
        start_of_burst_ = metadata;
        return 0;
    }
    tx_metadata_t given = metadata;
    if (nsamps_per_buff > 0 && start_of_burst_) {
        if (!given.has_time_spec) {
            given.has_time_spec = start_of_burst_->has_time_spec;
            given.time_spec = start_of_burst_->time_spec;
        }
        given.start_of_burst = true;
        start_of_burst_.reset();
    }
    if (dropping_ && given.start_of_burst) dropping_ = false;
    if (dropping_) {
        dropping_ = !given.end_of_burst;
        return nsamps_per_buff;
    }
    const auto timeout_ns = static_cast<std::int64_t>(timeout * kSecond_ns);
    const std::size_t sent = send_packets(lock, buffs, nsamps_per_buff, given, timeout_ns);
    if (given.end_of_burst) dropping_ = false;
    return sent;
}

#if UHD_VERSION >= 4080000
void TxStream::post_output_action(const std::shared_ptr<uhd::rfnoc::action_info>&, std::size_t) {
    throw uhd::not_implemented_error("vusrp has no RFNoC graph, and no actions");
}
#endif

bool TxStream::recv_async_msg(async_metadata_t& message, double timeout) {
    Air& air = radio_->air();
    const std::int64_t deadline_ns = monotonic_ns() + static_cast<std::int64_t>(timeout * kSecond_ns);
    Word& word = air.lockstep() ? air.header().events : changed_;
    for (;;) {
        const std::uint32_t seen = word;
        const std::int64_t next_ns = report();
        if (async_.pop(message)) return true;
        if (monotonic_ns() >= deadline_ns) return false;
        wait(word, seen, std::min(air.look_again_ns(next_ns), deadline_ns));
    }
}

std::int64_t TxStream::report() {
    const std::lock_guard lock(mutex_);
    return report_locked();
}

// Returns the number of samples taken, late ones included.
std::size_t TxStream::send_packets(std::unique_lock<std::mutex>& lock, const buffs_type& buffs, std::size_t n,
                                   const tx_metadata_t& metadata, std::int64_t timeout_ns) {
    follow_grid();
    in_send_ = false;
    std::optional<uhd::time_spec_t> time;
    if (metadata.has_time_spec) time = metadata.time_spec;
    const std::int64_t begun_ns = monotonic_ns();
    std::size_t sent = 0;
    while (sent < n) {
        const std::size_t packet = std::min(n - sent, packet_size_);
        if (!wait_for_room(lock, packet, n - sent, begun_ns + timeout_ns)) break;
        wait_for_link(lock, packet);
        if (dropping_) return n;
        if (sent == 0 && open_) {
            const bool later = time && radio_->tick_at(grid_, *time) > free_tick_;
            if (metadata.start_of_burst || later) leave_open_burst();
        }
        if (!open_ && !begin(time)) {
            tell(Event::EVENT_CODE_TIME_ERROR, radio_->air().now_ns());
            dropping_ = next_burst_policy_;
            return n;
        }
        if (!write(buffs, sent, packet)) continue;  // the burst ran dry, or its start is past by now
        time.reset();
        in_send_ = true;
        sent += packet;
    }
    in_send_ = false;
    if (sent == n && metadata.end_of_burst) end_burst();
    return sent;
}

// Waits for room for a packet, or for more of the `left` samples if it has to wait at all. False at the deadline.
bool TxStream::wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t packet, std::size_t left,
                             std::int64_t deadline_ns) {
    Air& air = radio_->air();
    Word& word = air.lockstep() ? air.header().events : changed_;
    Patience patience(air);
    for (;;) {
        const std::uint32_t seen = word;
        report_locked();
        if (room_ns(packet) <= air.now_ns()) return true;
        const std::int64_t ends_ns = std::max(deadline_ns, patience.ends_ns());
        if (monotonic_ns() >= ends_ns) return false;
        const std::int64_t look_again_ns = air.look_again_ns(room_ns(std::min(left, kRoomAtOnce)));
        lock.unlock();
        wait(word, seen, std::min(look_again_ns, ends_ns));
        if (air.lockstep() && word == seen) air.reap();
        lock.lock();
    }
}

void TxStream::wait_for_link(std::unique_lock<std::mutex>& lock, std::size_t packet) {
    Air& air = radio_->air();
    const double capacity = radio_->link().octets_per_second;
    if (capacity == 0.0 || air.lockstep()) return;
    const double takes_ns = static_cast<double>(packet * sample_octets_) / capacity * kSecond_ns;
    link_free_ns_ = std::max(link_free_ns_, air.now_ns()) + static_cast<std::int64_t>(takes_ns);
    if (link_free_ns_ - air.now_ns() < kLinkAhead_ns) return;
    lock.unlock();
    air.sleep_until(link_free_ns_);
    lock.lock();
}

// The time of room for `n` more samples, or an earlier time to look again.
std::int64_t TxStream::room_ns(std::size_t n) const {
    const Air& air = radio_->air();
    const std::int64_t now = air.now_ns();
    if (bursts_.size() >= kMaxBursts) return bursts_.front().end_ns();
    const auto buffer = static_cast<std::int64_t>(radio_->profile().tx_buffer_samples);
    std::int64_t too_many = static_cast<std::int64_t>(n) - (air.lockstep() ? kLockstepBuffer : buffer);
    for (const Burst& burst : bursts_) {
        too_many += burst.end_tick - std::clamp(burst.grid.last_tick_at(now), burst.start_tick, burst.end_tick);
    }
    if (too_many <= 0) return now;
    const Burst& first = bursts_.front();
    const std::int64_t next = std::clamp(first.grid.last_tick_at(now), first.start_tick, first.end_tick);
    return first.grid.ns_of(std::min(next + too_many, first.end_tick));
}

// Starts a burst. False when its time is past, or before the end of the previous burst.
bool TxStream::begin(const std::optional<uhd::time_spec_t>& time) {
    Air& air = radio_->air();
    std::int64_t tick;
    if (time) {
        tick = radio_->tick_at(grid_, *time);
        if (tick < free_tick_ || !air.begin_burst(channels_.front(), grid_.ns_of(tick))) return false;
    } else {
        do {
            tick = std::max(free_tick_, grid_.first_tick_at(air.earliest_ns()));
        } while (!air.begin_burst(channels_.front(), grid_.ns_of(tick)));
    }
    bursts_.push_back({grid_, tick, tick, false});
    free_tick_ = tick;
    open_ = true;
    wake(changed_);
    return true;
}

// Appends samples to the open burst. False when their time is past; then no receiver hears them.
bool TxStream::write(const buffs_type& buffs, std::size_t offset, std::size_t n) {
    Air& air = radio_->air();
    Burst& burst = bursts_.back();
    for (std::size_t i = 0; i < channels_.size(); ++i) {
        Sample* ring = air.samples(air.slot_index(), channels_[i]);
        const TxChannel& tx = air.slot().tx[channels_[i]];
        std::uint64_t position = tx.written;
        for (std::size_t done = 0; done < n;) {
            const std::size_t run = std::min(n - done, kRingSamples - position % kRingSamples);
            format_.to_air(buffs[i], offset + done, run, ring + position % kRingSamples);
            quantiser_.apply(ring + position % kRingSamples, run);
            if (flaws_[i]) {
                flaws_[i]->apply(burst.grid, burst.end_tick + static_cast<std::int64_t>(done), burst.start_tick,
                                 tx.tunings, run, ring + position % kRingSamples);
            }
            done += run;
            position += run;
        }
    }
    const bool empty = burst.start_tick == burst.end_tick;
    if (!air.lockstep() && burst.end_ns() < air.now_ns()) {
        if (empty) {
            bursts_.pop_back();
            open_ = false;
        } else {
            report_locked();
        }
        return false;
    }
    for (const std::size_t channel : channels_) {
        TxChannel& tx = air.slot().tx[channel];
        const std::uint64_t first = tx.written;
        tx.written.store(first + n, std::memory_order_release);
        if (empty) {
            Segment& segment = tx.ring[tx.segments % kSegments];
            segment.start_tick = burst.start_tick;
            segment.first = first;
            segment.rate_sps = burst.grid.rate_sps;
            segment.ppm = burst.grid.ppm;
            segment.length = static_cast<std::int64_t>(n);
            if (tx.first_ns == kNever) tx.first_ns = burst.grid.ns_of(burst.start_tick);
            tx.segments.fetch_add(1, std::memory_order_release);
        } else {
            Segment& segment = tx.ring[(tx.segments - 1) % kSegments];
            segment.length.fetch_add(static_cast<std::int64_t>(n), std::memory_order_release);
        }
    }
    // A receiver may have gone past samples that were published too long after they were found in time.
    const std::int64_t first_ns = burst.end_ns();
    if (!air.lockstep() && air.now_ns() > first_ns + kPublishing_ns) {
        tell(empty ? Event::EVENT_CODE_TIME_ERROR : Event::EVENT_CODE_UNDERFLOW, first_ns);
    }
    burst.end_tick += static_cast<std::int64_t>(n);
    free_tick_ = burst.end_tick;
    air.set_transmitting(channels_.front(), burst.end_ns());
    return true;
}

// Closes the open burst; its end is acknowledged only after end_burst().
void TxStream::leave_open_burst() {
    if (!open_) return;
    open_ = false;
    radio_->air().set_transmitting(channels_.front(), kNever);
}

void TxStream::end_burst() {
    if (open_) {
        bursts_.back().acknowledged = true;
        leave_open_burst();
    } else {
        // The burst ran dry before. A device plays the one sample that carries the end of burst, and acknowledges it.
        tell(Event::EVENT_CODE_BURST_ACK, radio_->air().now_ns());
    }
    wake(changed_);
}

std::int64_t TxStream::report_locked() {
    const Air& air = radio_->air();
    const std::int64_t now = air.now_ns();
    while (!bursts_.empty()) {
        const Burst first = bursts_.front();
        const bool open = open_ && bursts_.size() == 1;
        if (open && air.lockstep()) return kNever;
        if (first.end_ns() > now) return first.end_ns();
        if (open) {
            leave_open_burst();
            dropping_ = next_burst_policy_;
            tell(in_send_ ? Event::EVENT_CODE_UNDERFLOW_IN_PACKET : Event::EVENT_CODE_UNDERFLOW, first.end_ns());
        } else if (first.acknowledged) {
            tell(Event::EVENT_CODE_BURST_ACK, first.end_ns());
        }
        bursts_.pop_front();
    }
    return kNever;
}

void TxStream::tell(Event event, std::int64_t ns) {
    if (event == Event::EVENT_CODE_TIME_ERROR) UHD_LOG_FASTPATH("L");
    if (event == Event::EVENT_CODE_UNDERFLOW || event == Event::EVENT_CODE_UNDERFLOW_IN_PACKET) UHD_LOG_FASTPATH("U");
    async_metadata_t message{};
    message.has_time_spec = true;
    message.time_spec = radio_->time_of(ns);
    message.event_code = event;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
        message.channel = i;
        async_.push(message);
        message.channel = channels_[i];
        radio_->async().push(message);
    }
    wake(changed_);
}

// Follows a change of the rate or of the device's clock: an open burst continues at the same time on the new grid.
void TxStream::follow_grid() {
    radio_->follow_clock();
    const Grid grid = radio_->grid(true, channels_.front());
    follow_impairments();
    if (grid == grid_) return;
    free_tick_ = grid.first_tick_at(grid_.ns_of(free_tick_));
    grid_ = grid;
    if (!open_) return;
    bursts_.push_back({grid_, free_tick_, free_tick_, false});
}

void TxStream::follow_impairments() {
    const double rate_sps = radio_->rate_sps(true, channels_.front());
    const std::uint64_t changes = radio_->impairment_changes();
    if (impairment_changes_ == changes && flaws_rate_sps_ == rate_sps) return;
    impairment_changes_ = changes;
    const medium::Impairments found = radio_->impairments();
    flaws_rate_sps_ = rate_sps;
    flaws_.clear();
    for (const std::size_t channel : channels_) {
        flaws_.push_back(TxFlaws::of(found, rate_sps, {radio_->air().seed(), radio_->serial(), channel}));
    }
}

}  // namespace fadelab
