#include "medium/stages.hpp"

#include <algorithm>
#include <cmath>

#include "medium/clones.hpp"
#include "medium/random.hpp"

namespace fadelab::medium {
namespace {

using Sample = std::complex<float>;

constexpr double kPi = 3.14159265358979323846;

// A tone's amplitude with a phase of its own.
Sample tone(double dbfs, std::uint64_t seed) {
    return Sample(std::polar(std::pow(10.0, dbfs / 20.0), 2.0 * kPi * Generator(seed).uniform()));
}

MEDIUM_CLONES
void skew(float of_i, float of_q, std::size_t n, Sample* samples) {
    for (std::size_t i = 0; i < n; ++i) {
        samples[i] = {samples[i].real(), of_i * samples[i].real() + of_q * samples[i].imag()};
    }
}

MEDIUM_CLONES
void filtered(float middle, float even, float odd, const Sample* in, std::size_t n, Sample* out) {
    for (std::size_t i = 0; i < n; ++i) {
        const Sample both = in[i] + in[i + 2];
        const Sample apart = in[i + 2] - in[i];
        out[i] = {middle * in[i + 1].real() + even * both.real() + odd * apart.imag(),
                  middle * in[i + 1].imag() + even * both.imag() - odd * apart.real()};
    }
}

// The amplifier of smoothness 2, which needs no powers of any exponent.
MEDIUM_CLONES
void rapp_of_2(float scale, std::size_t n, Sample* samples) {
    for (std::size_t i = 0; i < n; ++i) {
        const float power = (samples[i].real() * samples[i].real() + samples[i].imag() * samples[i].imag()) * scale;
        samples[i] *= 1.0F / std::sqrt(std::sqrt(1.0F + power * power));
    }
}

// Mean over all phases of x + beyond cos(phase), clipped at +-1.
float mean_clipped(float x, float beyond) {
    if (beyond == 0.0F) return std::clamp(x, -1.0F, 1.0F);
    const float upper = std::clamp((1.0F - x) / beyond, -1.0F, 1.0F);
    const float lower = std::clamp((-1.0F - x) / beyond, -1.0F, 1.0F);
    const float above = std::acos(upper);  // phases from 0 to here are clipped at 1
    const float below = std::acos(lower);  // and from here to pi at -1
    const float between = x * (below - above) + beyond * (std::sqrt(1.0F - lower * lower) - std::sqrt(1.0F - upper * upper));
    return (above - (static_cast<float>(kPi) - below) + between) / static_cast<float>(kPi);
}

}  // namespace

Imbalance::Imbalance(const Chain& chain) : none_(chain.iq_gain_db == 0.0 && chain.iq_phase_deg == 0.0) {
    const double gain = std::pow(10.0, chain.iq_gain_db / 20.0);
    of_i_ = static_cast<float>(gain * std::sin(chain.iq_phase_deg * kPi / 180.0));
    of_q_ = static_cast<float>(gain * std::cos(chain.iq_phase_deg * kPi / 180.0));
}

void Imbalance::apply(std::size_t n, Sample* samples) const {
    if (!none_) skew(of_i_, of_q_, n, samples);
}

Sample leakage(const Chain& chain, std::uint64_t seed) { return tone(chain.leakage_dbfs, hash(seed, "leakage")); }

Tones::Tones(const Chain& chain, bool with_leakage, double rate_sps, std::uint64_t seed)
    : leakage_(with_leakage ? leakage(chain, seed) : Sample()),
      spur_(std::abs(chain.spur_hz) < rate_sps / 2 ? tone(chain.spur_dbfs, hash(seed, "spur")) : Sample()),
      oscillator_(spur_ == Sample() ? 0.0 : chain.spur_hz / rate_sps) {}

void Tones::add(std::int64_t tick, std::size_t n, Sample* samples) const {
    if (leakage_ != Sample()) {
        for (std::size_t i = 0; i < n; ++i) samples[i] += leakage_;
    }
    if (spur_ == Sample()) return;
    if (oscillator_.still()) {
        for (std::size_t i = 0; i < n; ++i) samples[i] += spur_;
        return;
    }
    while (n > 0) {
        const auto within = static_cast<std::size_t>(tick & static_cast<std::int64_t>(kBlock - 1));
        const std::size_t count = std::min(n, kBlock - within);
        const Sample start = spur_ * Sample(oscillator_.phasor(tick - static_cast<std::int64_t>(within)));
        for (std::size_t i = 0; i < count; ++i) samples[i] += start * oscillator_.turns()[within + i];
        tick += static_cast<std::int64_t>(count);
        samples += count;
        n -= count;
    }
}

Amplifier::Amplifier(const Impairments& impairments)
    : p1db_dbm_(impairments.p1db_dbm), smoothness_(impairments.smoothness), ramp_s_(impairments.ramp_us * 1e-6) {}

void Amplifier::apply(double full_scale_dbm, std::size_t n, Sample* samples) const {
    if (std::isinf(p1db_dbm_)) return;
    // at 1 dB of compression, input over saturation to the power of 2 p is 10^(p / 10) - 1
    const double p = smoothness_;
    const double input_db = 10.0 / p * std::log10(std::pow(10.0, p / 10.0) - 1.0);
    const double saturation_dbm = p1db_dbm_ + 1.0 - input_db;
    const auto scale = static_cast<float>(std::pow(10.0, (full_scale_dbm - saturation_dbm) / 10.0));
    if (p == 2.0) {
        rapp_of_2(scale, n, samples);
        return;
    }
    const auto exponent = static_cast<float>(p);
    const auto root = static_cast<float>(-0.5 / p);
    for (std::size_t i = 0; i < n; ++i) {
        const float power = (samples[i].real() * samples[i].real() + samples[i].imag() * samples[i].imag()) * scale;
        samples[i] *= std::pow(1.0F + std::pow(power, exponent), root);
    }
}

void Amplifier::ramp(std::int64_t first, double rate_sps, std::size_t n, Sample* samples) const {
    if (ramp_s_ == 0.0) return;
    constexpr double kOver = 16.0;  // time constants until nothing is left of it
    for (std::size_t i = 0; i < n; ++i) {
        const double constants = static_cast<double>(first + static_cast<std::int64_t>(i)) / (rate_sps * ramp_s_);
        if (constants > kOver) return;
        samples[i] *= static_cast<float>(-std::expm1(-constants));
    }
}

Filter::Filter(const Impairments& impairments) : none_(impairments.slope_db == 0.0 && impairments.edge_db == 0.0) {
    const double lost = 1.0 - std::pow(10.0, -impairments.edge_db / 20.0);
    const double ratio = std::pow(10.0, impairments.slope_db / 20.0);
    const double middle = 1.0 - lost / 2.0;  // also the mean level at both quarters
    middle_ = static_cast<float>(middle);
    even_ = static_cast<float>(lost / 4.0);
    odd_ = static_cast<float>(middle * (ratio - 1.0) / (ratio + 1.0) / 2.0);
}

void Filter::apply(const Sample* samples, std::size_t n, Sample* out) const {
    filtered(middle_, even_, odd_, samples, n, out);
}

Converter::Converter(const Chain& chain)
    : steps_(chain.bits == 0.0 ? 0.0F : static_cast<float>(std::exp2(chain.bits - 1.0))) {}

void Converter::apply(std::size_t n, Sample* samples) const {
    if (steps_ == 0.0F) return;
    auto* parts = reinterpret_cast<float*>(samples);
    const float step = 1.0F / steps_;
    for (std::size_t i = 0; i < 2 * n; ++i) {
        parts[i] = std::clamp(std::nearbyint(parts[i] * steps_), -steps_, steps_ - 1.0F) * step;
    }
}

// The other signal turns fast against this one: what is left in the band is the mean over its phases.
void Converter::clip_below(const float* power, std::size_t n, Sample* samples) {
    for (std::size_t i = 0; i < n; ++i) {
        const float beyond = std::sqrt(power[i]);
        const Sample own = samples[i];
        if (std::max(std::abs(own.real()), std::abs(own.imag())) + beyond <= 1.0F) continue;
        samples[i] = {mean_clipped(own.real(), beyond), mean_clipped(own.imag(), beyond)};
    }
}

}  // namespace fadelab::medium
