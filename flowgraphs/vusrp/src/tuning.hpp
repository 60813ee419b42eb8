// A channel's frequency, gain and corrections over time, in shared memory: what any process needs to mix samples of the past.

#pragma once

#include <cstdint>
#include <optional>

#include "layout.hpp"

namespace fadelab {

// Writes it, for the device. Changes are carried out in the order they are given, as from a queue of commands: one
// without a time waits for those before it.
class Tuner {
public:
    Tuner(Tunings& tunings, double freq_hz, double gain_db, double full_scale_dbm, std::int64_t now_ns);

    void set_freq_hz(double freq_hz, std::int64_t at_ns);
    void set_gain_db(double gain_db, double full_scale_dbm, std::int64_t at_ns);
    void set_correction(Sample balance, Sample offset, std::int64_t at_ns);
    // When there will be room for another change.
    std::int64_t room_ns() const;

private:
    Tuning newest() const;
    void append(Tuning tuning, std::int64_t at_ns);

    Tunings& tunings_;
};

// What holds at a moment, and until when (kNever: no change is known).
struct Tuned {
    double freq_hz = 0.0;
    double gain_db = 0.0;
    double full_scale_dbm = 0.0;
    Sample balance;
    Sample offset;
    std::int64_t until_ns = kNever;
};
Tuned tuned_at(const Tunings& tunings, std::int64_t ns);

// Corrects samples, as the FPGAs do (fpga/usrp3/lib/dsp/tx_frontend_gen3.v and rx_frontend_gen3.v).
inline void balance(Sample by, std::size_t n, Sample* samples) {
    if (by == Sample()) return;
    for (std::size_t i = 0; i < n; ++i) samples[i] += samples[i].real() * by;
}

// The last change of the gain before a moment, or at it.
struct GainStep {
    std::int64_t at_ns;
    double full_scale_before_dbm;
};
std::optional<GainStep> gain_step_at(const Tunings& tunings, std::int64_t ns);

}  // namespace fadelab
