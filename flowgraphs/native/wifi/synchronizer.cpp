#include "synchronizer.hpp"

#include <volk/volk.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>

#include "../ofdm/arithmetic.hpp"

namespace gr::fadelab::wifi {

namespace {

constexpr std::size_t kPeriod = 16;
constexpr std::size_t kWindow = 6;
// Least likeness of samples 16 and 64 apart: S/(S+N) of the weakest frame, -1 dB, less what the estimate scatters.
constexpr double kLikeness = 0.35;
// Least share of the long training's energy in the best peaks; what is no preamble stays below 0.1.
constexpr double kPeak = 0.12;
// Where the long training is looked for, from where the short one was noticed, and where to look on if it is not there.
constexpr std::size_t kSearchFrom = 128;
constexpr std::size_t kSearchTo = 304;
constexpr std::int64_t kSearchStep = 128;
// So much further a better place is looked for, in the frame of a later look: the guard before a long training and the
// training's first symbol are alike, too, and would pass for a weaker one. A carrier leak between frames makes looks this
// early.
constexpr std::size_t kBeyond = kCarriers;
// Symbols are cut this early, into their guard, so that paths before the strongest do no harm.
constexpr std::size_t kEarly = 3;
// So much of the guard before the long training is like it too.
constexpr std::size_t kBefore = kGuard + kEarly;
// Samples worked on at a time, those kept from before, and those that must follow where a frame is noticed.
constexpr std::size_t kBlock = 2048;
constexpr std::size_t kHistory = 576;
constexpr std::size_t kLookahead = kSearchTo + kBeyond + 2 * kCarriers;

constexpr std::size_t kPeriods = (kHistory + kBlock) / kPeriod;
// Those that frames may be noticed in: the ones before were, in the block before, and the last ones will be.
constexpr std::size_t kLastPeriod = (kHistory + kBlock - kLookahead) / kPeriod;
constexpr std::size_t kFirstPeriod = kLastPeriod - kBlock / kPeriod;
static_assert(kFirstPeriod * kPeriod + kSearchFrom + 2 * kCarriers >= kPreambleSamples);
// Samples with the frequency offset taken out, and the places of peaks in them.
constexpr std::size_t kSearched = kLookahead - kSearchFrom + kBefore;
constexpr std::size_t kPlaces = kSearched - kBefore - kCarriers + 1;

// What stands for no noise at all.
constexpr double kTiny = 1e-30;

std::complex<double> phasor(double phase) {
    return {std::cos(phase), std::sin(phase)};
}

// Of a times the conjugate of b.
Sample dot(const Sample* a, const Sample* b, std::size_t count) {
    Sample sum;
    volk_32fc_x2_conjugate_dot_prod_32fc(&sum, a, b, static_cast<unsigned>(count));
    return sum;
}

double energy(const Sample* samples, std::size_t count) {
    const auto* parts = reinterpret_cast<const float*>(samples);
    float sum = 0.0F;
    volk_32f_x2_dot_prod_32f(&sum, parts, parts, static_cast<unsigned>(2 * count));
    return static_cast<double>(sum);
}

// The long training's samples, of energy 1.
std::array<Sample, kCarriers> make_template() {
    std::array<Sample, kCarriers> samples{};
    const double scale = 1.0 / std::sqrt(52.0 * kCarriers);
    for (std::size_t i = 0; i < kCarriers; ++i) {
        std::complex<double> sum;
        for (std::size_t at = 0; at < kCarriers; ++at) {
            const double carrier = static_cast<double>(at) - kCarriers / 2.0;
            const auto value = static_cast<double>(long_training()[at]);
            sum += value * phasor(2.0 * M_PI * carrier * static_cast<double>(i) / kCarriers);
        }
        samples[i] = Sample(sum * scale);
    }
    return samples;
}

const std::array<Sample, kCarriers>& training_template() {
    static const std::array<Sample, kCarriers> samples = make_template();
    return samples;
}

// The ratio of signal to noise per sample from the two symbols of the long training.
double snr_of(const Sample* first, const Sample* second) {
    double same = 0.0;
    double different = 0.0;
    double used = 0.0;
    for (std::size_t at = 0; at < kCarriers; ++at) {
        if (long_training()[at] != 0.0F) {
            same += static_cast<double>(std::norm(first[at] + second[at]));
            different += static_cast<double>(std::norm(first[at] - second[at]));
            used += 1.0;
        }
    }
    // same is 4 S + 2 N on every carrier, different 2 N
    return std::max((same / std::max(different, kTiny) - 1.0) / 2.0, 0.0) * used / kCarriers;
}

}  // namespace

const std::array<float, kCarriers>& long_training() {
    static const std::array<float, kCarriers> carriers{
        0, 0, 0, 0, 0, 0,                                                                                   // -32
        1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1,               // -26
        0,                                                                                                  // 0
        1, -1, -1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1, -1, 1, 1, -1, -1, 1, -1, 1, -1, 1, 1, 1, 1,          // 1
        0, 0, 0, 0, 0};                                                                                     // 27
    return carriers;
}

Synchronizer::Synchronizer()
    : buffer_(kHistory + kBlock),
      filled_(kHistory),
      start_(-static_cast<std::int64_t>(kHistory)),
      products_(kPeriods - 1),
      energies_(kPeriods),
      alike_(kPeriods - kWindow),
      derotated_(kSearched),
      peaks_(kPlaces) {
    const std::lock_guard<std::mutex> held(ofdm::global_lock());
    fft_.reset(fft_create_plan(kCarriers, time_.data(), frequency_.data(), LIQUID_FFT_FORWARD, 0));
}

void Synchronizer::feed(const Sample* samples, std::size_t count, Symbols& found) {
    while (count > 0) {
        const std::size_t taken = std::min(count, missing());
        std::copy_n(samples, taken, buffer_.begin() + static_cast<std::ptrdiff_t>(filled_));
        filled_ += taken;
        samples += taken;
        count -= taken;
        if (filled_ == buffer_.size()) {
            work(found);
            std::copy_n(buffer_.end() - kHistory, kHistory, buffer_.begin());
            filled_ = kHistory;
            start_ += kBlock;
        }
    }
}

// Looks through a full buffer.
void Synchronizer::work(Symbols& found) {
    measure(start_ < 0 ? 0 : kHistory / kPeriod);
    for (std::size_t period = kFirstPeriod; period < kLastPeriod; ++period) {
        const std::size_t at = period * kPeriod;
        pass_gaps(start_ + static_cast<std::int64_t>(at + kLookahead), found);
        if (start_ + static_cast<std::int64_t>(at) < cursor_) {
            continue;
        }
        double around = 0.0;
        for (std::size_t i = 0; i <= kWindow; ++i) {
            around += energies_[period + i];
        }
        const double least = kLikeness * around * kWindow / (kWindow + 1);
        if (!(std::norm(alike_[period]) > least * least)) {
            continue;  // nor where samples are no numbers
        }
        const auto timing = long_training_after(at);
        if (timing) {
            begin(*timing, found);
        } else {
            cursor_ = start_ + static_cast<std::int64_t>(at) + kSearchStep;
        }
    }
    const auto end = start_ + static_cast<std::int64_t>(buffer_.size());
    pass_gaps(end, found);
    if (frame_) {
        take(end, found);
    }
}

// Ends the frame at the gaps before a place in the stream, and looks for the next one behind them. A whole frame is longer
// than what is looked at where it is noticed.
void Synchronizer::pass_gaps(std::int64_t until, Symbols& found) {
    while (!gaps_.empty() && gaps_.front() < until) {
        if (frame_) {
            take(gaps_.front(), found);
            frame_.reset();
        }
        cursor_ = std::max(cursor_, gaps_.front());
        gaps_.pop_front();
    }
}

// Measures the periods from one on; those before it are the last block's.
void Synchronizer::measure(std::size_t from) {
    constexpr std::size_t kMoved = kBlock / kPeriod;
    if (from > 0) {
        std::copy(energies_.begin() + kMoved, energies_.end(), energies_.begin());
        std::copy(products_.begin() + kMoved, products_.end(), products_.begin());
    }
    for (std::size_t period = from; period < kPeriods; ++period) {
        const Sample* samples = buffer_.data() + period * kPeriod;
        energies_[period] = energy(samples, kPeriod);
        if (period > 0) {
            products_[period - 1] = Phasor(dot(samples, samples - kPeriod, kPeriod));
        }
    }
    for (std::size_t period = 0; period < alike_.size(); ++period) {
        const auto first = products_.begin() + static_cast<std::ptrdiff_t>(period);
        alike_[period] = std::accumulate(first, first + kWindow, Phasor());
    }
}

// Looks for a long training behind a short one that was noticed at `at`.
std::optional<Synchronizer::Timing> Synchronizer::long_training_after(std::size_t at) {
    const auto near = alike_.begin() + static_cast<std::ptrdiff_t>(at / kPeriod);
    const auto strongest = std::max_element(
        near, near + kSearchFrom / kPeriod, [](const Phasor& a, const Phasor& b) { return std::norm(a) < std::norm(b); });
    const double coarse = std::arg(*strongest) / kPeriod;
    const Phasor step = phasor(-coarse);
    Phasor turn = 1.0;
    const Sample* samples = buffer_.data() + at + kSearchFrom - kBefore;
    for (std::size_t i = 0; i < kSearched; ++i) {
        derotated_[i] = ofdm::product(samples[i], Sample(turn));
        turn *= step;
    }
    for (std::size_t place = 0; place < kPlaces; ++place) {
        peaks_[place] = std::abs(dot(derotated_.data() + kBefore + place, training_template().data(), kCarriers));
    }
    std::size_t best = 0;
    for (std::size_t place = 0; place < kPlaces - kCarriers; ++place) {
        if (peaks_[place] + peaks_[place + kCarriers] > peaks_[best] + peaks_[best + kCarriers]) {
            best = place;
        }
    }
    if (best >= kSearchTo - kSearchFrom) {
        return std::nullopt;
    }
    const Sample* first = derotated_.data() + best;
    const Sample* second = first + kCarriers;
    const double strength = std::sqrt(energy(first, kSymbolSamples) * energy(second, kSymbolSamples));
    const double peak = static_cast<double>(peaks_[best] * peaks_[best]) +
                        static_cast<double>(peaks_[best + kCarriers] * peaks_[best + kCarriers]);
    if (!(peak > kPeak * 2.0 * strength * kCarriers / kSymbolSamples)) {
        return std::nullopt;
    }
    const Phasor likeness(dot(second, first, kSymbolSamples));
    if (!(std::abs(likeness) > kLikeness * strength)) {
        return std::nullopt;
    }
    return Timing{at + kSearchFrom + best, coarse + std::arg(likeness) / kCarriers};
}

// Begins a frame, which ends the one before.
void Synchronizer::begin(const Timing& timing, Symbols& found) {
    const std::size_t first_of_preamble = timing.first + 2 * kCarriers - kPreambleSamples;
    const auto sample = start_ + static_cast<std::int64_t>(first_of_preamble);
    if (frame_) {
        take(sample + static_cast<std::int64_t>(kSymbolSamples), found);
    }
    frame_.emplace(Frame());
    frame_->at = start_ + static_cast<std::int64_t>(timing.first - kEarly);
    frame_->cfo = timing.cfo;
    for (std::size_t i = 0; i < kCarriers; ++i) {
        // pi per sample moves carrier -32 to the front
        frame_->within[i] = Sample(phasor((M_PI - timing.cfo) * static_cast<double>(i)));
    }
    frame_->turn.fill(1.0F);
    const std::size_t at = found.carriers.size();
    found.carriers.resize(at + 2 * kCarriers);
    Sample* training = found.carriers.data() + at;
    transform(timing.first - kEarly, 0, training);
    transform(timing.first - kEarly + kCarriers, kCarriers, training + kCarriers);
    for (std::size_t i = 0; i < kCarriers; ++i) {
        const Phasor sum = Phasor(training[i] + training[i + kCarriers]) * static_cast<double>(long_training()[i]);
        const double size = std::abs(sum);
        frame_->turn[i] = size > 0.0 ? Sample(std::conj(sum) / size) : Sample(1.0F);
        training[i] = ofdm::product(training[i], frame_->turn[i]);
        training[i + kCarriers] = ofdm::product(training[i + kCarriers], frame_->turn[i]);
    }
    const double power = energy(buffer_.data() + first_of_preamble, kPreambleSamples) / kPreambleSamples;
    found.beginnings.emplace_back(at / kCarriers,
                                  Preamble{sample, timing.cfo, power, snr_of(training, training + kCarriers)});
    cursor_ = start_ + static_cast<std::int64_t>(timing.first + 2 * kCarriers);
}

// Adds the frame's symbols that were not taken yet and end by `end` in the stream.
void Synchronizer::take(std::int64_t end, Symbols& found) {
    while (frame_->taken < kMaxSymbols) {
        const std::size_t offset = 2 * kCarriers + kSymbolSamples * frame_->taken;
        const std::int64_t first = frame_->at + static_cast<std::int64_t>(offset);
        if (first + static_cast<std::int64_t>(kSymbolSamples) > end) {
            return;
        }
        const std::size_t at = found.carriers.size();
        found.carriers.resize(at + kCarriers);
        transform(static_cast<std::size_t>(first - start_) + kGuard, offset + kGuard, found.carriers.data() + at);
        ++frame_->taken;
    }
}

// Makes carriers -32 to 31, without offset and phase, of samples in the buffer that lie `offset` samples into the frame.
void Synchronizer::transform(std::size_t first, std::size_t offset, Sample* carriers) {
    volk_32fc_x2_multiply_32fc(time_.data(), buffer_.data() + first, frame_->within.data(), kCarriers);
    fft_execute(fft_.get());
    const Sample turn(phasor(-frame_->cfo * static_cast<double>(offset)));
    for (std::size_t i = 0; i < kCarriers; ++i) {
        carriers[i] = ofdm::product(ofdm::product(frequency_[i], turn), frame_->turn[i]);
    }
}

}  // namespace gr::fadelab::wifi
