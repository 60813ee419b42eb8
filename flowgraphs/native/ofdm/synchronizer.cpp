#include "synchronizer.hpp"

#include <volk/volk.h>

#include <algorithm>
#include <cmath>

#include "arithmetic.hpp"
#include "clones.hpp"
#include "rotation.hpp"

namespace gr::fadelab::ofdm {

namespace {

// Symbols are cut so many samples early, for the sake of paths before the strongest one.
constexpr std::size_t kBackoff = 2;
// Likeness of S0, and of S1, from which they are taken for that; more where there are few subcarriers.
constexpr float kDetect = 0.35F;
constexpr float kAccept = 0.30F;
constexpr std::size_t kManySubcarriers = 44;
constexpr float kPerSubcarrier = 0.01F;
// Likeness of S0 between two shifts of the carrier. Higher, for there are many to choose from.
constexpr float kDetectShift = 0.45F;
// Of the likeness between two shifts, what that of none must have to be preferred.
constexpr double kUnshifted = 0.8;
// The power of two windows' likeness over that of the first alone from which most of S0 is still to come; 4 if both are
// equal.
constexpr float kGrowing = 6.0F;
// S1's timing is good up to this phase between neighbouring subcarriers.
constexpr float kMostTurn = static_cast<float>(0.1 * M_PI);
// How often S1 is looked for, each time half a symbol later.
constexpr unsigned kLooks = 16;
constexpr std::size_t kChannelOrder = 4;
// Of a symbol's delay, the newest estimate's share.
constexpr double kNewest = 0.3;
// Of the phase from one symbol to the next, what is taken for the carrier's.
constexpr double kFollowed = 0.08;
// Samples of delay from which symbols are cut elsewhere; more than half a one, lest it go back and forth.
constexpr double kMoved = 0.75;
// Samples of delay, over a frame, that are more than noise.
constexpr double kDrifted = 0.5;
// Clocks differ by no more; what samples that are no signal pretend is not followed.
constexpr double kMostDrift = 50e-6;
// 1, but for rounding. More is what cannot be: samples too large for their energy to be a number.
constexpr double kMostLikeness = 1.1;
// Keeps silence from being divided by.
constexpr double kLeastEnergy = 1e-9;

float raised(float likeness, std::size_t subcarriers) {
    const std::size_t missing = subcarriers < kManySubcarriers ? kManySubcarriers - subcarriers : 0;
    return likeness + kPerSubcarrier * static_cast<float>(missing);
}

// volk_32fc_32f_multiply_32fc leaves the thread flushing its small numbers to zero (VOLK 2.5.2 through Orc).
FADELAB_CLONES
void weigh(const Sample* values, const float* weights, std::size_t count, Sample* out) {
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = {values[i].real() * weights[i], values[i].imag() * weights[i]};
    }
}

FADELAB_CLONES
Sample weighed_sum(const Sample* values, const float* weights, std::size_t count) {
    float real = 0.0F;
    float imag = 0.0F;
    for (std::size_t i = 0; i < count; ++i) {
        real += values[i].real() * weights[i];
        imag += values[i].imag() * weights[i];
    }
    return {real, imag};
}

double arg(Sample value) {
    return std::atan2(value.imag(), value.real());
}

// Adds whole turns until no two neighbours are more than half a turn apart.
void unwrap(std::vector<double>& angles) {
    for (std::size_t at = 1; at < angles.size(); ++at) {
        angles[at] -= 2.0 * M_PI * std::rint((angles[at] - angles[at - 1]) / (2.0 * M_PI));
    }
}

double energy(const Sample* samples, std::size_t count) {
    const auto* values = reinterpret_cast<const float*>(samples);
    float sum = 0.0F;
    volk_32f_x2_dot_prod_32f(&sum, values, values, static_cast<unsigned>(2 * count));
    return sum;
}

bool is_finite(Sample value) {
    return std::isfinite(value.real()) && std::isfinite(value.imag());
}

// The active subcarriers in the order of the FFT, from the lowest frequency to the highest.
std::vector<std::size_t> ordered(const Format& format) {
    std::vector<std::size_t> carriers = format.active();
    const auto negative = std::lower_bound(carriers.begin(), carriers.end(), format.subcarriers() / 2);
    std::rotate(carriers.begin(), negative, carriers.end());
    return carriers;
}

// In subcarriers.
std::vector<double> frequencies(const std::vector<std::size_t>& carriers, std::size_t size) {
    std::vector<double> values;
    values.reserve(carriers.size());
    for (const std::size_t carrier : carriers) {
        values.push_back(static_cast<double>(carrier) - (carrier < size / 2 ? 0.0 : static_cast<double>(size)));
    }
    return values;
}

// From -0.5 to 0.5.
std::vector<double> scaled(std::vector<double> frequencies, std::size_t size) {
    std::for_each(frequencies.begin(), frequencies.end(), [&](double& value) { value /= static_cast<double>(size); });
    return frequencies;
}

}  // namespace

Synchronizer::Synchronizer(const Format& format, const Training& training, std::size_t reach)
    : format_(format),
      training_(training),
      size_(format.subcarriers()),
      half_(size_ / 2),
      step_(format.symbol_samples()),
      detect_(raised(kDetect, size_)),
      accept_(raised(kAccept, size_)),
      reach_(reach),
      detect_shift_(raised(kDetectShift, size_)),
      ordered_(ordered(format)),
      pilot_frequencies_(frequencies(format.pilots(), size_)),
      channel_fit_(scaled(frequencies(ordered_, size_), size_), kChannelOrder),
      half_fft_(half_, Fft::Direction::forward),
      fft_(size_, Fft::Direction::forward),
      gains_(size_ + 1),
      half_turn_(half_),
      neighbours_(size_),
      likenesses_(2 * reach + 1),
      due_(size_),
      inverse_(size_),
      turned_(size_),
      amplitudes_(ordered_.size()),
      angles_(ordered_.size()),
      pilot_matches_(format.pilots().size()),
      pilot_gains_(format.pilots().size()) {
    for (std::size_t at = 0; at < half_; ++at) {
        half_turn_[at] = phasor(-2.0 * M_PI * static_cast<double>(at) / static_cast<double>(size_));
        neighbours_[at] = neighbours_[at + half_] = training_.s0[at] * training_.s0[(at + 1) % half_];
    }
}

Synchronizer::Found Synchronizer::step(History& history, Sample* data) {
    switch (state_) {
        case State::seek:
            seek(history);
            return Found::nothing;
        case State::short_training:
            look_at_short(history);
            return Found::nothing;
        case State::long_training:
            return look_at_long(history) ? Found::training : Found::nothing;
        case State::symbols:
            break;
    }
    track(history, data);
    return Found::symbol;
}

void Synchronizer::release() {
    state_ = State::seek;
    due_ += size_ + 1 - step_;
}

void Synchronizer::seek_from(std::uint64_t start) {
    state_ = State::seek;
    due_ = start + size_;
}

double Synchronizer::drift() const {
    const double late = moved_ - slope_ / subcarriers_turn(1);
    const double most = kMostDrift * static_cast<double>(symbols_ * step_);
    return std::abs(late) >= kDrifted && std::abs(late) <= most ? late / static_cast<double>(symbols_) : 0.0;
}

void Synchronizer::seek(History& history) {
    const Sample* window = history.read(due_ - size_, size_);
    scale_ = static_cast<double>(size_) * (energy(window, size_) + kLeastEnergy);
    double likeness = std::abs(short_likeness(window)) / scale_;
    bool found = likeness > detect_;
    shifted_ = false;
    if (reach_ > 0) {
        std::fill(likenesses_.begin(), likenesses_.end(), Sample());
        seek_shifts(window);
        const double between = std::abs(best_likeness()) / scale_;
        shifted_ = between > detect_shift_ && likeness < kUnshifted * between;
        likeness = shifted_ ? between : likeness;
        found = found || shifted_;
    }
    if (found && likeness <= kMostLikeness) {
        state_ = State::short_training;
        due_ += 1 + half_;
    } else {
        due_ += size_;
    }
}

// Adds to `likenesses_` those of the window with each shift, like `short_likeness`, which is that of none.
void Synchronizer::seek_shifts(const Sample* window) {
    for (const bool odd : {false, true}) {
        for (std::size_t at = 0; at < half_; ++at) {
            // odd subcarriers are those of the halves' difference, turned back by one
            half_fft_.in()[at] =
                odd ? product(window[at] - window[at + half_], half_turn_[at]) : window[at] + window[at + half_];
        }
        half_fft_.execute();
        std::copy_n(half_fft_.out(), half_, gains_.data());
        gains_[half_] = gains_[0];
        volk_32fc_x2_multiply_conjugate_32fc(half_fft_.in(), gains_.data() + 1, gains_.data(),
                                             static_cast<unsigned>(half_));
        for (std::size_t at = 0; at < likenesses_.size(); ++at) {
            const std::ptrdiff_t shift = static_cast<std::ptrdiff_t>(at) - static_cast<std::ptrdiff_t>(reach_);
            if ((shift % 2 != 0) != odd) {
                continue;
            }
            // in even subcarriers, from 0 to half_
            const std::ptrdiff_t places = (shift - (odd ? 1 : 0)) / 2;
            const auto first = (static_cast<std::ptrdiff_t>(half_) - places) % static_cast<std::ptrdiff_t>(half_);
            likenesses_[at] += weighed_sum(half_fft_.in(), neighbours_.data() + first, half_);
        }
    }
}

// The place in `likenesses_` of the shift below the carrier's most likely offset.
std::size_t Synchronizer::best_shift() const {
    std::size_t best = 0;
    float most = -1.0F;
    for (std::size_t at = 0; at + 1 < likenesses_.size(); ++at) {
        const float likeness = power(likenesses_[at] + likenesses_[at + 1]);
        if (likeness > most) {
            best = at;
            most = likeness;
        }
    }
    return best;
}

// Timing, and the carrier offset from one half of S0 to the other.
void Synchronizer::look_at_short(History& history) {
    Sample likeness;
    double shift = 0.0;  // subcarriers, to less than one
    if (shifted_) {
        std::fill(likenesses_.begin(), likenesses_.end(), Sample());
        seek_shifts(history.read(due_ - half_ - size_, size_));
        const float before = power(best_likeness());
        const Sample* second = history.read(due_ - size_, size_);
        seek_shifts(second);
        const std::size_t best = best_shift();
        likeness = best_likeness();
        // a little of S0 in silence is like all of it
        scale_ = static_cast<double>(size_) * (energy(second, size_) + kLeastEnergy);
        if (power(likeness) > kGrowing * before) {
            due_ += half_;
            return;
        }
        shift = static_cast<double>(best) + 0.5 - static_cast<double>(reach_);
    } else {
        likeness = short_likeness(history.read(due_ - half_ - size_, size_)) +
                   short_likeness(history.read(due_ - size_, size_));
    }
    const double late = std::rint(arg(likeness) * static_cast<double>(half_) / (2.0 * M_PI));
    const Sample* first = history.read(due_ - step_, size_);
    Sample turn;
    volk_32fc_x2_conjugate_dot_prod_32fc(&turn, first + half_, first, static_cast<unsigned>(half_));
    // known but for two subcarriers
    const double cfo = arg(turn) / static_cast<double>(half_);
    const double turns = std::rint((shift * subcarriers_turn(1) - cfo) / (2.0 * subcarriers_turn(1)));
    if (!is_finite(likeness) || !is_finite(turn)) {
        seek_again(size_);
        return;
    }
    cfo_ = cfo + turns * 2.0 * subcarriers_turn(1);
    phase_ = 0.0;
    tuned_at_ = due_;
    looks_ = 0;
    state_ = State::long_training;
    due_ += step_ - kBackoff - static_cast<std::size_t>(static_cast<std::int64_t>(late));
}

// S1: whether it is there, and the channel.
bool Synchronizer::look_at_long(History& history) {
    hear_long(history);
    const Sample likeness = product(neighbours(size_), phasor(subcarriers_turn(kBackoff)));
    ++looks_;
    if (std::abs(likeness) > accept_ * scale_ && std::abs(arg(likeness)) < kMostTurn) {
        start_ = static_cast<std::int64_t>(due_ + kBackoff) - static_cast<std::int64_t>(kTrainingSymbols * step_);
        refine_cfo(history);
        hear_long(history);
        estimate_channel();
        first_symbol_ = true;
        slope_ = 0.0;
        moved_ = 0;
        symbols_ = 0;
        pilot_ = 0;
        state_ = State::symbols;
        due_ += step_ + kBackoff;
        return true;
    }
    if (looks_ == kLooks) {
        seek_again(size_ - half_);
    } else {
        due_ += half_;
    }
    return false;
}

// Equalises a symbol, after its pilots.
void Synchronizer::track(History& history, Sample* data) {
    transform(history, due_ - size_ - kBackoff);
    const double before = offset_;
    follow_pilots();
    const auto half = static_cast<double>(half_);
    const Sample step = phasor(-slope_);
    rotate(inverse_.data(), half_, phasor(-offset_), step, turned_.data());
    rotate(inverse_.data() + half_, size_ - half_, phasor(-offset_ + slope_ * half), step, turned_.data() + half_);
    const Sample* carriers = fft_.out();
    for (const std::size_t carrier : format_.data()) {
        *data++ = product(carriers[carrier], turned_[carrier]);
    }
    if (!first_symbol_) {
        const double turn = offset_ - before;
        tune(cfo_ + kFollowed * (turn - 2.0 * M_PI * std::rint(turn / (2.0 * M_PI))) / static_cast<double>(step_));
    }
    first_symbol_ = false;
    due_ += step_;
    ++symbols_;
    follow_delay();
}

// Cuts the next symbols elsewhere if the delay has grown. A symbol that is cut later seems to come earlier.
void Synchronizer::follow_delay() {
    const double sample = subcarriers_turn(1);
    if (std::abs(slope_) > kMoved * sample) {
        const int later = slope_ < 0.0 ? 1 : -1;
        moved_ += later;
        slope_ += later * sample;
        due_ = later > 0 ? due_ + 1 : due_ - 1;
    }
}

Sample Synchronizer::best_likeness() const {
    const std::size_t best = best_shift();
    return likenesses_[best] + likenesses_[best + 1];
}

void Synchronizer::seek_again(std::size_t later) {
    state_ = State::seek;
    due_ += later;
}

// Over the window's energy and size: 1 at most. Its phase is the timing.
Sample Synchronizer::short_likeness(const Sample* window) {
    const auto* values = reinterpret_cast<const float*>(window);
    // the even subcarriers of a window are the transform of its halves' sum
    volk_32f_x2_add_32f(reinterpret_cast<float*>(half_fft_.in()), values, values + 2 * half_,
                        static_cast<unsigned>(2 * half_));
    half_fft_.execute();
    weigh(half_fft_.out(), training_.s0.data(), half_, gains_.data());
    return neighbours(half_);
}

// The sum of products of each of `count` gains with the conjugate of that before, the first one's being the last.
Sample Synchronizer::neighbours(std::size_t count) {
    gains_[count] = gains_[0];
    Sample sum;
    volk_32fc_x2_conjugate_dot_prod_32fc(&sum, gains_.data() + 1, gains_.data(), static_cast<unsigned>(count));
    return sum;
}

// What a delay of so many samples turns from one subcarrier to the next.
double Synchronizer::subcarriers_turn(std::size_t samples) const {
    return 2.0 * M_PI * static_cast<double>(samples) / static_cast<double>(size_);
}

// The samples from index `start`, their carrier offset taken away, to subcarriers.
void Synchronizer::transform(History& history, std::uint64_t start) {
    const double since = static_cast<double>(start) - static_cast<double>(tuned_at_);
    rotate(history.read(start, size_), size_, phasor(-phase_ - cfo_ * since), phasor(-cfo_), fft_.in());
    fft_.execute();
}

// S1's gains, from the newest samples.
void Synchronizer::hear_long(History& history) {
    transform(history, due_ - size_);
    weigh(fft_.out(), training_.s1.data(), size_, gains_.data());
}

// The carrier offset from both S0, now that their place is known: with a lag of one period, and then, since that leaves
// no doubt of whole turns, of three.
void Synchronizer::refine_cfo(History& history) {
    const std::size_t length = 2 * step_ - format_.cyclic_prefix() - kBackoff;
    const std::int64_t start = start_ + static_cast<std::int64_t>(format_.cyclic_prefix());
    if (start < 0) {
        return;
    }
    const Sample* samples = history.read(static_cast<std::uint64_t>(start), length);
    for (const std::size_t periods : {1, 3}) {
        const std::size_t lag = periods * half_;
        Sample turn;
        volk_32fc_x2_conjugate_dot_prod_32fc(&turn, samples + lag, samples, static_cast<unsigned>(length - lag));
        if (!is_finite(turn)) {
            return;
        }
        const double known = cfo_ * static_cast<double>(lag);
        const double angle = arg(turn);
        cfo_ = (angle + 2.0 * M_PI * std::rint((known - angle) / (2.0 * M_PI))) / static_cast<double>(lag);
    }
}

// The channel, as amplitude and phase that are polynomials over frequency, from S1's gains.
void Synchronizer::estimate_channel() {
    for (std::size_t at = 0; at < ordered_.size(); ++at) {
        const std::size_t carrier = ordered_[at];
        const Sample gain = product(gains_[carrier], phasor(subcarriers_turn(kBackoff) * static_cast<double>(carrier)));
        amplitudes_[at] = std::abs(gain);
        angles_[at] = arg(gain);
    }
    unwrap(angles_);
    channel_fit_.smooth(amplitudes_);
    channel_fit_.smooth(angles_);
    for (std::size_t at = 0; at < ordered_.size(); ++at) {
        const std::size_t carrier = ordered_[at];
        // symbols are cut early as well
        const Sample turn = phasor(subcarriers_turn(kBackoff) * static_cast<double>(carrier) - angles_[at]);
        inverse_[carrier] = turn / static_cast<float>(amplitudes_[at]);
    }
    double weights = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t at = 0; at < pilot_matches_.size(); ++at) {
        const Sample inverse = inverse_[format_.pilots()[at]];
        pilot_matches_[at] = inverse / floored(power(inverse));
        const double weight = 1.0 / floored(power(inverse));
        weights += weight;
        sum += weight * pilot_frequencies_[at];
        squares += weight * pilot_frequencies_[at] * pilot_frequencies_[at];
    }
    pilot_middle_ = sum / weights;
    pilot_spread_ = squares - sum * pilot_middle_;
}

// A symbol's phase and delay from its pilots, each as strong as it came through the channel.
void Synchronizer::follow_pilots() {
    Sample sum;
    // pilots are equally far apart
    Sample turn = phasor(-slope_ * pilot_frequencies_[0]);
    const Sample step = phasor(-slope_ * (pilot_frequencies_[1] - pilot_frequencies_[0]));
    for (std::size_t at = 0; at < pilot_gains_.size(); ++at) {
        const Sample gain = fft_.out()[format_.pilots()[at]] * training_.pilots[pilot_];
        pilot_gains_[at] = product(product(gain, pilot_matches_[at]), turn);
        turn = product(turn, step);
        sum += pilot_gains_[at];
        pilot_ = pilot_ + 1 == training_.pilots.size() ? 0 : pilot_ + 1;
    }
    // what is left of the delay turns the pilots' sum to the one side at high frequencies, to the other at low ones
    double moment = 0.0;
    for (std::size_t at = 0; at < pilot_gains_.size(); ++at) {
        moment += (pilot_frequencies_[at] - pilot_middle_) * product_conjugate(pilot_gains_[at], sum).imag();
    }
    const double change = kNewest * moment / (std::abs(sum) * pilot_spread_);
    const double offset = arg(sum) - change * pilot_middle_;
    if (std::isfinite(offset)) {
        offset_ = offset;
        slope_ += change;
    }
}

// A carrier offset from the next sample on.
void Synchronizer::tune(double cfo) {
    phase_ = std::remainder(phase_ + cfo_ * static_cast<double>(due_ - tuned_at_), 2.0 * M_PI);
    tuned_at_ = due_;
    cfo_ = cfo;
}

}  // namespace gr::fadelab::ofdm
