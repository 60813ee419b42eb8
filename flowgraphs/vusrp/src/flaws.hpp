// The stages of a device's radio that its impairments ask for, in the order in which a signal meets them.
//
// Transmitting: steps of the converter, IQ imbalance, spur, amplifier and its ramp, the oscillator's wandering. The
// carrier's leakage is there between bursts too, so that receivers add it (antenna.hpp). Receiving, in units of full
// scale: wandering, filters, IQ imbalance, DC offset, spur, clipping and steps of the converter.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "medium/impairments.hpp"
#include "medium/rotation.hpp"
#include "medium/stages.hpp"
#include "tuning.hpp"

namespace fadelab {

struct Origin {
    std::uint64_t air_seed;
    std::string serial;
    std::size_t channel;

    std::uint64_t device_seed() const;
    std::uint64_t oscillator_seed(bool tx) const;  // of a direction
    std::uint64_t chain_seed(bool tx) const;       // of a channel
};

class TxFlaws {
public:
    // Nothing where a transmitter is perfect.
    static std::optional<TxFlaws> of(const medium::Impairments& impairments, double rate_sps, const Origin& origin);

    // Samples at ticks [tick, tick + n) of a burst that began at `start_tick`.
    void apply(const Grid& grid, std::int64_t tick, std::int64_t start_tick, const Tunings& tunings, std::size_t n,
               Sample* samples);

private:
    TxFlaws(const medium::Impairments& impairments, double rate_sps, const Origin& origin);

    medium::Converter converter_;
    medium::Imbalance imbalance_;
    medium::Tones tones_;
    medium::Amplifier amplifier_;
    std::optional<medium::Rotation> rotation_;
};

class RxFlaws {
public:
    static std::optional<RxFlaws> of(const medium::Impairments& impairments, double rate_sps, const Origin& origin);

    // How many samples on either side `apply` looks at.
    std::size_t reach() const { return filter_.none() ? 0 : medium::Filter::kReach; }
    // Takes samples from tick - reach() on, so many more on either side, and leaves those at ticks [tick, tick + n) at the
    // beginning. `beyond`: power, at the samples taken, of what lies beyond the sample rate; empty: nothing does.
    void apply(std::int64_t tick, double freq_hz, std::size_t n, const std::vector<float>& beyond, Sample* samples);

private:
    RxFlaws(const medium::Impairments& impairments, double rate_sps, const Origin& origin);

    std::optional<medium::Rotation> rotation_;
    medium::Filter filter_;
    medium::Imbalance imbalance_;
    medium::Tones tones_;
    medium::Converter converter_;
};

}  // namespace fadelab
