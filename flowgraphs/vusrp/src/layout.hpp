// The layout of an air in shared memory. Plain data and atomics; what may be done with it is in air.hpp.
//
// Rules kept here:
//
// - Nothing points anywhere; times and ticks are counted from the air's beginning.
// - Counts only grow: entry i of a ring of size N lies at i % N, so that a reader can tell what has been overwritten.
// - What a killed process leaves is whole: an entry is written first and counted, or marked as used, afterwards.

#pragma once

#include <pthread.h>

#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

#include "clock.hpp"
#include "medium/impairments.hpp"
#include "medium/options.hpp"
#include "process.hpp"

namespace fadelab {

constexpr std::uint64_t kMagic = 0x72696162616c6566u;  // "felabair"
constexpr std::uint32_t kVersion = 7;

constexpr std::size_t kDevices = 8;
constexpr std::size_t kChannels = 4;  // of each direction of a device, at most
constexpr std::size_t kNameBytes = 32;
constexpr std::size_t kPortBytes = kNameBytes + 4;
constexpr std::size_t kRingSamples = std::size_t{1} << 21;  // of a transmitting channel
constexpr std::size_t kSegments = 4096;
constexpr std::size_t kTunings = 1024;
constexpr std::size_t kLinks = 256;
constexpr std::size_t kPorts = 64;  // entries for one receiver, or one device
constexpr std::size_t kPage = 4096;

constexpr std::int64_t kIdle = kNever - 1;

using Sample = std::complex<float>;
using Count = std::atomic<std::uint64_t>;
static_assert(Count::is_always_lock_free);

// Contiguous samples on the air.
struct Segment {
    std::int64_t start_tick;  // on its grid, not before the end of the segment before
    std::uint64_t first;      // the first sample's count since the channel was made
    double rate_sps;
    double ppm;
    std::atomic<std::int64_t> length;  // grows while samples come
};

// A frequency, gain and corrections of I and Q that hold from a moment on.
struct Tuning {
    std::int64_t at_ns;  // not before the entry before
    double freq_hz;
    double gain_db;
    double full_scale_dbm;  // of a sample of amplitude 1 at this gain, at the antenna
    Sample balance;         // its parts times I are added to I and Q
    Sample offset;          // a transmitter adds it, a receiver takes it away before
};

struct Tunings {
    Count count;
    Tuning ring[kTunings];
};

struct TxChannel {
    Count written;   // samples
    Count segments;  // of the ring below
    std::atomic<std::int64_t> first_ns;  // when the owner's first one begins; kNever: there was none yet
    Segment ring[kSegments];
    Tunings tunings;
    std::atomic<std::int64_t> open_until_ns;  // lockstep: end of what a burst that goes on has; kNever: none does
};

struct RxChannel {
    Tunings tunings;
    // Lockstep: when a stream's next sample is; kIdle: it is not active; kNever: none.
    std::atomic<std::int64_t> next_ns;
};

// In pages of its own, so that a process can give it up for good.
struct alignas(kPage) Slot {
    Process owner;
    char serial[kNameBytes];
    std::atomic<std::uint32_t> channels;  // of each direction
    std::atomic<std::uint32_t> disciplined;  // by an external reference: its oscillator does not wander
    std::int64_t released_ns;  // CLOCK_MONOTONIC
    medium::Impairments impairments;  // its own, unless the configuration has others for it
    std::atomic<double> ppm;          // of its clock
    TxChannel tx[kChannels];
    RxChannel rx[kChannels];
};

// An entry of the configuration, for ports "*", "V1" or "V1:0"; `tx` is empty where only a receiver or device is meant.
template <typename Value>
struct Entry {
    Count order;  // tells the newer of two for the same ports; 0: not in use
    char tx[kPortBytes];
    char rx[kPortBytes];
    Value value;
};

// Writes a name into its field, cut to what fits.
template <std::size_t kSize>
void put(char (&field)[kSize], const std::string& name) {
    field[name.copy(field, kSize - 1)] = '\0';
}

// A recording that a receiver hears as from a transmitter of its own.
struct Interferer {
    char path[medium::kSeriesPathBytes];  // absolute; empty: none
    double rate_sps;
    double freq_hz;
    double level_dbm;  // of its full scale, at the receiver's input
};

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t lockstep;  // 0: realtime
    std::uint64_t seed;
    std::uint32_t wait_streams;  // lockstep: time stands still until so many bursts have begun
    std::uint32_t kept;          // stays without any device, as long as its keeper lives
    Process keeper;              // pid 0: for good
    std::int64_t epoch_ns;       // CLOCK_MONOTONIC when the air began

    pthread_mutex_t mutex;  // robust, and inherits priority; guards who owns what, the configuration's writers and lockstep's time
    std::uint32_t removed;  // its name is gone: whoever has just opened it opens it again
    Count changes;          // of owners and configuration
    std::uint64_t orders;

    // Lockstep's time, and what it depends on; `events` changes when any of it has.
    std::atomic<std::int64_t> now_ns;
    std::atomic<std::int64_t> lead_ns;    // how far receivers run ahead of now, at most
    std::atomic<std::uint32_t> bursts;    // begun so far, up to wait_streams
    std::atomic<std::uint32_t> received;  // a receive stream has been active
    Word events;

    Entry<medium::LinkOptions> links[kLinks];
    Entry<double> noise_dbm_hz[kPorts];
    Entry<Interferer> interferers[kPorts];
    Entry<double> clock_offsets_ppm[kPorts];
    Entry<medium::Impairments> impairments[kPorts];
    Slot slots[kDevices];
};

}  // namespace fadelab
