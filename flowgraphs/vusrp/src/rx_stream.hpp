// A receive streamer: stream commands in, packets of samples and their metadata out.
//
// Read first: uhd/stream.hpp, uhd/types/stream_cmd.hpp and uhd/types/metadata.hpp, which say what a program may expect.
//
// Rules kept here:
//
// - Samples are mixed in the caller's recv(), when their time is past; nothing is buffered. A packet is there when its
//   last sample is.
// - A program more than kMaxLag samples behind has lost what lies between: overflow, as from a full buffer.
// - A link that carries less than the device samples loses the rest, in overflows of a buffer's length.
// - Commands wait in a queue, as in a device: one that starts in the past is late, a chain that ends is broken.

#pragma once

#include <uhd/stream.hpp>
#include <uhd/types/metadata.hpp>
#include <uhd/version.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "antenna.hpp"
#include "convert.hpp"
#include "medium/hiccups.hpp"
#include "radio.hpp"

namespace fadelab {

constexpr std::int64_t kMaxLag = std::int64_t{1} << 20;

class RxStream : public uhd::rx_streamer {
public:
    // `channels`: front ends.
    RxStream(std::shared_ptr<Radio> radio, const uhd::stream_args_t& args, std::vector<std::size_t> channels);
    ~RxStream() override;

    std::size_t get_num_channels() const override { return channels_.size(); }
    std::size_t get_max_num_samps() const override { return packet_size_; }
    std::size_t recv(const buffs_type& buffs, std::size_t nsamps_per_buff, uhd::rx_metadata_t& metadata, double timeout,
                     bool one_packet) override;
    void issue_stream_cmd(const uhd::stream_cmd_t& command) override;
#if UHD_VERSION >= 4080000
    void post_input_action(const std::shared_ptr<uhd::rfnoc::action_info>& action, std::size_t port) override;
#endif

    bool has(std::size_t channel) const;
    bool busy();  // a command is being carried out
    std::size_t first_channel() const { return channels_.front(); }

private:
    // A stream command that has started or waits for the one before it.
    struct Command {
        std::int64_t issued_ns;
        std::optional<uhd::time_spec_t> start;  // none: now
        std::int64_t samples;                   // kNever: until stopped
        bool chained;                           // another one must follow
    };

    std::size_t deliver(const buffs_type& buffs, std::size_t filled, std::size_t room, uhd::rx_metadata_t& metadata);
    bool wait_for_samples(std::unique_lock<std::mutex>& lock, std::size_t wanted, std::int64_t timeout_ns);
    void form_packet();
    void start(const Command& command, std::int64_t earliest_tick);
    void stop(const uhd::stream_cmd_t& command);
    void end_command();
    void go_idle();
    void fail(uhd::rx_metadata_t::error_code_t code, const uhd::time_spec_t& time);
    void follow_grid();
    std::int64_t lookahead() { return antennas_.front().lookahead(grid_.rate_sps); }
    void set_load(double octets_per_second);
    bool link_is_full();
    bool hiccup();
    void lose(std::int64_t until_tick);
    std::int64_t now_tick() const { return grid_.last_tick_at(radio_->air().now_ns()); }

    std::shared_ptr<Radio> radio_;
    std::vector<std::size_t> channels_;
    HostFormat format_;
    Quantiser quantiser_;
    std::size_t sample_octets_;  // on the link, of all channels
    std::size_t packet_size_;
    std::vector<Antenna> antennas_;
    std::vector<Sample> scratch_;

    std::mutex mutex_;  // of what follows
    Word changed_{0};   // by a stream command
    std::deque<Command> queue_;
    std::optional<Command> active_;
    Grid grid_;
    std::int64_t next_tick_ = 0;
    std::int64_t end_tick_ = kNever;  // of the active command
    bool first_packet_ = false;
    std::size_t packet_left_ = 0;    // samples of a packet; 0: none is formed
    std::size_t packet_offset_ = 0;  // of the next sample in it
    std::optional<uhd::rx_metadata_t> error_;
    double load_ = 0.0;     // of the link, in octets per second
    double backlog_ = 0.0;  // octets that the link has not carried
    std::uint64_t impairment_changes_ = UINT64_MAX;
    medium::Hiccups hiccups_;
};

}  // namespace fadelab
