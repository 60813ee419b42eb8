// Makes virtual USRPs known to UHD: which device addresses there are, and devices from them.
//
// Arguments: type=vusrp, profile, impairments=typical|none, link, air (default: "default"), serial, master_clock_rate, reference=present|absent, clock=internal|external for the clock
// source, and for an air that does not exist yet air_clock=realtime|lockstep, seed, wait_streams.

#include <uhd/device.hpp>
#include <uhd/exception.hpp>
#include <uhd/types/device_addr.hpp>
#include <uhd/utils/log.hpp>
#include <uhd/utils/static.hpp>
#include <uhd/version.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "air.hpp"
#include "device.hpp"
#include "profiles/profile.hpp"
#include "radio.hpp"

namespace fadelab {
namespace {

using uhd::device_addr_t;
using uhd::device_addrs_t;

const std::string kDefaultAir = "default";

std::string serial_number(std::size_t i) { return "V" + std::to_string(i); }

// A hint that says anything but not our type or an air is for hardware: a virtual device never stands in for that.
bool asks_for_others(const device_addr_t& hint) {
    if (hint.has_key("type")) return hint["type"] != "vusrp";
    const std::size_t ours = hint.has_key("find_all") ? 1 : 0;  // what uhd_find_devices adds
    return hint.size() > ours && !hint.has_key("air");
}

// Whether the air is to run in lockstep; nothing where the address leaves that open. `clock`, the old name of
// `air_clock`, still says it until the next release.
std::optional<bool> lockstep_of(const device_addr_t& address) {
    const auto is_one = [](const std::string& clock) { return clock == "realtime" || clock == "lockstep"; };
    const bool old = address.has_key("clock") && is_one(address["clock"]);
    if (old) {
        const std::string& clock = address["clock"];
        UHD_LOG_WARNING("VUSRP", "the argument clock=" + clock + " is now called air_clock=" + clock +
                                     ": the old name ends with the next release");
    }
    if (!address.has_key("air_clock")) return old ? std::optional(address["clock"] == "lockstep") : std::nullopt;
    const std::string& clock = address["air_clock"];
    if (!is_one(clock)) throw AirError("air_clock=" + clock + " is neither realtime nor lockstep");
    return clock == "lockstep";
}

// The clock source that programs name by `clock`, as srsRAN does; nothing where the address leaves it open.
std::optional<std::string> clock_source_of(const device_addr_t& address) {
    if (!address.has_key("clock")) return std::nullopt;
    const std::string& clock = address["clock"];
    if (clock == "realtime" || clock == "lockstep") return std::nullopt;
    if (clock == "internal" || clock == "external") return clock;
    throw AirError("clock=" + clock + " is no clock source: take internal or external; the air's clock is air_clock");
}

const Profile& profile_of(const device_addr_t& address) {
    const std::string name = address.get("profile", "ideal");
    try {
        return profile(name);
    } catch (const std::out_of_range&) {
        std::string all;
        for (const std::string& one : profile_names()) all += (all.empty() ? "" : ", ") + one;
        throw AirError("there is no profile " + name + ": take one of " + all);
    }
}

const Link& link_of(const device_addr_t& address, const Profile& family) {
    if (!address.has_key("link")) return family.links.front();
    std::string all;
    for (const Link& link : family.links) {
        if (link.name == address["link"]) return link;
        all += (all.empty() ? "" : ", ") + link.name;
    }
    throw AirError("profile " + family.name + " has no link " + address["link"] + ": take one of " + all);
}

// Whether the device has its family's typical flaws.
bool impaired(const device_addr_t& address) {
    const std::string which = address.get("impairments", "typical");
    if (which != "typical" && which != "none") {
        throw AirError("impairments=" + which + " is neither typical nor none: others are set on the air");
    }
    return which == "typical";
}

// Whether a reference signal is at the device's input.
bool referenced(const device_addr_t& address) {
    const std::string which = address.get("reference", "present");
    if (which != "present" && which != "absent") throw AirError("reference=" + which + " is neither present nor absent");
    return which == "present";
}

// Throws AirError for one that the family does not have; nothing where the address leaves it open.
std::optional<double> master_clock_of(const device_addr_t& address, const Profile& family) {
    // a device that has one master clock takes no notice of the argument
    if (!address.has_key("master_clock_rate") || family.master_clock.choices_hz.size() == 1) return std::nullopt;
    const auto hz = address.cast<double>("master_clock_rate", 0.0);
    const MasterClock& clock = family.master_clock;
    const auto megahertz = [](double one) {
        std::ostringstream text;
        text << one / 1e6 << "e6";
        return text.str();
    };
    if (!clock.choices_hz.empty()) {
        std::string all;
        for (const double choice : clock.choices_hz) {
            if (std::abs(choice - hz) < 1.0) return choice;
            all += (all.empty() ? "" : ", ") + megahertz(choice);
        }
        throw AirError("master_clock_rate of profile " + family.name + " must be one of " + all);
    }
    if (!(hz >= clock.range_hz.first && hz <= clock.range_hz.last)) {
        throw AirError("master_clock_rate must lie within " + megahertz(clock.range_hz.first) + " and " +
                       megahertz(clock.range_hz.last));
    }
    return hz;
}

// What this process has made and offered. UHD itself knows devices by their address only, and two sinks that ask for
// "type=vusrp" mean one device.
class Ledger {
public:
    // A program may end without destroying its devices, as Python does.
    ~Ledger() {
        for (const auto& [name, made] : made_) {
            if (const auto device = made.lock()) device->leave();
        }
    }

    // Serial numbers that a program which names none may have: its own first, then V1 and V2 if they are free, or the
    // first one that is.
    std::vector<std::string> offer(const std::string& air_name) {
        const std::lock_guard lock(mutex_);
        auto air = Air::open(air_name);
        std::vector<std::string> free;
        for (std::size_t i = 1; i <= kDevices && (i <= 2 || free.empty()); ++i) {
            const Process owner = air ? air->owner(serial_number(i)) : Process();
            if (owner.pid == 0 || owner.is_self()) free.push_back(serial_number(i));
        }
        for (const std::string& serial : free) offered_.insert({air_name, serial});
        return free;
    }

    void name(const std::string& air_name, const std::string& serial) {
        const std::lock_guard lock(mutex_);
        offered_.erase({air_name, serial});
    }

    // UHD calls `find`, which is what offers and names, right before.
    uhd::device::sptr make(const device_addr_t& address) {
        const std::lock_guard lock(mutex_);
        const std::string air_name = address.get("air", kDefaultAir);
        const std::string asked = address.get("serial", serial_number(1));
        if (auto device = made_[{air_name, asked}].lock()) return device;
        AirOptions options;
        options.lockstep = lockstep_of(address);
        const std::optional<std::string> clock_source = clock_source_of(address);
        if (address.has_key("seed")) options.seed = address.cast<std::uint64_t>("seed", 1);
        if (address.has_key("wait_streams")) options.wait_streams = address.cast<std::uint32_t>("wait_streams", 0);
        const Profile& family = profile_of(address);
        const Link& link = link_of(address, family);
        const std::optional<double> master_clock_hz = master_clock_of(address, family);
        const bool typical = impaired(address);
        Air air = join(air_name, options, asked);
        const std::string serial = air.slot().serial;
        auto device = std::make_shared<Device>(std::make_shared<Radio>(std::move(air), family, link, master_clock_hz, typical), referenced(address));
        if (family.heeds_clock_source) {
            for (const std::string kind : {"clock_source", "time_source"}) {
                if (!address.has_key(kind)) continue;
                device->get_tree()->access<std::string>("/mboards/0/" + kind + "/value").set(address[kind]);
            }
        }
        if (clock_source) device->get_tree()->access<std::string>("/mboards/0/clock_source/value").set(*clock_source);
        made_[{air_name, serial}] = device;
        return device;
    }

private:
    // Another program may have taken what was on offer meanwhile: one that named no serial number gets the next.
    Air join(const std::string& air_name, const AirOptions& options, const std::string& asked) {
        std::string serial = asked;
        for (std::size_t i = 1;; ++i) {
            try {
                return Air::join(air_name, options, serial);
            } catch (const InUse&) {
                if (offered_.count({air_name, asked}) == 0 || i > kDevices) throw;
                serial = serial_number(i);
            }
        }
    }

    using Name = std::pair<std::string, std::string>;  // of the air and the device
    std::mutex mutex_;
    std::map<Name, std::weak_ptr<Device>> made_;
    std::set<Name> offered_;
};

Ledger& ledger() {
    static Ledger one;
    return one;
}

// What a program that looks for devices is told; a family's product and name as a device of it would tell them.
device_addr_t address_of(const device_addr_t& hint, const std::string& air, const std::string& serial) {
    device_addr_t address;
    address["type"] = "vusrp";
    address["air"] = air;
    address["serial"] = serial;
    const std::string name = hint.get("profile", "ideal");
    const auto known = profile_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) return address;
    if (name == "ideal") return address;
    address["profile"] = name;
    address["name"] = air;
    if (const Profile& family = profile(name); !family.product.empty()) address["product"] = family.product;
    return address;
}

device_addrs_t find(const device_addr_t& hint) {
    if (asks_for_others(hint)) return {};
    const std::string air = hint.get("air", kDefaultAir);
    if (hint.has_key("serial")) {
        ledger().name(air, hint["serial"]);
        return {address_of(hint, air, hint["serial"])};
    }
    device_addrs_t found;
    for (const std::string& serial : ledger().offer(air)) found.push_back(address_of(hint, air, serial));
    return found;
}

uhd::device::sptr make(const device_addr_t& address) {
    try {
        return ledger().make(address);
    } catch (const AirError& error) {
        throw uhd::runtime_error(error.what());
    }
}

}  // namespace
}  // namespace fadelab

// UHD's classes differ between its versions, so a module that was built with another one must not be used.
UHD_STATIC_BLOCK(register_vusrp) {
    if (uhd::get_abi_string() != UHD_VERSION_ABI_STRING) {
        UHD_LOG_ERROR("VUSRP", "built for UHD " UHD_VERSION_ABI_STRING " and loaded by UHD " << uhd::get_abi_string()
                                                                                            << ": build it again");
        return;
    }
    uhd::device::register_device(&fadelab::find, &fadelab::make, uhd::device::USRP);
}
