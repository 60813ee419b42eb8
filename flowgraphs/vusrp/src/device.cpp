#include "device.hpp"

#include <uhd/exception.hpp>
#include <uhd/types/ranges.hpp>
#include <uhd/types/sensors.hpp>
#include <uhd/types/stream_cmd.hpp>
#include <uhd/usrp/dboard_eeprom.hpp>
#include <uhd/usrp/mboard_eeprom.hpp>

#include <algorithm>
#include <cmath>

#include "power.hpp"

namespace fadelab {
namespace {

using uhd::fs_path;
using uhd::meta_range_t;
using uhd::sensor_value_t;
using uhd::stream_cmd_t;
using uhd::time_spec_t;
using uhd::usrp::subdev_spec_t;

constexpr double kMinFreq_hz = 1e6;
constexpr double kMaxFreq_hz = 6e9;
constexpr double kLoStep_hz = 1e3;  // the DSP makes up for what the local oscillator cannot be set to
constexpr double kDefaultFreq_hz = 1e9;
constexpr double kGainStep_db = 0.25;
constexpr double kMinBandwidth_hz = 200e3;
constexpr double kMaxBandwidth_hz = 160e6;

const fs_path kMboard = "/mboards/0";
const std::string kDboard = "A";
const std::string kGain = "PGA";

std::string prefix(bool tx) { return tx ? "tx" : "rx"; }
fs_path front_end_path(bool tx, std::size_t channel) {
    return kMboard / "dboards" / kDboard / (prefix(tx) + "_frontends") / std::to_string(channel);
}
fs_path dsp_path(bool tx, std::size_t channel) { return kMboard / (prefix(tx) + "_dsps") / std::to_string(channel); }

// The front end of each channel of a subdevice specification. Throws uhd::value_error for one there is not.
std::vector<std::size_t> front_ends_of(const subdev_spec_t& spec) {
    std::vector<std::size_t> found;
    for (const auto& pair : spec) {
        const bool known =
            (pair.db_name == kDboard || pair.db_name.empty()) && (pair.sd_name == "0" || pair.sd_name == "1");
        const std::size_t channel = pair.sd_name == "1";
        if (!known || std::count(found.begin(), found.end(), channel) != 0) {
            throw uhd::value_error("vusrp has no subdevice specification \"" + spec.to_string() +
                                   R"(": take "A:0", "A:1", or both)");
        }
        found.push_back(channel);
    }
    return found;
}

template <typename Streams>
auto living(Streams& streams) {
    std::vector<decltype(streams.front().lock())> found;
    for (const auto& one : streams) {
        if (auto stream = one.lock()) found.push_back(std::move(stream));
    }
    streams.assign(found.begin(), found.end());
    return found;
}

}  // namespace

Device::Device(std::shared_ptr<Radio> radio) : radio_(std::move(radio)) {
    _type = uhd::device::USRP;
    _tree = uhd::property_tree::make();
    _tree->create<std::string>("/name").set("vusrp");
    add_mboard();
    add_time();
    add_dboard();
}

uhd::rx_streamer::sptr Device::get_rx_stream(const uhd::stream_args_t& args) {
    auto stream = std::make_shared<RxStream>(radio_, args, front_ends(false, args));
    const std::lock_guard lock(mutex_);
    rx_streams_.push_back(stream);
    return stream;
}

uhd::tx_streamer::sptr Device::get_tx_stream(const uhd::stream_args_t& args) {
    const auto channels = front_ends(true, args);
    for (const auto& other : tx_streams()) {
        if (std::any_of(channels.begin(), channels.end(), [&](auto channel) { return other->has(channel); })) {
            other->replace();
        }
    }
    try {
        auto stream = std::make_shared<TxStream>(radio_, args, channels);
        const std::lock_guard lock(mutex_);
        tx_streams_.push_back(stream);
        return stream;
    } catch (const AirError& error) {
        throw uhd::runtime_error(error.what());
    }
}

bool Device::recv_async_msg(uhd::async_metadata_t& message, double timeout) {
    constexpr std::int64_t kLookAgain_ns = 10'000'000;  // streamers come and go
    const std::int64_t deadline_ns = monotonic_ns() + static_cast<std::int64_t>(timeout * kSecond_ns);
    for (;;) {
        for (const auto& stream : tx_streams()) stream->report();
        if (radio_->async().pop(message)) return true;
        const std::int64_t now_ns = monotonic_ns();
        if (now_ns >= deadline_ns) return false;
        Word unchanging{0};
        wait(unchanging, 0, std::min(deadline_ns, now_ns + kLookAgain_ns));
    }
}

void Device::add_mboard() {
    _tree->create<std::string>(kMboard / "name").set("vusrp");
    _tree->create<std::string>(kMboard / "codename").set("fadelab");
    uhd::usrp::mboard_eeprom_t eeprom;
    eeprom["name"] = radio_->air().name();
    eeprom["serial"] = radio_->serial();
    _tree->create<uhd::usrp::mboard_eeprom_t>(kMboard / "eeprom").set(eeprom);
    _tree->create<sensor_value_t>(kMboard / "sensors/ref_locked").set_publisher([] {
        return sensor_value_t("Ref", true, "locked", "unlocked");
    });
    const std::vector<std::string> sources{"internal", "external"};
    _tree->create<std::vector<std::string>>(kMboard / "clock_source/options").set(sources);
    _tree->create<std::string>(kMboard / "clock_source/value")
        .add_coerced_subscriber([this, sources](const std::string& source) {
            if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
                throw uhd::value_error("vusrp has no clock source " + source + ": take internal or external");
            }
            radio_->set_external_reference(source == "external");
        })
        .set("internal");
    for (const bool tx : {false, true}) {
        auto& mapping = _tree->create<std::vector<std::size_t>>(kMboard / (prefix(tx) + "_chan_dsp_mapping"));
        _tree->create<subdev_spec_t>(kMboard / (prefix(tx) + "_subdev_spec"))
            .set_coercer([](const subdev_spec_t& spec) { return spec.empty() ? subdev_spec_t("A:0 A:1") : spec; })
            .add_coerced_subscriber([&mapping](const subdev_spec_t& spec) { mapping.set(front_ends_of(spec)); })
            .set(subdev_spec_t("A:0 A:1"));
    }
}

void Device::add_time() {
    _tree->create<double>(kMboard / "tick_rate")
        .set_coercer([this](double hz) { return radio_->set_master_clock_hz(hz); })
        .set_publisher([this] { return radio_->master_clock_hz(); });
    _tree->create<meta_range_t>(kMboard / "tick_rate/range")
        .set(meta_range_t(kMinMasterClock_hz, kMaxMasterClock_hz, 1.0));
    _tree->create<time_spec_t>(kMboard / "time/now")
        .set_publisher([this] { return radio_->now(); })
        .add_coerced_subscriber([this](const time_spec_t& time) { radio_->set_now(time); });
    _tree->create<time_spec_t>(kMboard / "time/pps")
        .set_publisher([this] { return radio_->last_pps(); })
        .add_coerced_subscriber([this](const time_spec_t& time) { radio_->set_next_pps(time); });
    _tree->create<time_spec_t>(kMboard / "time/cmd").add_coerced_subscriber([this](const time_spec_t& time) {
        radio_->set_command_time(time);
    });
    // Every source has the air's whole seconds.
    _tree->create<std::vector<std::string>>(kMboard / "time_source/options").set({"none", "internal", "external"});
    _tree->create<std::string>(kMboard / "time_source/value").set("internal");
}

void Device::add_dboard() {
    for (const bool tx : {false, true}) {
        uhd::usrp::dboard_eeprom_t eeprom;
        eeprom.serial = radio_->serial();
        _tree->create<uhd::usrp::dboard_eeprom_t>(kMboard / "dboards" / kDboard / (prefix(tx) + "_eeprom")).set(eeprom);
        const fs_path codec = kMboard / (prefix(tx) + "_codecs") / kDboard;
        _tree->create<std::string>(codec / "name").set("vusrp");
        _tree->create<int>(codec / "gains");  // none: the front ends have them
        for (std::size_t channel = 0; channel < kChannels; ++channel) {
            add_dsp(tx, channel);
            add_front_end(tx, channel);
            tune(tx, channel);
        }
    }
}

void Device::add_front_end(bool tx, std::size_t channel) {
    const fs_path path = front_end_path(tx, channel);
    _tree->create<std::string>(path / "name").set("vusrp");
    _tree->create<std::string>(path / "connection").set("IQ");
    _tree->create<bool>(path / "enabled").set(true);
    _tree->create<bool>(path / "use_lo_offset").set(false);
    _tree->create<sensor_value_t>(path / "sensors/lo_locked").set_publisher([] {
        return sensor_value_t("LO", true, "locked", "unlocked");
    });

    const std::vector<std::string> antennas =
        tx ? std::vector<std::string>{"TX/RX"} : std::vector<std::string>{"TX/RX", "RX2"};
    _tree->create<std::vector<std::string>>(path / "antenna/options").set(antennas);
    _tree->create<std::string>(path / "antenna/value")
        .add_coerced_subscriber([antennas](const std::string& antenna) {
            if (std::find(antennas.begin(), antennas.end(), antenna) == antennas.end()) {
                throw uhd::value_error("vusrp has no antenna " + antenna + " there");
            }
        })
        .set(antennas.back());

    const meta_range_t freqs(kMinFreq_hz, kMaxFreq_hz, kLoStep_hz);
    _tree->create<meta_range_t>(path / "freq/range").set(freqs);
    _tree->create<double>(path / "freq/value")
        .set_coercer([freqs](double hz) { return freqs.clip(hz, true); })
        .set(kDefaultFreq_hz)
        .add_coerced_subscriber([this, tx, channel](double) { tune(tx, channel); });

    const meta_range_t bandwidths(kMinBandwidth_hz, kMaxBandwidth_hz);
    _tree->create<meta_range_t>(path / "bandwidth/range").set(bandwidths);
    _tree->create<double>(path / "bandwidth/value")
        .set_coercer([bandwidths](double hz) { return bandwidths.clip(hz); })
        .set(kMaxBandwidth_hz);

    const meta_range_t gains(0.0, kMaxGain_db, kGainStep_db);
    _tree->create<meta_range_t>(path / "gains" / kGain / "range").set(gains);
    _tree->create<double>(path / "gains" / kGain / "value")
        .set_coercer([gains](double db) { return gains.clip(db, true); })
        .set(0.0)
        .add_coerced_subscriber([this, tx, channel](double db) { radio_->set_gain_db(tx, channel, db); });
}

void Device::add_dsp(bool tx, std::size_t channel) {
    const fs_path path = dsp_path(tx, channel);
    _tree->create<meta_range_t>(path / "rate/range").set_publisher([this] {
        meta_range_t rates;
        for (int decimation = kMaxDecimation; decimation > 0; --decimation) {
            rates.push_back(uhd::range_t(radio_->master_clock_hz() / decimation));
        }
        return rates;
    });
    _tree->create<double>(path / "rate/value")
        .set_coercer([this, tx, channel](double sps) { return radio_->set_rate_sps(tx, channel, sps); })
        .set_publisher([this, tx, channel] { return radio_->rate_sps(tx, channel); });
    const auto freqs = [this] {
        const double half = radio_->master_clock_hz() / 2;
        return meta_range_t(-half, half);
    };
    _tree->create<meta_range_t>(path / "freq/range").set_publisher(freqs);
    _tree->create<double>(path / "freq/value")
        .set_coercer([freqs](double hz) { return freqs().clip(hz); })
        .set(0.0)
        .add_coerced_subscriber([this, tx, channel](double) { tune(tx, channel); });
    if (tx) return;
    _tree->create<stream_cmd_t>(path / "stream_cmd")
        .add_coerced_subscriber([this, channel](const stream_cmd_t& command) { issue_stream_cmd(channel, command); });
}

// The DSP shifts down what the local oscillator's frequency leaves when receiving, and up when transmitting.
void Device::tune(bool tx, std::size_t channel) {
    const double lo_hz = _tree->access<double>(front_end_path(tx, channel) / "freq/value").get();
    const double dsp_hz = _tree->access<double>(dsp_path(tx, channel) / "freq/value").get();
    radio_->set_freq_hz(tx, channel, tx ? lo_hz + dsp_hz : lo_hz - dsp_hz);
}

std::vector<std::size_t> Device::front_ends(bool tx, const uhd::stream_args_t& args) const {
    const auto mapping = _tree->access<std::vector<std::size_t>>(kMboard / (prefix(tx) + "_chan_dsp_mapping")).get();
    std::vector<std::size_t> found;
    for (const std::size_t channel : args.channels.empty() ? std::vector<std::size_t>{0} : args.channels) {
        if (channel >= mapping.size()) {
            throw uhd::index_error("vusrp has no channel " + std::to_string(channel) +
                                   " in its subdevice specification");
        }
        found.push_back(mapping[channel]);
    }
    return found;
}

// A command for one channel is one for the streamer that begins with it.
void Device::issue_stream_cmd(std::size_t channel, const stream_cmd_t& command) {
    std::vector<std::shared_ptr<RxStream>> streams;
    {
        const std::lock_guard lock(mutex_);
        streams = living(rx_streams_);
    }
    const auto found =
        std::find_if(streams.rbegin(), streams.rend(), [&](const auto& one) { return one->has(channel); });
    if (found == streams.rend()) throw uhd::runtime_error("vusrp has no receive streamer for that channel yet");
    if ((*found)->first_channel() == channel) (*found)->issue_stream_cmd(command);
}

std::vector<std::shared_ptr<TxStream>> Device::tx_streams() {
    const std::lock_guard lock(mutex_);
    return living(tx_streams_);
}

}  // namespace fadelab
