#include "radio.hpp"

#include <algorithm>
#include <cmath>

namespace fadelab {
namespace {

constexpr double kDefaultRate_sps = 1e6;
constexpr double kDefaultFreq_hz = 1e9;

double over_whole_number(double master_clock_hz, double rate_sps) {
    const double decimation = std::round(master_clock_hz / rate_sps);
    return master_clock_hz / std::clamp(decimation, 1.0, static_cast<double>(kMaxDecimation));
}

}  // namespace

void AsyncQueue::push(const uhd::async_metadata_t& message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    if (messages_.size() > kRoom) messages_.pop_front();
}

bool AsyncQueue::pop(uhd::async_metadata_t& message) {
    const std::lock_guard lock(mutex_);
    if (messages_.empty()) return false;
    message = messages_.front();
    messages_.pop_front();
    return true;
}

Radio::Radio(Air air, double master_clock_hz)
    : air_(std::move(air)), serial_(air_.slot().serial), master_clock_hz_(master_clock_hz) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
        tuners_[false][channel].emplace(air_.slot().rx[channel].tunings, kDefaultFreq_hz, 0.0, air_.now_ns());
        tuners_[true][channel].emplace(air_.slot().tx[channel].tunings, kDefaultFreq_hz, 0.0, air_.now_ns());
        set_rate_sps(false, channel, kDefaultRate_sps);
        set_rate_sps(true, channel, kDefaultRate_sps);
    }
    follow_clock();
}

double Radio::set_master_clock_hz(double hz) {
    const std::lock_guard lock(mutex_);
    set_clock(std::clamp(std::round(hz), kMinMasterClock_hz, kMaxMasterClock_hz), ppm_);
    for (auto& direction : rates_sps_) {
        for (auto& rate : direction) rate = over_whole_number(master_clock_hz_, rate);
    }
    return master_clock_hz_;
}

double Radio::set_rate_sps(bool tx, std::size_t channel, double rate_sps) {
    return rates_sps_[tx][channel] = over_whole_number(master_clock_hz_, rate_sps);
}

void Radio::set_freq_hz(bool tx, std::size_t channel, double freq_hz) {
    Tuner& tuner = *tuners_[tx][channel];
    air_.sleep_until(tuner.room_ns());
    const std::lock_guard lock(mutex_);
    tuner.set_freq_hz(freq_hz, command_ns(earliest_ns(tx, channel)));
}

void Radio::set_gain_db(bool tx, std::size_t channel, double gain_db) {
    Tuner& tuner = *tuners_[tx][channel];
    air_.sleep_until(tuner.room_ns());
    const std::lock_guard lock(mutex_);
    tuner.set_gain_db(gain_db, command_ns(earliest_ns(tx, channel)));
}

uhd::time_spec_t Radio::now() {
    std::unique_lock lock(mutex_);
    if (command_time_) {
        const std::int64_t ns = command_ns(air_.now_ns());
        lock.unlock();
        // In lockstep the caller may be the one whom time waits for.
        if (!air_.lockstep()) air_.sleep_until(ns);
        return time_of(ns);
    }
    lock.unlock();
    return time_of(air_.now_ns());
}

void Radio::set_now(const uhd::time_spec_t& time) {
    const std::lock_guard lock(mutex_);
    step_.reset();
    offset_ticks_ = time.to_ticks(master_clock_hz_) - master().last_tick_at(air_.now_ns());
}

uhd::time_spec_t Radio::last_pps() {
    const std::int64_t now = air_.now_ns();
    return time_of(now - now % kSecond_ns);
}

void Radio::set_next_pps(const uhd::time_spec_t& time) {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = air_.now_ns();
    offset_ticks_ = offset_ticks(now);
    const std::int64_t pps = now - now % kSecond_ns + kSecond_ns;
    step_ = {pps, time.to_ticks(master_clock_hz_) - master().last_tick_at(pps)};
}

void Radio::set_command_time(const uhd::time_spec_t& time) {
    const std::lock_guard lock(mutex_);
    command_time_.reset();
    if (time != uhd::time_spec_t(0.0)) command_time_ = time;
}

uhd::time_spec_t Radio::time_of(std::int64_t ns) {
    const std::lock_guard lock(mutex_);
    return device_time(master().last_tick_at(ns) + offset_ticks(ns));
}

uhd::time_spec_t Radio::time_of_tick(const Grid& grid, std::int64_t tick) {
    const std::lock_guard lock(mutex_);
    const long double ticks = static_cast<long double>(tick) * (master_clock_hz_ / grid.rate_sps);
    return device_time(std::llround(ticks) + offset_ticks(grid.ns_of(tick)));
}

std::int64_t Radio::tick_at(const Grid& grid, const uhd::time_spec_t& time) {
    const std::lock_guard lock(mutex_);
    const std::int64_t ticks = time.to_ticks(master_clock_hz_) - offset_ticks(air_.now_ns());
    return std::llround(static_cast<long double>(ticks) * (grid.rate_sps / master_clock_hz_));
}

void Radio::follow_clock() {
    const std::uint64_t changes = air_.changes();
    if (followed_ == changes) return;
    const double ppm = air_.clock_offset_ppm(serial_);
    const std::lock_guard lock(mutex_);
    followed_ = changes;
    set_clock(master_clock_hz_, external_reference_ ? 0.0 : ppm);
}

void Radio::set_external_reference(bool external) {
    const double ppm = air_.clock_offset_ppm(serial_);
    const std::lock_guard lock(mutex_);
    external_reference_ = external;
    set_clock(master_clock_hz_, external ? 0.0 : ppm);
}

// What the offset is at a moment; a step that is past becomes the offset.
std::int64_t Radio::offset_ticks(std::int64_t ns) {
    if (step_ && air_.now_ns() >= step_->at_ns) {
        offset_ticks_ = step_->offset_ticks;
        step_.reset();
    }
    return step_ && ns >= step_->at_ns ? step_->offset_ticks : offset_ticks_;
}

// When a command given now is carried out. Rounded down, so that the sample at the command time has it.
std::int64_t Radio::command_ns(std::int64_t earliest_ns) {
    if (!command_time_) return earliest_ns;
    const std::int64_t ticks = command_time_->to_ticks(master_clock_hz_) - offset_ticks(air_.now_ns());
    return std::max(earliest_ns, static_cast<std::int64_t>(std::floor(ticks / master().ticks_per_ns() + 1e-4L)));
}

// When a channel can be tuned: in lockstep, samples before that may have been mixed.
std::int64_t Radio::earliest_ns(bool tx, std::size_t channel) {
    if (!air_.lockstep()) return air_.now_ns();
    if (tx) return air_.earliest_ns();
    const std::int64_t next_ns = air_.slot().rx[channel].next_ns;
    return next_ns < kIdle ? std::max(air_.now_ns(), next_ns) : air_.now_ns();
}

uhd::time_spec_t Radio::device_time(std::int64_t ticks) const {
    return uhd::time_spec_t::from_ticks(ticks, master_clock_hz_);
}

// Device time goes on without a jump.
void Radio::set_clock(double hz, double ppm) {
    if (hz == master_clock_hz_ && ppm == ppm_) return;
    const std::int64_t now = air_.now_ns();
    const uhd::time_spec_t time = device_time(master().last_tick_at(now) + offset_ticks(now));
    step_.reset();
    master_clock_hz_ = hz;
    ppm_ = ppm;
    offset_ticks_ = time.to_ticks(hz) - master().last_tick_at(now);
}

}  // namespace fadelab
