#include "device.hpp"

#include <uhd/exception.hpp>
#include <uhd/types/ranges.hpp>
#include <uhd/types/sensors.hpp>
#include <uhd/types/stream_cmd.hpp>
#include <uhd/usrp/dboard_eeprom.hpp>
#include <uhd/usrp/mboard_eeprom.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <set>
#include <utility>

#include "clocking.hpp"

namespace fadelab {
namespace {

using uhd::fs_path;
using uhd::meta_range_t;
using uhd::sensor_value_t;
using uhd::stream_cmd_t;
using uhd::time_spec_t;
using uhd::usrp::subdev_spec_t;

const fs_path kMboard = "/mboards/0";

std::string prefix(bool tx) { return tx ? "tx" : "rx"; }
fs_path dsp_path(bool tx, std::size_t channel) { return kMboard / (prefix(tx) + "_dsps") / std::to_string(channel); }

subdev_spec_t all_front_ends(const Profile& profile) {
    subdev_spec_t all;
    for (const Port& port : profile.ports) all.push_back({port.board, port.front_end});
    return all;
}

// The front end of each channel of a subdevice specification. Throws uhd::value_error for one there is not.
std::vector<std::size_t> front_ends_of(const Profile& profile, const subdev_spec_t& spec) {
    std::vector<std::size_t> found;
    for (const auto& pair : spec) {
        const auto port = std::find_if(profile.ports.begin(), profile.ports.end(), [&pair](const Port& one) {
            return (pair.db_name == one.board || pair.db_name.empty()) && pair.sd_name == one.front_end;
        });
        const auto channel = static_cast<std::size_t>(port - profile.ports.begin());
        if (port == profile.ports.end() || std::count(found.begin(), found.end(), channel) != 0) {
            throw uhd::value_error("vusrp has no subdevice specification \"" + spec.to_string() + "\": take \"" +
                                   all_front_ends(profile).to_string() + "\", or a part of it");
        }
        found.push_back(channel);
    }
    return found;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    }
    return text;
}

double nearest_gain_db(const GainElement& element, double db) {
    const auto [first, last, step] = element.db;
    const double steps = (std::clamp(db, first, last) - first) / step;
    constexpr double kRounding = 1e-6;  // of decimal fractions
    switch (element.rounding) {
        case Rounding::kDown:
            return first + step * std::floor(steps + kRounding);
        case Rounding::kUp:
            return first + step * std::ceil(steps - kRounding);
        default:
            return first + step * std::round(steps);
    }
}

// The nearest frequency of an oscillator that a word of so many bits sets.
double nearest_word_hz(double hz, double master_clock_hz, int bits) {
    if (bits == 0) return hz;
    const double step_hz = std::ldexp(master_clock_hz, -bits);
    return step_hz * std::round(hz / step_hz);
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

Device::Device(std::shared_ptr<Radio> radio, bool referenced) : radio_(std::move(radio)), referenced_(referenced) {
    _type = uhd::device::USRP;
    _tree = uhd::property_tree::make();
    _tree->create<std::string>("/name").set(profile().device);
    for (const bool tx : {false, true}) {
        oscillators_hz_[tx].assign(radio_->channels(), radio_->direction(tx).default_freq_hz);
        gains_db_[tx].resize(radio_->channels());
    }
    add_mboard();
    add_time();
    add_dboards();
}

fs_path Device::front_end_path(bool tx, std::size_t channel) const {
    const Port& port = profile().ports[channel];
    return kMboard / "dboards" / port.board / (prefix(tx) + "_frontends") / port.front_end;
}

uhd::rx_streamer::sptr Device::get_rx_stream(const uhd::stream_args_t& args) {
    const auto channels = front_ends(false, args);
    prepare(false, channels);
    auto stream = std::make_shared<RxStream>(radio_, args, channels);
    const std::lock_guard lock(mutex_);
    rx_streams_.push_back(stream);
    return stream;
}

uhd::tx_streamer::sptr Device::get_tx_stream(const uhd::stream_args_t& args) {
    const auto channels = front_ends(true, args);
    prepare(true, channels);
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
    const std::string& board = profile().board;
    _tree->create<std::string>(kMboard / "name").set(board.back() == '-' ? board + radio_->serial() : board);
    if (!profile().codename.empty()) _tree->create<std::string>(kMboard / "codename").set(profile().codename);
    uhd::usrp::mboard_eeprom_t eeprom;
    eeprom["name"] = radio_->air().name();
    eeprom["serial"] = radio_->serial();
    for (const auto& [key, value] : profile().eeprom) eeprom[key] = value;
    _tree->create<uhd::usrp::mboard_eeprom_t>(kMboard / "eeprom").set(eeprom);
    for (const auto& [node, value] : profile().versions) _tree->create<std::string>(kMboard / node).set(value);
    for (const std::string& name : profile().board_sensors) add_sensor(kMboard / "sensors", name);
    const Link& link = radio_->link();
    if (link.octets_per_second > 0.0) _tree->create<double>(kMboard / "link_max_rate").set(link.octets_per_second);
    if (link.usb_version > 0) _tree->create<int>(kMboard / "usb_version").set(link.usb_version);
    for (const std::string& bank : profile().gpio_banks) {
        add_gpio(_tree, kMboard / "gpio" / bank, [this] { return activity(); });
    }
    // Every time source has the air's whole seconds.
    add_source("clock", "internal", profile().clock_sources, [this](const std::string& source) {
        radio_->set_external_reference(source != "internal" && referenced_);
    });
    add_source("time", profile().default_time_source, profile().time_sources, [](const std::string&) {});
    for (const bool tx : {false, true}) {
        auto& mapping = _tree->create<std::vector<std::size_t>>(kMboard / (prefix(tx) + "_chan_dsp_mapping"));
        const subdev_spec_t all = all_front_ends(profile());
        _tree->create<subdev_spec_t>(kMboard / (prefix(tx) + "_subdev_spec"))
            .set_coercer([all](const subdev_spec_t& spec) { return spec.empty() ? all : spec; })
            .add_coerced_subscriber(
                [this, &mapping](const subdev_spec_t& spec) { mapping.set(front_ends_of(profile(), spec)); })
            .set(all);
    }
}

void Device::add_source(const std::string& kind, const std::string& first, const std::vector<std::string>& sources,
                        const std::function<void(const std::string&)>& select) {
    _tree->create<std::vector<std::string>>(kMboard / (kind + "_source") / "options").set(sources);
    _tree->create<std::string>(kMboard / (kind + "_source") / "value")
        .set_coercer([this, kind, sources](const std::string& source) {
            if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
                throw uhd::value_error("vusrp has no " + kind + " source " + source + ": take " + joined(sources));
            }
            const auto& missing = profile().not_fitted;
            if (std::find(missing.begin(), missing.end(), source) != missing.end()) {
                throw uhd::key_error("vusrp has no " + source + " in it: take another " + kind + " source");
            }
            return source;
        })
        .add_coerced_subscriber(select)
        .set(first);
}

void Device::add_sensor(const fs_path& path, const std::string& name) {
    auto& sensor = _tree->create<sensor_value_t>(path / name);
    if (name == "temp") {
        sensor.set_publisher([] { return sensor_value_t("temp", 42.0, "C"); });
    } else if (name == "rssi") {
        sensor.set_publisher([] { return sensor_value_t("RSSI", -100.0, "dB"); });
    } else if (name == "fan") {
        sensor.set_publisher([] { return sensor_value_t("cooling fan", 0, "rpm"); });
    } else if (name == "ref_locked") {
        sensor.set_publisher([this] {
            const bool own = _tree->access<std::string>(kMboard / "clock_source/value").get() == "internal";
            return sensor_value_t("Ref", own || referenced_, "locked", "unlocked");
        });
    } else {
        const std::string label = name == "mimo_locked" ? "MIMO" : "LO";
        const bool locked = name != "mimo_locked" && name != "gps_locked";
        sensor.set_publisher([label, locked] { return sensor_value_t(label, locked, "locked", "unlocked"); });
    }
}

void Device::add_time() {
    _tree->create<double>(kMboard / "tick_rate")
        .set_coercer([this](double hz) { return radio_->set_master_clock_hz(hz); })
        .set_publisher([this] { return radio_->master_clock_hz(); });
    _tree->create<meta_range_t>(kMboard / "tick_rate/range").set(master_clocks(profile().master_clock));
    if (profile().master_clock.automatic) {
        _tree->create<bool>(kMboard / "auto_tick_rate")
            .set(radio_->automatic())
            .add_coerced_subscriber([this](bool automatic) { radio_->set_automatic(automatic); });
    }
    _tree->create<time_spec_t>(kMboard / "time/now")
        .set_publisher([this] { return radio_->now(); })
        .add_coerced_subscriber([this](const time_spec_t& time) { radio_->set_now(time); });
    _tree->create<time_spec_t>(kMboard / "time/pps")
        .set_publisher([this] { return radio_->last_pps(); })
        .add_coerced_subscriber([this](const time_spec_t& time) { radio_->set_next_pps(time); });
    _tree->create<time_spec_t>(kMboard / "time/cmd").add_coerced_subscriber([this](const time_spec_t& time) {
        radio_->set_command_time(time);
    });
}

void Device::add_dboards() {
    for (const bool tx : {false, true}) {
        const Direction& direction = radio_->direction(tx);
        for (std::size_t channel = 0; channel < radio_->channels(); ++channel) {
            const std::string& board = profile().ports[channel].board;
            const fs_path codec = kMboard / (prefix(tx) + "_codecs") / board;
            if (!_tree->exists(codec / "name")) {
                uhd::usrp::dboard_eeprom_t eeprom;
                eeprom.serial = radio_->serial();
                if (direction.board_id != 0) eeprom.id = uhd::usrp::dboard_id_t::from_uint16(direction.board_id);
                _tree->create<uhd::usrp::dboard_eeprom_t>(kMboard / "dboards" / board / (prefix(tx) + "_eeprom"))
                    .set(eeprom);
                _tree->create<std::string>(codec / "name").set(direction.codec);
                _tree->create<int>(codec / "gains");  // none: the front ends have them
                if (direction.corrected) add_corrections(tx, channel, kMboard / (prefix(tx) + "_frontends") / board);
            }
            add_dsp(tx, channel);
            add_front_end(tx, channel);
            tune(tx, channel);
        }
    }
}

void Device::add_front_end(bool tx, std::size_t channel) {
    const Direction& direction = radio_->direction(tx);
    const Port& port = profile().ports[channel];
    const fs_path path = front_end_path(tx, channel);
    _tree->create<std::string>(path / "name").set(tx ? port.tx_name : port.rx_name);
    _tree->create<std::string>(path / "connection").set(direction.connection);
    _tree->create<bool>(path / "enabled").set(true);
    _tree->create<bool>(path / "use_lo_offset").set(false);
    for (const std::string& name : direction.sensors) add_sensor(path / "sensors", name);
    for (const std::string& node : direction.corrections) _tree->create<bool>(path / node).set(true);

    const std::vector<std::string>& antennas = direction.antennas;
    _tree->create<std::vector<std::string>>(path / "antenna/options").set(antennas);
    _tree->create<std::string>(path / "antenna/value")
        .add_coerced_subscriber([&antennas](const std::string& antenna) {
            if (std::find(antennas.begin(), antennas.end(), antenna) == antennas.end()) {
                throw uhd::value_error("vusrp has no antenna " + antenna + " there");
            }
        })
        .set(direction.antenna);

    const meta_range_t freqs = meta_range(direction.freq_hz);
    _tree->create<meta_range_t>(path / "freq/range").set(freqs);
    _tree->create<double>(path / "freq/value")
        .set_coercer([this, freqs, &direction](double hz) {
            const double clipped = freqs.clip(hz, true);
            if (direction.oscillator_hz == nullptr) return clipped;
            return direction.oscillator_hz(clipped, radio_->master_clock_hz());
        })
        .set_publisher([this, tx, channel] { return oscillators_hz_[tx][channel]; })
        .add_coerced_subscriber([this, tx, channel, &direction, &board = port.board](double hz) {
            for (std::size_t other = 0; other < radio_->channels(); ++other) {
                const bool shared = direction.shared_oscillator && profile().ports[other].board == board;
                if (other != channel && !shared) continue;
                oscillators_hz_[tx][other] = hz;
                tune(tx, other);
            }
        });

    const meta_range_t bandwidths = meta_range(direction.bandwidth_hz);
    _tree->create<meta_range_t>(path / "bandwidth/range").set(bandwidths);
    _tree->create<double>(path / "bandwidth/value")
        .set_coercer([bandwidths](double hz) { return bandwidths.clip(hz); })
        .set(direction.default_bandwidth_hz);

    const fs_path codec = kMboard / (prefix(tx) + "_codecs") / port.board;
    for (const GainElement& element : direction.gains) add_gain(tx, channel, path, element);
    for (const GainElement& element : direction.codec_gains) add_gain(tx, channel, codec, element);
}

// An element of a channel's gain: the level follows the sum of them all.
void Device::add_gain(bool tx, std::size_t channel, const fs_path& path, const GainElement& element) {
    _tree->create<meta_range_t>(path / "gains" / element.name / "range").set(meta_range(element.db));
    auto& elements = gains_db_[tx][channel];
    const std::size_t index = elements.size();
    elements.push_back(element.db.first);
    _tree->create<double>(path / "gains" / element.name / "value")
        .set_coercer([&element](double db) { return nearest_gain_db(element, db); })
        .set(element.db.first)
        .add_coerced_subscriber([this, tx, channel, index, &elements](double db) {
            elements[index] = db;
            radio_->set_gain_db(tx, channel, std::accumulate(elements.begin(), elements.end(), 0.0));
        });
}

// The FPGA's, which each daughterboard has once.
void Device::add_corrections(bool tx, std::size_t channel, const fs_path& path) {
    using Value = std::complex<double>;
    _tree->create<meta_range_t>(path / "dc_offset/range").set(meta_range_t(-1.0, 1.0));
    auto& offset = _tree->create<Value>(path / "dc_offset/value").set(Value());
    auto& balance = _tree->create<Value>(path / "iq_balance/value").set(Value());
    const auto correct = [this, tx, channel, &offset, &balance](const Value&) {
        radio_->set_correction(tx, channel, Sample(balance.get()), Sample(offset.get()));
    };
    offset.add_coerced_subscriber(correct);
    balance.add_coerced_subscriber(correct);
    if (!tx) _tree->create<bool>(path / "dc_offset/enable").set(true);
}

void Device::add_dsp(bool tx, std::size_t channel) {
    const fs_path path = dsp_path(tx, channel);
    _tree->create<meta_range_t>(path / "rate/range").set_publisher([this, tx] {
        return rates(radio_->direction(tx), radio_->master_clock_hz());
    });
    _tree->create<double>(path / "rate/value")
        .set_coercer([this, tx, channel](double sps) { return radio_->set_rate_sps(tx, channel, sps); })
        .set_publisher([this, tx, channel] { return radio_->rate_sps(tx, channel); });
    const auto freqs = [this, spans = radio_->direction(tx).dsp_spans] {
        const double clock_hz = radio_->master_clock_hz();
        const int bits = profile().dsp_bits;
        return meta_range_t(-spans * clock_hz / 2, spans * clock_hz / 2, bits == 0 ? 0.0 : std::ldexp(clock_hz, -bits));
    };
    _tree->create<meta_range_t>(path / "freq/range").set_publisher(freqs);
    _tree->create<double>(path / "freq/value")
        .set_coercer([this, freqs](double hz) {
            return nearest_word_hz(freqs().clip(hz), radio_->master_clock_hz(), profile().dsp_bits);
        })
        .set(0.0)
        .add_coerced_subscriber([this, tx, channel](double) { tune(tx, channel); });
    if (tx) return;
    _tree->create<stream_cmd_t>(path / "stream_cmd")
        .add_coerced_subscriber([this, channel](const stream_cmd_t& command) { issue_stream_cmd(channel, command); });
}

// The DSP shifts down what the local oscillator's frequency leaves when receiving, and up when transmitting.
void Device::tune(bool tx, std::size_t channel) {
    const double lo_hz = oscillators_hz_[tx][channel];
    const double dsp_hz = _tree->access<double>(dsp_path(tx, channel) / "freq/value").get();
    radio_->set_freq_hz(tx, channel, tx ? lo_hz + dsp_hz : lo_hz - dsp_hz);
}

// Settles what a new streamer asks of the clock and of the other streamers. A rate that was never set becomes one that
// the device has.
void Device::prepare(bool tx, const std::vector<std::size_t>& channels) {
    std::size_t widest = channels.size();
    std::set<std::size_t> used[2];
    used[tx].insert(channels.begin(), channels.end());
    {
        const std::lock_guard lock(mutex_);
        for (const auto& stream : living(rx_streams_)) {
            widest = std::max(widest, stream->get_num_channels());
            for (std::size_t i = 0; i < radio_->channels(); ++i) {
                if (stream->has(i)) used[false].insert(i);
            }
        }
        for (const auto& stream : living(tx_streams_)) {
            widest = std::max(widest, stream->get_num_channels());
            for (std::size_t i = 0; i < radio_->channels(); ++i) {
                if (stream->has(i)) used[true].insert(i);
            }
        }
    }
    if (profile().pairs_of_chains && used[false].size() + used[true].size() == 3) {
        throw uhd::runtime_error("vusrp: a " + profile().product +
                                 " cannot have two channels of one direction with one of the other");
    }
    radio_->set_widest_stream(widest);
    if (!radio_->automatic()) return;
    for (const std::size_t channel : channels) radio_->set_rate_sps(tx, channel, radio_->rate_sps(tx, channel));
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

// A command for one channel is one for the streamer that begins with it. A channel without a streamer takes it, too, as
// programs command all channels and stream on one; its samples go nowhere.
void Device::issue_stream_cmd(std::size_t channel, const stream_cmd_t& command) {
    const auto streams = rx_streams();
    if (streams.empty()) throw uhd::runtime_error("vusrp has no receive streamer yet");
    const auto found =
        std::find_if(streams.rbegin(), streams.rend(), [&](const auto& one) { return one->has(channel); });
    if (found != streams.rend() && (*found)->first_channel() == channel) (*found)->issue_stream_cmd(command);
}

// Of the first front end, whose state moves the pins of a front panel.
Activity Device::activity() {
    const auto first = [](const auto& stream) { return stream->has(0) && stream->busy(); };
    const auto receivers = rx_streams();
    const auto transmitters = tx_streams();
    return {std::any_of(receivers.begin(), receivers.end(), first),
            std::any_of(transmitters.begin(), transmitters.end(), first)};
}

std::vector<std::shared_ptr<RxStream>> Device::rx_streams() {
    const std::lock_guard lock(mutex_);
    return living(rx_streams_);
}

std::vector<std::shared_ptr<TxStream>> Device::tx_streams() {
    const std::lock_guard lock(mutex_);
    return living(tx_streams_);
}

}  // namespace fadelab
