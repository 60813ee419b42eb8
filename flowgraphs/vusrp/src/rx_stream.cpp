#include "rx_stream.hpp"

#include <uhd/exception.hpp>
#include <uhd/utils/log.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "medium/random.hpp"

namespace fadelab {
namespace {

using uhd::rx_metadata_t;
using uhd::stream_cmd_t;

// Samples waited for at a time, far below the lag that is an overflow.
constexpr std::int64_t kMostAwaited = 16384;

// Ours: what a device and its driver hold between them, as the 16 frames of a B2xx.
constexpr double kLinkBuffer_octets = 130816.0;

std::size_t packet_size(const uhd::stream_args_t& args, const Radio& radio) {
    const std::size_t most = packet_samples(radio.direction(false), radio.link(), args.otw_format);
    return std::clamp<std::size_t>(args.args.cast<std::size_t>("spp", most), 1, most);
}

}  // namespace

RxStream::RxStream(std::shared_ptr<Radio> radio, const uhd::stream_args_t& args, std::vector<std::size_t> channels)
    : radio_(std::move(radio)),
      channels_(std::move(channels)),
      format_(args, radio_->profile().wires),
      quantiser_(radio_->profile().quantises ? Quantiser(args) : Quantiser()),
      sample_octets_(wire_octets(args.otw_format) * channels_.size()),
      packet_size_(packet_size(args, *radio_)),
      scratch_(packet_size_),
      grid_(radio_->grid(false, channels_.front())) {
    for (const std::size_t channel : channels_) {
        antennas_.emplace_back(*radio_, channel, [](const std::string& text) { UHD_LOG_WARNING("VUSRP", text); });
    }
    go_idle();
}

RxStream::~RxStream() {
    set_load(0.0);
    radio_->air().set_receiving(channels_.front(), kNever);
}

bool RxStream::has(std::size_t channel) const {
    return std::find(channels_.begin(), channels_.end(), channel) != channels_.end();
}

bool RxStream::busy() {
    const std::lock_guard lock(mutex_);
    return active_.has_value();
}

std::size_t RxStream::recv(const buffs_type& buffs, std::size_t nsamps_per_buff, rx_metadata_t& metadata,
                           double timeout, bool one_packet) {
    std::unique_lock lock(mutex_);
    metadata.reset();
    std::size_t filled = 0;
    const auto timeout_ns = static_cast<std::int64_t>(timeout * kSecond_ns);
    while (filled < nsamps_per_buff) {
        const std::size_t wanted = one_packet ? 0 : nsamps_per_buff - filled;
        if (!error_ && !wait_for_samples(lock, wanted, timeout_ns)) {
            if (filled == 0) metadata.error_code = rx_metadata_t::ERROR_CODE_TIMEOUT;
            break;
        }
        if (error_) {
            if (filled > 0) break;  // first what came before it
            metadata = *error_;
            error_.reset();
            break;
        }
        filled += deliver(buffs, filled, nsamps_per_buff - filled, metadata);
        if (metadata.end_of_burst || (one_packet && !metadata.more_fragments)) break;
    }
    return filled;
}

#if UHD_VERSION >= 4080000
void RxStream::post_input_action(const std::shared_ptr<uhd::rfnoc::action_info>&, std::size_t) {
    throw uhd::not_implemented_error("vusrp has no RFNoC graph, and no actions");
}
#endif

void RxStream::issue_stream_cmd(const stream_cmd_t& command) {
    const bool stops = command.stream_mode == stream_cmd_t::STREAM_MODE_STOP_CONTINUOUS;
    if (command.stream_now && !stops && channels_.size() > 1) {
        throw uhd::runtime_error("vusrp cannot start several channels of one streamer with stream_now: give a time");
    }
    {
        const std::lock_guard lock(mutex_);
        if (stops) {
            stop(command);
        } else {
            Command asked;
            asked.issued_ns = radio_->air().now_ns();
            if (!command.stream_now) asked.start = command.time_spec;
            asked.samples = command.stream_mode == stream_cmd_t::STREAM_MODE_START_CONTINUOUS
                                ? kNever
                                : static_cast<std::int64_t>(command.num_samps);
            asked.chained = command.stream_mode == stream_cmd_t::STREAM_MODE_NUM_SAMPS_AND_MORE;
            if (active_) {
                queue_.push_back(asked);
            } else {
                grid_ = radio_->grid(false, channels_.front());
                start(asked, now_tick());
            }
        }
    }
    wake(changed_);
    if (radio_->air().lockstep()) wake(radio_->air().header().events);
}

// Hands out what there is of the packet, up to `room`.
std::size_t RxStream::deliver(const buffs_type& buffs, std::size_t filled, std::size_t room, rx_metadata_t& metadata) {
    const std::int64_t settled = grid_.last_tick_at(radio_->air().settled_ns()) - lookahead();
    // none where the clocks have begun to wander since the samples were waited for
    const auto there = static_cast<std::size_t>(std::max<std::int64_t>(settled - next_tick_, 0));
    const std::size_t n = std::min({packet_left_, room, there});
    if (filled == 0) {
        metadata.has_time_spec = true;
        metadata.time_spec = radio_->time_of_tick(grid_, next_tick_);
        metadata.start_of_burst = first_packet_ && packet_offset_ == 0;
        metadata.fragment_offset = packet_offset_;
    }
    for (std::size_t i = 0; i < channels_.size(); ++i) {
        antennas_[i].hear(grid_, next_tick_, n, scratch_.data());
        quantiser_.apply(scratch_.data(), n);
        format_.to_host(scratch_.data(), n, buffs[i], filled);
    }
    next_tick_ += static_cast<std::int64_t>(n);
    packet_left_ -= n;
    packet_offset_ += n;
    metadata.more_fragments = packet_left_ > 0;
    if (packet_left_ == 0) {
        packet_offset_ = 0;
        first_packet_ = false;
    }
    radio_->air().set_receiving(channels_.front(), grid_.ns_of(next_tick_));
    if (next_tick_ == end_tick_) {
        metadata.end_of_burst = !active_->chained;
        end_command();
    }
    return n;
}

// Waits for a packet, in lockstep for a sample of one. In real time it waits until there are as many samples as are
// wanted, since every wait costs a change of threads. False when the time is up before the packet; an error may be there
// instead.
bool RxStream::wait_for_samples(std::unique_lock<std::mutex>& lock, std::size_t wanted, std::int64_t timeout_ns) {
    Air& air = radio_->air();
    Patience patience(air);
    for (;;) {
        if (radio_->unplugged()) {
            go_idle();
            lock.unlock();
            radio_->mourn(static_cast<double>(timeout_ns) / kSecond_ns);
            lock.lock();
            return false;
        }
        Word& word = air.lockstep() ? air.header().events : changed_;
        const std::uint32_t seen = word;
        std::int64_t look_again_ns = kNever;
        bool packet_is_there = false;
        if (active_) {
            if (packet_offset_ == 0) form_packet();
            if (error_) return true;
            const auto packet = static_cast<std::int64_t>(air.lockstep() ? 1 : packet_left_);
            // one packet at a time, or all that the program has room for, be it less or more
            const std::int64_t all = std::min({static_cast<std::int64_t>(wanted), end_tick_ - next_tick_, kMostAwaited});
            const std::int64_t awaited = air.lockstep() || wanted == 0 ? packet : all;
            const std::int64_t ahead = lookahead();
            const std::int64_t least_ns = grid_.ns_of(next_tick_ + std::min(packet, awaited) + ahead);
            const std::int64_t needed_ns = grid_.ns_of(next_tick_ + awaited + ahead);
            const std::int64_t settled_ns = air.settled_ns();
            if (settled_ns >= needed_ns) return true;
            packet_is_there = settled_ns >= least_ns;
            look_again_ns = air.look_again_ns(air.now_ns() + needed_ns - settled_ns);
        }
        const std::int64_t timeout_at_ns = patience.begun_ns() + timeout_ns;
        const std::int64_t deadline_ns = active_ ? std::max(timeout_at_ns, patience.ends_ns()) : timeout_at_ns;
        if (monotonic_ns() >= deadline_ns) return packet_is_there;
        lock.unlock();
        wait(word, seen, std::min(look_again_ns, deadline_ns));
        if (air.lockstep() && word == seen) air.reap();
        lock.lock();
    }
}

// Settles what the next packet is, as far as none of it has been handed out.
void RxStream::form_packet() {
    follow_grid();
    if (!radio_->air().lockstep() && now_tick() - next_tick_ > kMaxLag) {
        UHD_LOG_FASTPATH("O");
        fail(rx_metadata_t::ERROR_CODE_OVERFLOW, radio_->time_of_tick(grid_, next_tick_));
        if (active_->samples == kNever && end_tick_ == kNever) {
            next_tick_ = now_tick();
        } else {
            go_idle();
        }
        return;
    }
    if (link_is_full()) return;
    if (hiccup()) return;
    packet_left_ = packet_size_;
    if (end_tick_ != kNever) packet_left_ = std::min(packet_left_, static_cast<std::size_t>(end_tick_ - next_tick_));
}

// Whether the link has lost samples since the packet before: then they are skipped, as far as it takes to empty the buffer.
bool RxStream::link_is_full() {
    const double capacity = radio_->link().octets_per_second;
    const double load = radio_->rx_load();
    if (capacity == 0.0 || load <= capacity) return false;
    const double share = capacity * load_ / load;
    const auto packet = static_cast<double>(packet_size_ * sample_octets_);
    backlog_ += packet * (1.0 - share / load_);
    if (backlog_ < kLinkBuffer_octets) return false;
    const auto skipped = static_cast<std::int64_t>(backlog_ / share * grid_.rate_sps);
    backlog_ = 0.0;
    lose(next_tick_ + skipped);
    return true;
}

// Whether a hiccup of the host falls into the next packet: then all until its end is lost.
bool RxStream::hiccup() {
    if (impairment_changes_ != radio_->impairment_changes()) {
        impairment_changes_ = radio_->impairment_changes();
        hiccups_ = medium::Hiccups(radio_->impairments(), medium::hash(radio_->air().seed(), radio_->serial()));
    }
    if (hiccups_.none()) return false;
    const std::int64_t begin_ns = grid_.ns_of(next_tick_);
    const std::int64_t end_ns = grid_.ns_of(next_tick_ + static_cast<std::int64_t>(packet_size_));
    const std::int64_t lost_ns = hiccups_.lost_ns(begin_ns, end_ns);
    if (lost_ns == 0) return false;
    lose(grid_.first_tick_at(end_ns + lost_ns));
    return true;
}

// An overflow: a stream without an end goes on at a tick, another one is over.
void RxStream::lose(std::int64_t until_tick) {
    UHD_LOG_FASTPATH("O");
    fail(rx_metadata_t::ERROR_CODE_OVERFLOW, radio_->time_of_tick(grid_, next_tick_));
    if (end_tick_ == kNever) {
        next_tick_ = until_tick;
        radio_->air().set_receiving(channels_.front(), grid_.ns_of(next_tick_));
    } else {
        go_idle();
    }
}

void RxStream::set_load(double octets_per_second) {
    radio_->add_rx_load(octets_per_second - load_);
    load_ = octets_per_second;
}

// Makes a command the active one, or says that it is late.
void RxStream::start(const Command& command, std::int64_t earliest_tick) {
    std::int64_t tick = earliest_tick;
    if (command.start) {
        tick = radio_->tick_at(grid_, *command.start);
        if (tick < earliest_tick) {
            fail(rx_metadata_t::ERROR_CODE_LATE_COMMAND, radio_->time_of_tick(grid_, earliest_tick));
            go_idle();
            return;
        }
    }
    if (command.samples == 0) return;
    active_ = command;
    next_tick_ = tick;
    end_tick_ = command.samples == kNever ? kNever : tick + command.samples;
    first_packet_ = true;
    packet_left_ = packet_offset_ = 0;
    set_load(grid_.rate_sps * static_cast<double>(sample_octets_));
    radio_->air().lead_at_least(grid_.ns_of(2 * kLookahead) + static_cast<std::int64_t>(4e9 * medium::kMostWander_s));
    radio_->air().set_receiving(channels_.front(), grid_.ns_of(next_tick_));
}

void RxStream::stop(const stream_cmd_t& command) {
    queue_.clear();
    if (!active_) return;
    const bool begun = !first_packet_ || packet_offset_ > 0 || next_tick_ <= now_tick();
    // In lockstep the program may not come back for a last packet, and time would wait for it.
    if (!begun || (command.stream_now && radio_->air().lockstep())) {
        go_idle();
        return;
    }
    // The last packet, of one sample at least, carries the end of burst.
    const std::int64_t formed = packet_offset_ > 0 ? static_cast<std::int64_t>(packet_left_) : 1;
    const std::int64_t asked = command.stream_now ? now_tick() : radio_->tick_at(grid_, command.time_spec);
    end_tick_ = std::min(end_tick_, std::max(asked, next_tick_ + formed));
    active_->chained = false;
}

// All samples of the active command are handed out: what is next?
void RxStream::end_command() {
    const Command ended = *active_;
    const std::int64_t end_ns = grid_.ns_of(end_tick_);
    active_.reset();
    const bool follows = !queue_.empty() && (!ended.chained || queue_.front().issued_ns <= end_ns);
    if (ended.chained && !follows) {
        fail(rx_metadata_t::ERROR_CODE_BROKEN_CHAIN, radio_->time_of_tick(grid_, end_tick_));
    }
    if (queue_.empty()) {
        go_idle();
        return;
    }
    const Command next = queue_.front();
    queue_.pop_front();
    start(next, end_tick_);
}

void RxStream::go_idle() {
    active_.reset();
    set_load(0.0);
    packet_left_ = packet_offset_ = 0;
    radio_->air().set_receiving(channels_.front(), kIdle);
}

void RxStream::fail(rx_metadata_t::error_code_t code, const uhd::time_spec_t& time) {
    error_.emplace();
    error_->has_time_spec = true;
    error_->time_spec = time;
    error_->error_code = code;
}

// The rate, or the device's clock, may change while a stream runs: it goes on at the same time on another grid.
void RxStream::follow_grid() {
    radio_->follow_clock();
    const Grid grid = radio_->grid(false, channels_.front());
    if (grid == grid_) return;
    const std::int64_t left = end_tick_ == kNever ? kNever : end_tick_ - next_tick_;
    next_tick_ = grid.first_tick_at(grid_.ns_of(next_tick_));
    end_tick_ = left == kNever ? kNever : next_tick_ + left;
    grid_ = grid;
    if (active_) set_load(grid_.rate_sps * static_cast<double>(sample_octets_));
}

}  // namespace fadelab
