// The C functions of include/fadelab_air.h: Air, with errors as return values.

#include <cstddef>
#include <cstring>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "air.hpp"
#include "fadelab_air.h"
#include "tuning.hpp"

struct fadelab_air {
    fadelab::Air air;
};

namespace {

using fadelab::Air;
using fadelab::medium::LinkOptions;

static_assert(sizeof(fadelab_link) == sizeof(LinkOptions) && sizeof(fadelab_tap) == sizeof(fadelab::medium::Tap));
static_assert(offsetof(fadelab_link, taps) == offsetof(LinkOptions, taps));
static_assert(offsetof(fadelab_link, series_path) == offsetof(LinkOptions, series_path));
static_assert(sizeof(fadelab_impairments) == sizeof(fadelab::medium::Impairments));
static_assert(offsetof(fadelab_impairments, unplug_s) == offsetof(fadelab::medium::Impairments, unplug_s));
static_assert(sizeof(fadelab_interferer) == sizeof(fadelab::Interferer));
static_assert(sizeof(fadelab_device::serial) == fadelab::kNameBytes);

thread_local std::string error;

// Runs `action`; returns its value, or `otherwise` after an exception.
template <typename Action, typename Value>
Value guarded(Value otherwise, Action action) {
    try {
        return action();
    } catch (const std::exception& caught) {
        error = caught.what();
        return otherwise;
    }
}

template <typename Action>
int done(Action action) {
    return guarded(-1, [&] {
        action();
        return 0;
    });
}

template <typename Value>
std::optional<Value> asked(std::int64_t value) {
    return value < 0 ? std::nullopt : std::optional<Value>(static_cast<Value>(value));
}

fadelab_tuning tuning(const fadelab::Tunings& tunings, std::int64_t now_ns) {
    const fadelab::Tuned tuned = fadelab::tuned_at(tunings, now_ns);
    return {tuned.freq_hz, tuned.gain_db, tuned.full_scale_dbm};
}

}  // namespace

const char* fadelab_air_error(void) { return error.c_str(); }

void fadelab_air_sizes(uint64_t sizes[5]) {
    sizes[0] = sizeof(fadelab_link);
    sizes[1] = sizeof(fadelab_interferer);
    sizes[2] = sizeof(fadelab_device);
    sizes[3] = sizeof(fadelab_air_options);
    sizes[4] = sizeof(fadelab_impairments);
}

fadelab_air* fadelab_air_create(const char* name, const fadelab_air_options* options, int keep) {
    return guarded(static_cast<fadelab_air*>(nullptr), [&] {
        fadelab::AirOptions wanted;
        wanted.lockstep = asked<bool>(options->lockstep);
        wanted.seed = asked<std::uint64_t>(options->seed);
        wanted.wait_streams = asked<std::uint32_t>(options->wait_streams);
        return new fadelab_air{Air::open_or_create(name, wanted, static_cast<fadelab::Keep>(keep))};
    });
}

fadelab_air* fadelab_air_open(const char* name) {
    return guarded(static_cast<fadelab_air*>(nullptr), [&] {
        auto air = Air::open(name);
        if (!air) throw fadelab::AirError("there is no air '" + std::string(name) + "'");
        return new fadelab_air{std::move(*air)};
    });
}

void fadelab_air_close(fadelab_air* air) { delete air; }

int fadelab_air_remove(const char* name) {
    return guarded(-1, [&] { return Air::remove(name) ? 1 : 0; });
}

int fadelab_air_abandoned(const char* name) {
    return guarded(-1, [&] { return Air::abandoned(name) ? 1 : 0; });
}

int64_t fadelab_air_now_ns(const fadelab_air* air) { return air->air.now_ns(); }

int fadelab_air_lockstep(const fadelab_air* air) { return air->air.lockstep(); }

uint64_t fadelab_air_seed(const fadelab_air* air) { return air->air.seed(); }

int fadelab_air_devices(fadelab_air* air, fadelab_device* devices, int room) {
    return guarded(-1, [&] {
        air->air.reap();
        const std::int64_t now_ns = air->air.now_ns();
        int count = 0;
        for (std::size_t i = 0; i < fadelab::kDevices; ++i) {
            const fadelab::Slot& slot = air->air.header().slots[i];
            const fadelab::Air::Occupant occupant = air->air.occupant(i);
            if (occupant.owner.pid == 0 || count == room) continue;
            fadelab_device& device = devices[count++];
            device.serial[occupant.serial.copy(device.serial, sizeof device.serial - 1)] = '\0';
            device.pid = occupant.owner.pid;
            device.clock_offset_ppm = air->air.clock_offset_ppm(occupant.serial);
            for (std::size_t channel = 0; channel < std::size(device.tx); ++channel) {
                device.tx[channel] = device.rx[channel] = fadelab_tuning{};
                if (channel >= slot.channels) continue;
                device.tx[channel] = tuning(slot.tx[channel].tunings, now_ns);
                device.rx[channel] = tuning(slot.rx[channel].tunings, now_ns);
            }
        }
        return count;
    });
}

int fadelab_air_set_link(fadelab_air* air, const char* tx, const char* rx, const fadelab_link* link) {
    return done([&] {
        LinkOptions options;
        std::memcpy(static_cast<void*>(&options), link, sizeof options);
        air->air.set_link(tx, rx, options);
    });
}

int fadelab_air_link(fadelab_air* air, const char* tx, const char* rx, fadelab_link* link) {
    return done([&] {
        const LinkOptions options = air->air.link(tx, rx);
        std::memcpy(link, &options, sizeof options);
    });
}

int fadelab_air_set_noise_dbm_hz(fadelab_air* air, const char* rx, double dbm_hz) {
    return done([&] { air->air.set_noise_dbm_hz(rx, dbm_hz); });
}

int fadelab_air_noise_dbm_hz(fadelab_air* air, const char* rx, double* dbm_hz) {
    return done([&] { *dbm_hz = air->air.noise_dbm_hz(rx); });
}

int fadelab_air_set_interferer(fadelab_air* air, const char* rx, const fadelab_interferer* interferer) {
    return done([&] {
        fadelab::Interferer wanted;
        std::memcpy(&wanted, interferer, sizeof wanted);
        air->air.set_interferer(rx, wanted);
    });
}

int fadelab_air_set_impairments(fadelab_air* air, const char* serial, const fadelab_impairments* impairments) {
    return done([&] {
        std::optional<fadelab::medium::Impairments> wanted;
        if (impairments != nullptr) std::memcpy(static_cast<void*>(&wanted.emplace()), impairments, sizeof *impairments);
        air->air.set_impairments(serial, wanted);
    });
}

int fadelab_air_impairments(fadelab_air* air, const char* serial, fadelab_impairments* impairments) {
    return done([&] {
        const fadelab::medium::Impairments found = air->air.impairments(serial);
        std::memcpy(impairments, &found, sizeof found);
    });
}

int fadelab_air_set_clock_offset_ppm(fadelab_air* air, const char* serial, double ppm) {
    return done([&] { air->air.set_clock_offset_ppm(serial, ppm); });
}

int fadelab_air_clock_offset_ppm(fadelab_air* air, const char* serial, double* ppm) {
    return done([&] { *ppm = air->air.clock_offset_ppm(serial); });
}
