// A directed path: from a transmitter's samples to what a receiver hears of it.
//
// Per tap: delay, then gain (constant, fading, or followed from a series). The taps' sum is rotated by the frequency
// offset, scaled, and added to what the receiver already hears. See README.md for the equations and their errors.
//
// Rules kept here:
//
// - All is a function of (options, ends, seed, receiver tick). In which pieces a receiver asks changes no bit.
// - Receiver tick r of a clock that is `ppm` fast lies at air time r / (rate (1 + ppm 1e-6)); so does a transmitter's.
// - The carrier's phase turns with frequency and time only. The constant phase that a delay gives it is left out: a
//   tap's `phase_rad` is its phase.
//
// Left out: stretching of the waveform by Doppler, which is far below a sample per frame; antennas and polarisation.

#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "medium/options.hpp"
#include "medium/source.hpp"
#include "medium/wander.hpp"

namespace fadelab::medium {

// What the radios at the two ends of a path bring.
struct Ends {
    double rate_sps = 1e6;        // nominal, the same at both
    double freq_offset_hz = 0.0;  // transmitter's minus receiver's frequency, errors of both clocks included
    double tx_ppm = 0.0;          // clocks against air time
    double rx_ppm = 0.0;
    double scale = 1.0;  // amplitude, besides the path's gain: transmitter full scale over receiver full scale
};

// Ticks [first, end).
struct TickRange {
    std::int64_t first = 0;
    std::int64_t end = 0;
};

class Path {
public:
    // Throws std::invalid_argument for options `validate` refuses, std::runtime_error when the series cannot be used.
    // `seed` tells this path from the others of the air; `wander` comes on top of the clocks' constant errors.
    Path(const LinkOptions& options, const Ends& ends, std::uint64_t seed, const Wander& wander = {});
    ~Path();
    Path(Path&&) noexcept;
    Path& operator=(Path&&) noexcept;

    // Adds what is heard at receiver ticks [rx_tick, rx_tick + n) to acc[0 ... n). Not to be called from two threads at
    // once.
    void mix(Source& source, std::int64_t rx_tick, std::size_t n, std::complex<float>* acc);

    // Returns the transmitter ticks that `mix` of the same receiver ticks looks at. With a delay between samples
    // they reach half an interpolator beyond the last one heard: a receiver waits until those are known.
    TickRange needs(std::int64_t rx_tick, std::size_t n) const;

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace fadelab::medium
