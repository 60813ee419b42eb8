// Time of an air: nanoseconds since it began, the grid that samples lie on, and waiting for a moment.
//
// Read first: futex(2), clock_gettime(2).
//
// Rules kept here:
//
// - Sample k of a stream lies at k / rate since the air began, so equal rates give delays of whole samples.
// - Nobody spins: who waits sleeps on a word that is changed when something has happened, up to a deadline.

#pragma once

#include <atomic>
#include <cstdint>

namespace fadelab {

constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kSecond_ns = 1'000'000'000;

// CLOCK_MONOTONIC.
std::int64_t monotonic_ns();

// A word to sleep on. Read it, look whether there is a reason to sleep, then wait for the value read.
using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free);

// Sleeps until `word` is no longer `seen`, it is woken, or CLOCK_MONOTONIC reaches the deadline.
void wait(Word& word, std::uint32_t seen, std::int64_t deadline_ns);

// Changes `word` and wakes all who sleep on it, in every process.
void wake(Word& word);

// The grid of a stream of samples: tick k of a clock that is `ppm` fast lies at k / (rate (1 + ppm 1e-6)).
struct Grid {
    double rate_sps = 1e6;
    double ppm = 0.0;

    long double ticks_per_ns() const { return static_cast<long double>(rate_sps) * (1.0L + ppm * 1e-6L) / kSecond_ns; }
    std::int64_t last_tick_at(std::int64_t ns) const;   // the last one that is not later
    std::int64_t first_tick_at(std::int64_t ns) const;  // the first one that is not earlier
    std::int64_t ns_of(std::int64_t tick) const;        // rounded up

    bool operator==(const Grid& other) const { return rate_sps == other.rate_sps && ppm == other.ppm; }
    bool operator!=(const Grid& other) const { return !(*this == other); }
};

}  // namespace fadelab
