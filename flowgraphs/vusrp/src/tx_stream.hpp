// A transmit streamer: samples in, onto the air at their times, and messages about how it went.
//
// Read first: uhd/stream.hpp and uhd/types/metadata.hpp, which say what a program may expect.
//
// Rules kept here:
//
// - A sample that is not on the air before its time is never heard, and the program gets a message: late (L) for the
//   start of a timed burst, underflow (U) for a burst that ran dry. As in a device, the next packet starts
//   anew, or the next burst with the stream argument underflow_policy=next_burst.
// - Up to the profile's buffer of samples wait for their time; send() blocks when there are more.
// - In real time, samples come no faster than the link carries them.
// - Messages are made when the program sends or asks for them: there is no thread.

#pragma once

#include <uhd/stream.hpp>
#include <uhd/types/metadata.hpp>
#include <uhd/version.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "convert.hpp"
#include "flaws.hpp"
#include "radio.hpp"

namespace fadelab {

class TxStream : public uhd::tx_streamer {
public:
    // `channels`: front ends. Throws AirError when there is no memory for their samples.
    TxStream(std::shared_ptr<Radio> radio, const uhd::stream_args_t& args, std::vector<std::size_t> channels);
    ~TxStream() override;

    std::size_t get_num_channels() const override { return channels_.size(); }
    std::size_t get_max_num_samps() const override { return packet_size_; }
    std::size_t send(const buffs_type& buffs, std::size_t nsamps_per_buff, const uhd::tx_metadata_t& metadata,
                     double timeout) override;
    bool recv_async_msg(uhd::async_metadata_t& message, double timeout) override;
#if UHD_VERSION >= 4080000
    void post_output_action(const std::shared_ptr<uhd::rfnoc::action_info>& action, std::size_t port) override;
#endif

    bool has(std::size_t channel) const;
    bool busy();  // a burst is on the air
    // Makes the messages that are due; returns the time of the next one (kNever: unknown).
    std::int64_t report();
    // Hands the channels over to another streamer.
    void replace();

private:
    // Contiguous samples that are not all past.
    struct Burst {
        Grid grid;
        std::int64_t start_tick;
        std::int64_t end_tick;
        bool acknowledged;  // with an end of burst: a message follows when it is over

        std::int64_t end_ns() const { return grid.ns_of(end_tick); }
    };

    using Event = uhd::async_metadata_t::event_code_t;

    std::size_t send_packets(std::unique_lock<std::mutex>& lock, const buffs_type& buffs, std::size_t n,
                             const uhd::tx_metadata_t& metadata, std::int64_t timeout_ns);
    bool wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t packet, std::size_t left,
                       std::int64_t deadline_ns);
    std::int64_t room_ns(std::size_t n) const;
    void wait_for_link(std::unique_lock<std::mutex>& lock, std::size_t packet);
    bool begin(const std::optional<uhd::time_spec_t>& time);
    bool write(const buffs_type& buffs, std::size_t offset, std::size_t n);
    void leave_open_burst();
    void end_burst();
    std::int64_t report_locked();
    void tell(Event event, std::int64_t ns);
    void follow_grid();
    void follow_impairments();

    std::shared_ptr<Radio> radio_;
    std::vector<std::size_t> channels_;
    HostFormat format_;
    Quantiser quantiser_;
    std::size_t sample_octets_;  // on the link, of all channels
    std::size_t packet_size_;
    bool next_burst_policy_;

    std::mutex mutex_;  // guards the members below
    Word changed_{0};   // wakes a reader whose next message may now be earlier
    AsyncQueue async_;
    std::deque<Burst> bursts_;
    bool open_ = false;      // the last burst goes on
    bool in_send_ = false;   // packets of the same send() are on the air
    bool dropping_ = false;  // until the next burst
    bool replaced_ = false;
    Grid grid_;
    std::int64_t link_free_ns_ = 0;  // air time when the link has carried all that was sent
    std::uint64_t impairment_changes_ = 0;
    double flaws_rate_sps_ = 0.0;
    std::vector<std::optional<TxFlaws>> flaws_;  // of each channel
    std::int64_t free_tick_ = 0;                        // the earliest tick of the next sample
    std::optional<uhd::tx_metadata_t> start_of_burst_;  // given without samples; applies to the next samples
};

}  // namespace fadelab
