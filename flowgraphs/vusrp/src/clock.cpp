#include "clock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <ctime>

namespace fadelab {
namespace {

// What arithmetic may leave of a tick that is meant to be whole; a nanosecond is the finest time given.
constexpr long double kRounding = 1e-4L;

long futex(Word& word, int operation, std::uint32_t value, const timespec* timeout) {
    return syscall(SYS_futex, &word, operation, value, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

std::int64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kSecond_ns + now.tv_nsec;
}

void wait(Word& word, std::uint32_t seen, std::int64_t deadline_ns) {
    if (deadline_ns <= 0) return;
    const timespec deadline{static_cast<time_t>(deadline_ns / kSecond_ns), static_cast<long>(deadline_ns % kSecond_ns)};
    futex(word, FUTEX_WAIT_BITSET, seen, deadline_ns == kNever ? nullptr : &deadline);
}

void wake(Word& word) {
    word.fetch_add(1);
    futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

std::int64_t Grid::last_tick_at(std::int64_t ns) const {
    return static_cast<std::int64_t>(std::floor(ns * ticks_per_ns() + kRounding));
}

std::int64_t Grid::first_tick_at(std::int64_t ns) const {
    return static_cast<std::int64_t>(std::ceil(ns * ticks_per_ns() - kRounding));
}

std::int64_t Grid::ns_of(std::int64_t tick) const {
    return static_cast<std::int64_t>(std::ceil(tick / ticks_per_ns() - kRounding));
}

}  // namespace fadelab
