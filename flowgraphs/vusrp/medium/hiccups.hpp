// Moments in which a host or link loses what a device has received, a function of (seed, time).

#pragma once

#include <algorithm>
#include <cstdint>

#include "medium/impairments.hpp"
#include "medium/random.hpp"

namespace fadelab::medium {

class Hiccups {
public:
    Hiccups() = default;
    Hiccups(const Impairments& impairments, std::uint64_t seed)
        : key_(hash(seed, "hiccups")),
          chance_(impairments.hiccups_hz * kSlot_ns * 1e-9),
          long_ns_(static_cast<std::int64_t>(impairments.hiccup_ms * 1e6)) {}

    bool none() const { return chance_ == 0.0; }

    // How much is lost from `end_ns` on because a hiccup begins in [begin_ns, end_ns); 0: none does.
    std::int64_t lost_ns(std::int64_t begin_ns, std::int64_t end_ns) const {
        if (none()) return 0;
        for (std::int64_t slot = begin_ns / kSlot_ns; slot * kSlot_ns < end_ns; ++slot) {
            Generator generator(hash(key_, static_cast<std::uint64_t>(slot)));
            if (generator.uniform() >= chance_) continue;
            const auto at_ns = slot * kSlot_ns + static_cast<std::int64_t>(generator.uniform() * kSlot_ns);
            if (at_ns >= begin_ns && at_ns < end_ns) return std::max<std::int64_t>(long_ns_, 1);
        }
        return 0;
    }

private:
    static constexpr std::int64_t kSlot_ns = 100'000'000;  // has one or none

    std::uint64_t key_ = 0;
    double chance_ = 0.0;
    std::int64_t long_ns_ = 0;
};

}  // namespace fadelab::medium
