// A claimed device: its place on the air, its clock, its rates and what its front ends are tuned to.
//
// Its profile says what becomes of a request. The property tree (device.hpp) sets it, the streams (rx_stream.hpp, tx_stream.hpp) run by it. Device time is counted
// in ticks of the master clock; sample k of decimation D lies at tick k D since the air began, plus the offset that
// setting the time has given the device.

#pragma once

#include <uhd/types/metadata.hpp>
#include <uhd/types/time_spec.hpp>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "air.hpp"
#include "profiles/profile.hpp"
#include "tuning.hpp"

namespace fadelab {

// Asynchronous messages, for a streamer or a whole device; the oldest go when nobody takes them.
class AsyncQueue {
public:
    void push(const uhd::async_metadata_t& message);
    bool pop(uhd::async_metadata_t& message);

private:
    static constexpr std::size_t kRoom = 1000;
    std::mutex mutex_;
    std::deque<uhd::async_metadata_t> messages_;
};

class Radio {
public:
    // Without a master clock the device has its default, and an automatic one follows the rates. Throws uhd::value_error
    // for one that the family refuses.
    // It has the profile's typical impairments, or none.
    Radio(Air air, const Profile& profile, const Link& link, std::optional<double> master_clock_hz, bool impaired);

    const Profile& profile() const { return profile_; }
    const Direction& direction(bool tx) const { return tx ? profile_.tx : profile_.rx; }
    const Link& link() const { return link_; }
    std::size_t channels() const { return profile_.ports.size(); }

    Air& air() { return air_; }
    const std::string& serial() const { return serial_; }
    AsyncQueue& async() { return async_; }

    double master_clock_hz() const { return master_clock_hz_; }
    double set_master_clock_hz(double hz);  // returns the one it got, like all that follow
    bool automatic() const { return automatic_; }
    void set_automatic(bool automatic) { automatic_ = automatic; }
    // Streamers of so many channels are there, or about to be. An automatic clock follows; throws uhd::value_error where
    // the clock is too high for them.
    void set_widest_stream(std::size_t channels);

    // Rates are the master clock's over a whole number.
    double set_rate_sps(bool tx, std::size_t channel, double rate_sps);
    double rate_sps(bool tx, std::size_t channel) const { return rates_sps_[tx][channel]; }
    Grid grid(bool tx, std::size_t channel) const { return {rate_sps(tx, channel), ppm_}; }

    // What all receive streams send over the link, in octets per second.
    double rx_load() const { return rx_load_; }
    void add_rx_load(double octets_per_second);

    void set_freq_hz(bool tx, std::size_t channel, double freq_hz);
    void set_gain_db(bool tx, std::size_t channel, double gain_db);
    void set_correction(bool tx, std::size_t channel, Sample balance, Sample offset);

    // Device time. While a command time is set, frequencies and gains change and the time is read at that time.
    uhd::time_spec_t now();
    void set_now(const uhd::time_spec_t& time);
    uhd::time_spec_t last_pps();
    void set_next_pps(const uhd::time_spec_t& time);
    void set_command_time(const uhd::time_spec_t& time);

    uhd::time_spec_t time_of(std::int64_t ns);
    uhd::time_spec_t time_of_tick(const Grid& grid, std::int64_t tick);
    std::int64_t tick_at(const Grid& grid, const uhd::time_spec_t& time);  // the nearest

    // Takes over what the air says of this device's clock and impairments. Grids differ from then on.
    void follow_clock();
    // Grows when they may be others.
    std::uint64_t impairment_changes() const { return impairment_changes_; }
    // With an external reference there is no drift.
    medium::Impairments impairments();
    // Whether the device has been pulled out.
    bool unplugged() const { return unplug_ns_ != kNever && air_.now_ns() >= unplug_ns_; }
    // What a call on the streams of such a device comes to: USB throws uhd::usb_error, a network lets it wait in vain.
    void mourn(double timeout_s) const;
    // With an external reference a device has the air's own clock.
    void set_external_reference(bool external);

private:
    struct Step {
        std::int64_t at_ns;
        std::int64_t offset_ticks;
    };

    Grid master() const { return {master_clock_hz_, ppm_}; }
    std::int64_t offset_ticks(std::int64_t ns);
    std::int64_t command_ns(std::int64_t earliest_ns);
    std::int64_t earliest_ns(bool tx, std::size_t channel);
    uhd::time_spec_t device_time(std::int64_t ticks) const;
    void set_clock(double hz, double ppm);
    void follow_rates();

    Air air_;
    const Profile& profile_;
    const Link link_;
    std::string serial_;
    AsyncQueue async_;
    std::mutex mutex_;  // of what follows, but for reading atomics
    std::atomic<double> master_clock_hz_;
    std::atomic<double> ppm_{0.0};
    bool external_reference_ = false;
    std::atomic<std::uint64_t> followed_{0};
    medium::Impairments impairments_;
    std::atomic<std::uint64_t> impairment_changes_{0};
    std::atomic<std::int64_t> unplug_ns_{kNever};
    std::int64_t offset_ticks_ = 0;  // device time minus air time
    std::optional<Step> step_;       // at the next PPS
    std::optional<uhd::time_spec_t> command_time_;
    std::atomic<double> rates_sps_[2][kChannels];
    std::atomic<bool> automatic_;
    std::atomic<double> rx_load_{0.0};
    std::size_t widest_stream_ = 1;
    std::optional<double> chosen_sps_[2][kChannels];  // rates that the program has set, as it asked for them or got them
    std::optional<Tuner> tuners_[2][kChannels];
};

}  // namespace fadelab
