#include "radio.hpp"

#include <uhd/exception.hpp>
#include <uhd/utils/log.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "clocking.hpp"

namespace fadelab {

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

Radio::Radio(Air air, const Profile& profile, const Link& link, std::optional<double> master_clock_hz, bool impaired)
    : air_(std::move(air)),
      profile_(profile),
      link_(link),
      serial_(air_.slot().serial),
      master_clock_hz_(master_clock(profile.master_clock, master_clock_hz.value_or(profile.master_clock.default_hz))),
      automatic_(profile.master_clock.automatic && !master_clock_hz) {
    air_.slot().channels = static_cast<std::uint32_t>(channels());
    air_.slot().disciplined = 0;
    ++air_.header().changes;
    for (std::size_t channel = 0; channel < channels(); ++channel) {
        const auto add = [&](bool tx, Tunings& tunings) {
            const Direction& one = direction(tx);
            tuners_[tx][channel].emplace(tunings, one.default_freq_hz, 0.0, one.full_scale_dbm, air_.now_ns());
            rates_sps_[tx][channel] =
                automatic_ ? profile_.default_rate_sps
                           : master_clock_hz_ / factor(profile_, one, master_clock_hz_, profile_.default_rate_sps);
        };
        add(false, air_.slot().rx[channel].tunings);
        add(true, air_.slot().tx[channel].tunings);
    }
    air_.set_own_impairments(impaired ? profile.impairments : medium::Impairments());
    air_.slot().ppm = 0.0;
    follow_clock();
}

double Radio::set_master_clock_hz(double hz) {
    const std::lock_guard lock(mutex_);
    if (profile_.master_clock.fixed) {
        if (hz != master_clock_hz_) {
            UHD_LOG_WARNING("VUSRP", "the master clock stays at " << master_clock_hz_ / 1e6 << " MHz: give another one by "
                                                                  << "the argument master_clock_rate");
        }
        return master_clock_hz_;
    }
    set_clock(master_clock(profile_.master_clock, hz), ppm_);
    for (const bool tx : {false, true}) {
        for (std::size_t channel = 0; channel < channels(); ++channel) {
            auto& rate = rates_sps_[tx][channel];
            rate = master_clock_hz_ / factor(profile_, direction(tx), master_clock_hz_, rate);
        }
    }
    return master_clock_hz_;
}

void Radio::set_widest_stream(std::size_t channels) {
    const std::lock_guard lock(mutex_);
    widest_stream_ = std::max<std::size_t>(channels, 1);
    if (automatic_) follow_rates();
    const double highest_hz = highest_master_clock(profile_.master_clock, widest_stream_);
    if (master_clock_hz_ - highest_hz >= 1.0) {
        throw uhd::value_error("vusrp: the master clock of " + std::to_string(master_clock_hz_ / 1e6) +
                               " MHz exceeds the " + std::to_string(highest_hz / 1e6) + " MHz that " +
                               std::to_string(widest_stream_) + " channels allow");
    }
}

double Radio::set_rate_sps(bool tx, std::size_t channel, double rate_sps) {
    const std::lock_guard lock(mutex_);
    if (automatic_) {
        const std::optional<double> before = std::exchange(chosen_sps_[tx][channel], rate_sps);
        try {
            follow_rates();
        } catch (const uhd::value_error&) {
            chosen_sps_[tx][channel] = before;
            throw;
        }
    }
    const int by = factor(profile_, direction(tx), master_clock_hz_, rate_sps);
    if (const auto text = warning(direction(tx), tx, by)) {
        UHD_LOG_WARNING("VUSRP", *text << ": " << master_clock_hz_ / 1e6 << " MHz / " << by);
    }
    chosen_sps_[tx][channel] = master_clock_hz_ / by;
    return rates_sps_[tx][channel] = master_clock_hz_ / by;
}

// The master clock follows the rates that have been set; those stay as they are.
void Radio::follow_rates() {
    std::vector<double> rates_sps;
    for (const auto& direction : chosen_sps_) {
        for (const auto& rate : direction) {
            if (rate) rates_sps.push_back(*rate);
        }
    }
    if (rates_sps.empty()) return;
    const auto hz = automatic_master_clock(profile_.master_clock, rates_sps, widest_stream_);
    if (hz) {
        set_clock(*hz, ppm_);
    } else {
        UHD_LOG_WARNING("VUSRP", "no master clock fits these sample rates: take others, or set master_clock_rate");
    }
}

void Radio::add_rx_load(double octets_per_second) {
    const std::lock_guard lock(mutex_);
    rx_load_ = rx_load_ + octets_per_second;
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
    const double full_scale_dbm = direction(tx).full_scale_dbm + (tx ? gain_db : -gain_db);
    tuner.set_gain_db(gain_db, full_scale_dbm, command_ns(earliest_ns(tx, channel)));
}

void Radio::set_correction(bool tx, std::size_t channel, Sample balance, Sample offset) {
    Tuner& tuner = *tuners_[tx][channel];
    air_.sleep_until(tuner.room_ns());
    const std::lock_guard lock(mutex_);
    tuner.set_correction(balance, offset, command_ns(earliest_ns(tx, channel)));
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
    const medium::Impairments impairments = air_.impairments(serial_);
    const std::lock_guard lock(mutex_);
    followed_ = changes;
    if (!(impairments_ == impairments)) ++impairment_changes_;
    impairments_ = impairments;
    const double unplug_s = impairments.unplug_s;
    unplug_ns_ = unplug_s < 0.0 ? kNever : static_cast<std::int64_t>(std::min(unplug_s * kSecond_ns, 9e18));
    set_clock(master_clock_hz_, external_reference_ ? 0.0 : ppm);
}

medium::Impairments Radio::impairments() {
    const std::lock_guard lock(mutex_);
    medium::Impairments found = impairments_;
    if (external_reference_) found.warm_up_ppm = found.walk_ppm = 0.0;
    return found;
}

void Radio::mourn(double timeout_s) const {
    constexpr int kNoDevice = -4;  // LIBUSB_ERROR_NO_DEVICE
    if (link_.usb_version > 0) throw uhd::usb_error(kNoDevice, "vusrp: device " + serial_ + " has been unplugged");
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(timeout_s, 0.0)));
}

void Radio::set_external_reference(bool external) {
    const double ppm = air_.clock_offset_ppm(serial_);
    const std::lock_guard lock(mutex_);
    external_reference_ = external;
    air_.slot().disciplined = external ? 1 : 0;
    ++air_.header().changes;
    ++impairment_changes_;
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
    uhd::time_spec_t stepped;
    if (step_) stepped = device_time(master().last_tick_at(step_->at_ns) + step_->offset_ticks);
    master_clock_hz_ = hz;
    ppm_ = ppm;
    air_.slot().ppm = ppm;
    offset_ticks_ = time.to_ticks(hz) - master().last_tick_at(now);
    if (step_) step_->offset_ticks = stepped.to_ticks(hz) - master().last_tick_at(step_->at_ns);
}

}  // namespace fadelab
