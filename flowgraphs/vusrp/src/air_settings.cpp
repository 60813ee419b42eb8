// The configuration of an air: what its links, noise, interferers and clocks have been set to.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <iterator>

#include "air.hpp"
#include "medium/interference.hpp"
#include "medium/random.hpp"
#include "medium/series.hpp"
#include "power.hpp"

namespace fadelab {
namespace {

constexpr double kMaxClockOffset_ppm = 1000.0;

// How exactly a pattern names a port; negative when it does not.
int exactness(const std::string& pattern, const std::string& port) {
    if (pattern == port) return 2;
    if (pattern == "*") return 0;
    return port.compare(0, pattern.size() + 1, pattern + ":") == 0 ? 1 : -1;
}

void check_pattern(const std::string& pattern) {
    if (pattern == "*") return;
    const auto colon = pattern.find(':');
    check_name("a serial number", pattern.substr(0, colon));
    if (colon == std::string::npos) return;
    const std::string channel = pattern.substr(colon + 1);
    if (channel.size() != 1 || channel[0] < '0' || channel[0] >= '0' + static_cast<int>(kChannels)) {
        throw AirError("port '" + pattern + "': its channel must be 0 to " + std::to_string(kChannels - 1));
    }
}

template <typename Value, std::size_t kSize>
void set_entry(Header& header, Entry<Value> (&table)[kSize], const std::string& tx, const std::string& rx,
               const Value& value) {
    const auto entry =
        std::find_if(std::begin(table), std::end(table), [](const auto& one) { return one.order.load() == 0; });
    if (entry == std::end(table)) throw AirError("the air has no room for more settings of one kind");
    put(entry->tx, tx);
    put(entry->rx, rx);
    entry->value = value;
    entry->order = ++header.orders;
    for (auto& other : table) {
        if (&other != entry && tx == other.tx && rx == other.rx) other.order = 0;
    }
    ++header.changes;
}

template <typename Value, std::size_t kSize>
const Value* find_entry(const Entry<Value> (&table)[kSize], const std::string& tx, const std::string& rx) {
    const Entry<Value>* best = nullptr;
    int best_exactness = -1;
    for (const auto& entry : table) {
        if (entry.order == 0) continue;
        const int of_tx = exactness(entry.tx, tx);
        const int of_rx = exactness(entry.rx, rx);
        if (of_tx < 0 || of_rx < 0 || of_tx + of_rx < best_exactness) continue;
        if (of_tx + of_rx == best_exactness && entry.order < best->order) continue;
        best = &entry;
        best_exactness = of_tx + of_rx;
    }
    return best == nullptr ? nullptr : &best->value;
}

template <typename Value, std::size_t kSize>
Value found_or(const Entry<Value> (&table)[kSize], const std::string& tx, const std::string& rx, const Value& otherwise) {
    const Value* found = find_entry(table, tx, rx);
    return found == nullptr ? otherwise : *found;
}

std::vector<Interferer> heard_by(const Header& header, const std::string& rx) {
    std::vector<Interferer> found;
    for (const auto& entry : header.interferers) {
        if (entry.order != 0 && exactness(entry.rx, rx) >= 0 && entry.value.path[0] != '\0') {
            found.push_back(entry.value);
        }
    }
    return found;
}

}  // namespace

void Air::set_link(const std::string& tx, const std::string& rx, const medium::LinkOptions& options) {
    check_pattern(tx);
    check_pattern(rx);
    try {
        medium::validate(options);
        if (options.series_path[0] != '\0') medium::Series(options.series_path).check_gains();
    } catch (const std::exception& error) {
        throw AirError("link " + tx + " -> " + rx + ": " + error.what());
    }
    const Lock lock(*this);
    set_entry(*header_, header_->links, tx, rx, options);
}

medium::LinkOptions Air::link(const std::string& tx, const std::string& rx) {
    const Lock lock(*this);
    return found_or(header_->links, tx, rx, medium::LinkOptions());
}

void Air::set_noise_dbm_hz(const std::string& rx, double dbm_hz) {
    check_pattern(rx);
    if (std::isnan(dbm_hz) || dbm_hz > 0.0) throw AirError("noise density must be at most 0 dBm/Hz");
    const Lock lock(*this);
    set_entry(*header_, header_->noise_dbm_hz, "", rx, dbm_hz);
}

double Air::noise_dbm_hz(const std::string& rx) {
    const Lock lock(*this);
    return found_or(header_->noise_dbm_hz, "", rx, kDefaultNoise_dbm_hz);
}

void Air::set_interferer(const std::string& rx, const Interferer& interferer) {
    check_pattern(rx);
    if (std::memchr(interferer.path, '\0', sizeof interferer.path) == nullptr) {
        throw AirError("interference: its path is longer than " + std::to_string(sizeof interferer.path - 1) + " bytes");
    }
    if (interferer.path[0] != '\0') {
        try {
            medium::Interference(interferer.path);
        } catch (const std::exception& error) {
            throw AirError(std::string("interference: ") + error.what());
        }
        if (!(interferer.rate_sps > 0.0)) throw AirError("interference needs the sample rate of its recording");
    }
    const Lock lock(*this);
    set_entry(*header_, header_->interferers, "", rx, interferer);
}

std::vector<Interferer> Air::interferers(const std::string& rx) {
    const Lock lock(*this);
    return heard_by(*header_, rx);
}

void Air::set_clock_offset_ppm(const std::string& serial, double ppm) {
    if (serial != "*") check_name("a serial number", serial);
    if (!(std::abs(ppm) <= kMaxClockOffset_ppm)) throw AirError("a clock offset must lie within 1000 ppm");
    const Lock lock(*this);
    set_entry(*header_, header_->clock_offsets_ppm, "", serial, ppm);
}

double Air::clock_offset_ppm(const std::string& serial) {
    const Lock lock(*this);
    const auto* found = find_entry(header_->clock_offsets_ppm, "", serial);
    if (found != nullptr) return *found;
    return medium::drawn_ppm(impairments_locked(serial), medium::hash(medium::hash(seed(), "clock"), serial));
}

Air::Surroundings Air::surroundings(const std::string& rx) {
    Surroundings found;
    const Lock lock(*this);
    const auto* noise = find_entry(header_->noise_dbm_hz, "", rx);
    if (noise != nullptr) found.noise_dbm_hz = *noise;
    found.interferers = heard_by(*header_, rx);
    for (const Slot& slot : header_->slots) {
        found.serials.emplace_back(slot.serial);
        found.impairments.push_back(slot.owner.pid == 0 ? medium::Impairments() : impairments_locked(slot.serial));
        auto& links = found.links.emplace_back();
        for (std::size_t channel = 0; channel < slot.channels; ++channel) {
            links.push_back(found_or(header_->links, port_name(slot.serial, channel), rx, medium::LinkOptions()));
        }
    }
    return found;
}

void Air::set_own_impairments(const medium::Impairments& impairments) {
    const Lock lock(*this);
    slot().impairments = impairments;
    ++header_->changes;
}

void Air::set_impairments(const std::string& serial, const std::optional<medium::Impairments>& impairments) {
    if (serial != "*") check_name("a serial number", serial);
    if (impairments) {
        try {
            medium::validate(*impairments);
        } catch (const std::exception& error) {
            throw AirError("impairments of " + serial + ": " + error.what());
        }
    }
    const Lock lock(*this);
    if (impairments) {
        set_entry(*header_, header_->impairments, "", serial, *impairments);
        return;
    }
    for (auto& entry : header_->impairments) {
        if (serial == entry.rx) entry.order = 0;
    }
    ++header_->changes;
}

medium::Impairments Air::impairments(const std::string& serial) {
    const Lock lock(*this);
    return impairments_locked(serial);
}

medium::Impairments Air::impairments_locked(const std::string& serial) {
    const auto* found = find_entry(header_->impairments, "", serial);
    if (found != nullptr) return *found;
    for (const Slot& slot : header_->slots) {
        if (slot.owner.pid != 0 && serial == slot.serial) return slot.impairments;
    }
    return {};
}

}  // namespace fadelab
