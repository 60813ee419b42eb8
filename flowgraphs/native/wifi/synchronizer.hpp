// Finds IEEE 802.11 OFDM frames in a stream of samples and takes them apart into OFDM symbols.
//
// Read first: IEEE 802.11-2016, 17.3.3 (the preamble) and 17.3.2.5 (symbols); T. M. Schmidl, D. C. Cox, "Robust frequency
// and timing synchronization for OFDM", IEEE Trans. Commun. 1997.
//
// A frame is 160 samples of short training (ten times the same 16), 160 of long training (a guard of 32, twice the same
// 64), then symbols of 80 (a guard of 16, then 64). It is looked for in three steps, each in what the one before let by:
//
// 1. samples 16 apart are alike over 96 of them, looked at every 16 samples: the short training;
// 2. the best two peaks, 64 apart, of the correlation with the long training: the timing;
// 3. samples 64 apart are alike there.
//
// Rules kept: what is found does not depend on how the samples were cut into calls of `feed`: work is done in blocks that
// lie on a fixed grid. A new preamble ends the frame before it. The channel's phase is taken out of every carrier, since
// gr-ieee802-11's equalizer adds up the four pilots before it knows the channel.
//
// Left out: the frame's length. It stands in the SIGNAL field, which the decoder reads; symbols go on until the longest
// frame would have ended. A steady carrier 8 dB stronger than a frame hides it.

#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "../ofdm/liquid.hpp"

namespace gr::fadelab::wifi {

using Sample = std::complex<float>;

constexpr std::size_t kCarriers = 64;
constexpr std::size_t kGuard = 16;
constexpr std::size_t kSymbolSamples = kCarriers + kGuard;
// Short and long training.
constexpr std::size_t kPreambleSamples = 320;
// Symbols after the long training: SIGNAL and the 511 of the longest frame that gr-ieee802-11 decodes.
constexpr std::size_t kMaxSymbols = 512;

// The long training on carriers -32 to 31 (IEEE 802.11-2016, equation 17-8).
const std::array<float, kCarriers>& long_training();

// Where a frame begins and how it is heard.
struct Preamble {
    std::int64_t sample = 0;  // index of its first sample in the stream, on its strongest path
    double cfo = 0.0;         // carrier frequency offset, radians per sample
    double power = 0.0;       // mean of |x|^2 over the preamble
    double snr = 0.0;         // signal to noise per sample, as a ratio; 0 when the noise is all there is
};

// OFDM symbols in order, of kCarriers each, carriers -32 to 31. A frame's first two are its long training, the third is
// SIGNAL.
struct Symbols {
    std::vector<Sample> carriers;
    std::vector<std::pair<std::size_t, Preamble>> beginnings;  // the symbols with which frames begin

    std::size_t count() const { return carriers.size() / kCarriers; }
    void clear() {
        carriers.clear();
        beginnings.clear();
    }
};

class Synchronizer {
public:
    Synchronizer();

    // Takes the next samples, and adds the symbols that are complete by now.
    void feed(const Sample* samples, std::size_t count, Symbols& found);
    // The next sample does not follow the last one: frames end there, and no preamble lies across.
    void gap() { gaps_.push_back(start_ + static_cast<std::int64_t>(filled_)); }
    // How many samples are missing until more may be found.
    std::size_t missing() const { return buffer_.size() - filled_; }

private:
    using Phasor = std::complex<double>;

    // A frame that is being received.
    struct Frame {
        std::int64_t at = 0;  // where its long training begins in the stream
        double cfo = 0.0;
        std::size_t taken = 0;
        std::array<Sample, kCarriers> within{};  // takes the offset out of a symbol's samples
        std::array<Sample, kCarriers> turn{};    // the channel's phase, to be taken out
    };
    // Where a long training begins in the buffer, and the frequency offset.
    struct Timing {
        std::size_t first;
        double cfo;
    };

    void work(Symbols& found);
    void measure(std::size_t from);
    std::optional<Timing> long_training_after(std::size_t at);
    void begin(const Timing& timing, Symbols& found);
    void take(std::int64_t end, Symbols& found);
    void pass_gaps(std::int64_t until, Symbols& found);
    void transform(std::size_t first, std::size_t offset, Sample* carriers);

    std::vector<Sample> buffer_;
    std::size_t filled_;
    std::int64_t start_;       // index in the stream of the buffer's first sample; before the stream there is silence
    std::int64_t cursor_ = 0;  // where in the stream to look on
    std::deque<std::int64_t> gaps_;  // ahead: the first samples behind them
    std::vector<Phasor> products_;  // of every period of 16 samples with the one before
    std::vector<double> energies_;  // of every period
    std::vector<Phasor> alike_;     // the products over the window
    std::vector<Sample> derotated_;
    std::vector<float> peaks_;
    std::optional<Frame> frame_;
    std::array<Sample, kCarriers> time_{};
    std::array<Sample, kCarriers> frequency_{};
    ofdm::Owned<fftplan, fft_destroy_plan> fft_;
};

}  // namespace gr::fadelab::wifi
