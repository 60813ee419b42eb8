#include "tuning.hpp"

#include <algorithm>

namespace fadelab {
namespace {

// Changes that are not carried out yet, as in a device's queue of commands; older ones stay for receivers that lag.
constexpr std::uint64_t kQueued = kTunings / 2;

}  // namespace

Tuner::Tuner(Tunings& tunings, double freq_hz, double gain_db, double full_scale_dbm, std::int64_t now_ns)
    : tunings_(tunings) {
    append({0, freq_hz, gain_db, full_scale_dbm, {}, {}}, now_ns);
}

void Tuner::set_freq_hz(double freq_hz, std::int64_t at_ns) {
    Tuning tuning = newest();
    tuning.freq_hz = freq_hz;
    append(tuning, at_ns);
}

void Tuner::set_gain_db(double gain_db, double full_scale_dbm, std::int64_t at_ns) {
    Tuning tuning = newest();
    tuning.gain_db = gain_db;
    tuning.full_scale_dbm = full_scale_dbm;
    append(tuning, at_ns);
}

void Tuner::set_correction(Sample balance, Sample offset, std::int64_t at_ns) {
    Tuning tuning = newest();
    tuning.balance = balance;
    tuning.offset = offset;
    append(tuning, at_ns);
}

std::int64_t Tuner::room_ns() const {
    const std::uint64_t count = tunings_.count;
    return count < kQueued ? 0 : tunings_.ring[(count - kQueued) % kTunings].at_ns;
}

void Tuner::append(Tuning tuning, std::int64_t at_ns) {
    const std::uint64_t count = tunings_.count;
    tuning.at_ns = count == 0 ? at_ns : std::max(at_ns, tunings_.ring[(count - 1) % kTunings].at_ns);
    tunings_.ring[count % kTunings] = tuning;
    tunings_.count.store(count + 1, std::memory_order_release);
}

Tuning Tuner::newest() const { return tunings_.ring[(tunings_.count - 1) % kTunings]; }

Tuned tuned_at(const Tunings& tunings, std::int64_t ns) {
    const std::uint64_t count = tunings.count.load(std::memory_order_acquire);
    const std::uint64_t oldest = count > kTunings ? count - kTunings + 1 : 0;
    Tuned found;
    for (std::uint64_t i = count; i-- > oldest;) {
        const Tuning& tuning = tunings.ring[i % kTunings];
        found.freq_hz = tuning.freq_hz;
        found.gain_db = tuning.gain_db;
        found.full_scale_dbm = tuning.full_scale_dbm;
        found.balance = tuning.balance;
        found.offset = tuning.offset;
        if (tuning.at_ns <= ns) break;
        found.until_ns = tuning.at_ns;
    }
    return found;
}

std::optional<GainStep> gain_step_at(const Tunings& tunings, std::int64_t ns) {
    const std::uint64_t count = tunings.count.load(std::memory_order_acquire);
    const std::uint64_t oldest = count > kTunings ? count - kTunings + 1 : 0;
    const Tuning* after = nullptr;
    for (std::uint64_t i = count; i-- > oldest;) {
        const Tuning& tuning = tunings.ring[i % kTunings];
        if (tuning.at_ns > ns) continue;
        if (after != nullptr && tuning.full_scale_dbm != after->full_scale_dbm) {
            return GainStep{after->at_ns, tuning.full_scale_dbm};
        }
        after = &tuning;
    }
    return std::nullopt;
}

}  // namespace fadelab
