#include "medium/path.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "medium/clones.hpp"
#include "medium/gain.hpp"
#include "medium/interpolator.hpp"
#include "medium/oscillator.hpp"
#include "medium/random.hpp"
#include "medium/series.hpp"

namespace fadelab::medium {
namespace {

using Sample = std::complex<float>;

constexpr std::size_t kBlock = 512;  // ticks worked on together; they start at its multiples
constexpr double kMaxPpm = 1000.0;
constexpr double kWholeTicks = 1e-6;  // a delay this close to whole samples is meant to be whole

double amplitude(double power_db) { return std::pow(10.0, power_db / 20.0); }

// std::complex's own product checks for infinities.
inline Sample product(Sample a, Sample b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

MEDIUM_CLONES
void add_scaled(Sample factor, const Sample* samples, std::size_t n, Sample* sum) {
    for (std::size_t i = 0; i < n; ++i) sum[i] += product(factor, samples[i]);
}

MEDIUM_CLONES
void add_products(const Sample* factors, const Sample* samples, std::size_t n, Sample* sum) {
    for (std::size_t i = 0; i < n; ++i) sum[i] += product(factors[i], samples[i]);
}

MEDIUM_CLONES
void add_turned(Sample start, const Sample* turns, const Sample* samples, std::size_t n, Sample* sum) {
    for (std::size_t i = 0; i < n; ++i) sum[i] += product(product(start, turns[i]), samples[i]);
}

MEDIUM_CLONES
void add(const Sample* samples, std::size_t n, Sample* sum) {
    for (std::size_t i = 0; i < n; ++i) sum[i] += samples[i];
}

// Where a tap reads the transmitter's samples: receiver tick r hears transmitter tick r + r drift + wander - delay.
class Delay {
public:
    // `ticks` of the transmitter, `drift` in transmitter ticks per receiver tick.
    Delay(double ticks, double drift, Wander* wander) : ticks_(ticks), drift_(drift), wander_(wander) {
        const double nearest = std::nearbyint(ticks);
        if (drift == 0.0 && wander == nullptr && std::abs(ticks - nearest) < kWholeTicks) {
            whole_ = true;
            ticks_ = nearest;
        }
    }

    TickRange needs(std::int64_t tick, std::size_t n) const {
        const auto end = tick + static_cast<std::int64_t>(n);
        if (whole_) return {tick - static_cast<std::int64_t>(ticks_), end - static_cast<std::int64_t>(ticks_)};
        const std::int64_t a = shift(tick).whole;
        const std::int64_t b = shift(end - 1).whole;
        const std::int64_t bend = wander_ == nullptr ? 0 : 1;  // a wander may go beyond its ends in between
        return {tick + std::min(a, b) - Interpolator::kBefore - bend, end + std::max(a, b) + Interpolator::kAfter + bend};
    }

    // Returns what is heard at [tick, tick + n), all within a block: the source's own memory, or `out` after filling
    // it; null when silent.
    const Sample* read(Source& source, std::int64_t tick, std::size_t n, Sample* scratch, Sample* out) const {
        const TickRange range = needs(tick, n);
        const Sample* samples = source.read(range.first, static_cast<std::size_t>(range.end - range.first), scratch);
        if (whole_ || samples == nullptr) return samples;
        for (std::size_t done = 0; done < n;) {
            const std::int64_t at = tick + static_cast<std::int64_t>(done);
            const std::size_t count = std::min(n - done, kHold - static_cast<std::size_t>(at & (kHold - 1)));
            const Shift by = shift(at);
            Interpolator::read(by.fraction, samples + (at + by.whole - Interpolator::kBefore - range.first), count,
                               out + done);
            done += count;
        }
        return out;
    }

private:
    static constexpr std::size_t kHold = Interpolator::kHold;

    struct Shift {
        std::int64_t whole;
        double fraction;  // 0 <= fraction < 1
    };

    Shift shift(std::int64_t tick) const {
        const std::int64_t middle = tick - (tick & (kHold - 1)) + kHold / 2;
        const double wandered = wander_ == nullptr ? 0.0 : wander_->ticks(middle);
        const double ticks = static_cast<double>(middle) * drift_ + wandered - ticks_;
        const double whole = std::floor(ticks);
        return {static_cast<std::int64_t>(whole), ticks - whole};
    }

    double ticks_;
    double drift_;
    Wander* wander_;  // null: none
    bool whole_ = false;
};

struct Branch {
    Delay delay;
    Sample constant;             // the gain ...
    std::unique_ptr<Gain> gain;  // ... unless it varies
};

}  // namespace

class Path::State {
public:
    State(const LinkOptions& options, const Ends& ends, std::uint64_t seed, const Wander& wander)
        : wander_(wander), oscillator_((ends.freq_offset_hz + options.cfo_hz) / receiver_ticks_per_second(ends)) {
        const double tx_clock = 1.0 + ends.tx_ppm * 1e-6;
        const double rx_clock = 1.0 + ends.rx_ppm * 1e-6;
        const double drift = (ends.tx_ppm - ends.rx_ppm) * 1e-6 / rx_clock;
        const double ticks_per_second = receiver_ticks_per_second(ends);
        const double level = ends.scale * amplitude(options.gain_db);
        const auto delay = [&](double excess_ns) {
            return Delay((options.delay_ns + excess_ns) * 1e-9 * ends.rate_sps * tx_clock, drift,
                         wander_.none() ? nullptr : &wander_);
        };
        if (options.series_path[0] != '\0') {
            const auto series = std::make_shared<const Series>(options.series_path);
            for (std::size_t tap = 0; tap < series->n_taps(); ++tap) {
                branches_.push_back({delay(series->delay_ns(tap)), Sample(),
                                     std::make_unique<Followed>(series, tap, level, ticks_per_second)});
            }
            return;
        }
        const Tap lone;
        const Tap* taps = options.n_taps > 0 ? options.taps : &lone;
        const auto n_taps = static_cast<std::size_t>(std::max(options.n_taps, 1));
        double power = 0.0;
        for (std::size_t i = 0; i < n_taps; ++i) power += std::pow(10.0, taps[i].power_db / 10.0);
        if ((options.flags & kKeepTapPowers) != 0) power = 1.0;
        const std::uint64_t own_seed = hash(hash(seed, "fading"), options.seed_salt);
        for (std::size_t i = 0; i < n_taps; ++i) {
            auto gain = std::make_unique<Fading>(taps[i], level * amplitude(taps[i].power_db) / std::sqrt(power),
                                                 ticks_per_second, hash(own_seed, i));
            Branch branch{delay(taps[i].delay_ns), gain->at_start(), nullptr};
            if (gain->varies()) branch.gain = std::move(gain);
            branches_.push_back(std::move(branch));
        }
    }

    void mix(Source& source, std::int64_t tick, std::size_t n, Sample* acc) {
        while (n > 0) {
            const std::size_t count = std::min(n, kBlock - static_cast<std::size_t>(tick & (kBlock - 1)));
            mix_block(source, tick, count, acc);
            tick += static_cast<std::int64_t>(count);
            acc += count;
            n -= count;
        }
    }

    TickRange needs(std::int64_t tick, std::size_t n) const {
        TickRange all = branches_.front().delay.needs(tick, n);
        for (const Branch& branch : branches_) {
            const TickRange one = branch.delay.needs(tick, n);
            all = {std::min(all.first, one.first), std::max(all.end, one.end)};
        }
        return all;
    }

private:
    static double receiver_ticks_per_second(const Ends& ends) {
        return ends.rate_sps * (1.0 + ends.rx_ppm * 1e-6);
    }

    void mix_block(Source& source, std::int64_t tick, std::size_t n, Sample* acc) {
        Sample sum[kBlock];
        Sample gains[kBlock];
        Sample read[kBlock + Interpolator::kLength + 4];
        Sample delayed[kBlock];
        std::fill_n(sum, n, Sample());
        bool silent = true;
        for (Branch& branch : branches_) {
            const Sample* samples = branch.delay.read(source, tick, n, read, delayed);
            if (samples == nullptr) continue;
            silent = false;
            if (branch.gain) {
                branch.gain->fill(tick, n, gains);
                add_products(gains, samples, n, sum);
            } else {
                add_scaled(branch.constant, samples, n, sum);
            }
        }
        if (silent) return;
        if (oscillator_.still()) {
            add(sum, n, acc);
        } else {
            const std::int64_t within = tick & static_cast<std::int64_t>(kBlock - 1);
            add_turned(Sample(oscillator_.phasor(tick - within)), oscillator_.turns() + within, sum, n, acc);
        }
    }

    Wander wander_;  // the branches point to it
    Oscillator<kBlock> oscillator_;
    std::vector<Branch> branches_;
};

Path::Path(const LinkOptions& options, const Ends& ends, std::uint64_t seed, const Wander& wander) {
    validate(options);
    if (!(ends.rate_sps > 0.0 && std::isfinite(ends.rate_sps))) {
        throw std::invalid_argument("rate_sps must be positive");
    }
    if (!std::isfinite(ends.freq_offset_hz)) throw std::invalid_argument("freq_offset_hz must be a finite number");
    if (!std::isfinite(ends.scale)) throw std::invalid_argument("scale must be a finite number");
    if (!(std::abs(ends.tx_ppm) <= kMaxPpm && std::abs(ends.rx_ppm) <= kMaxPpm)) {
        throw std::invalid_argument("clock offsets must lie within 1000 ppm");
    }
    state_ = std::make_unique<State>(options, ends, seed, wander);
}

Path::~Path() = default;
Path::Path(Path&&) noexcept = default;
Path& Path::operator=(Path&&) noexcept = default;

void Path::mix(Source& source, std::int64_t rx_tick, std::size_t n, std::complex<float>* acc) {
    state_->mix(source, rx_tick, n, acc);
}

TickRange Path::needs(std::int64_t rx_tick, std::size_t n) const { return state_->needs(rx_tick, n); }

}  // namespace fadelab::medium
