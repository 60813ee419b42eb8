// The device that UHD sees: a property tree as multi_usrp wants it of a device without RFNoC, and the streamers.
//
// Read first: host/lib/usrp/multi_usrp.cpp of UHD, whose paths these are.
//
// Left out, and not in the tree: LO sharing, AGC, the automatic correction of DC offset, calibrated power.

#pragma once

#include <uhd/device.hpp>
#include <uhd/property_tree.hpp>
#include <uhd/types/device_addr.hpp>
#include <uhd/usrp/subdev_spec.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpio.hpp"
#include "radio.hpp"
#include "rx_stream.hpp"
#include "tx_stream.hpp"

namespace fadelab {

class Device : public uhd::device {
public:
    // `referenced`: a reference signal is at its input.
    Device(std::shared_ptr<Radio> radio, bool referenced);

    // Gives the serial number back before the device is destroyed.
    void leave() { radio_->air().leave(); }

    uhd::rx_streamer::sptr get_rx_stream(const uhd::stream_args_t& args) override;
    uhd::tx_streamer::sptr get_tx_stream(const uhd::stream_args_t& args) override;
    bool recv_async_msg(uhd::async_metadata_t& message, double timeout) override;

private:
    void add_mboard();
    void add_time();
    void add_dboards();
    void add_sensor(const uhd::fs_path& path, const std::string& name);
    void add_source(const std::string& kind, const std::string& first, const std::vector<std::string>& sources,
                    const std::function<void(const std::string&)>& select);
    void add_front_end(bool tx, std::size_t channel);
    void add_gain(bool tx, std::size_t channel, const uhd::fs_path& path, const GainElement& element);
    void add_corrections(bool tx, std::size_t channel, const uhd::fs_path& path);
    void add_dsp(bool tx, std::size_t channel);
    void tune(bool tx, std::size_t channel);
    const Profile& profile() const { return radio_->profile(); }
    uhd::fs_path front_end_path(bool tx, std::size_t channel) const;
    void prepare(bool tx, const std::vector<std::size_t>& channels);
    std::vector<std::size_t> front_ends(bool tx, const uhd::stream_args_t& args) const;
    void issue_stream_cmd(std::size_t channel, const uhd::stream_cmd_t& command);
    std::vector<std::shared_ptr<RxStream>> rx_streams();
    std::vector<std::shared_ptr<TxStream>> tx_streams();
    Activity activity();

    std::shared_ptr<Radio> radio_;
    const bool referenced_;
    // Of each channel, receiving and transmitting: the local oscillator, and the elements of the gain.
    std::vector<double> oscillators_hz_[2];
    std::vector<std::vector<double>> gains_db_[2];
    std::mutex mutex_;  // of what follows
    std::vector<std::weak_ptr<RxStream>> rx_streams_;
    std::vector<std::weak_ptr<TxStream>> tx_streams_;
};

}  // namespace fadelab
