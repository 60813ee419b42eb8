#include "equalizer.hpp"

#include <algorithm>
#include <cmath>

#include "arithmetic.hpp"
#include "rotation.hpp"
#include "tap_basis.hpp"

namespace gr::fadelab::ofdm {

namespace {

const Modulation& header_modulation() {
    return modulation_named("bpsk");
}

std::vector<std::size_t> places(const std::vector<std::size_t>& of, const std::vector<std::size_t>& among) {
    std::vector<std::size_t> found;
    found.reserve(of.size());
    for (const std::size_t value : of) {
        found.push_back(std::lower_bound(among.begin(), among.end(), value) - among.begin());
    }
    return found;
}

FftPlan plan(std::vector<Sample>& from, std::vector<Sample>& to, int direction) {
    const std::lock_guard<std::mutex> held(global_lock());
    return FftPlan(fft_create_plan(static_cast<unsigned>(from.size()), from.data(), to.data(), direction, 0));
}

}  // namespace

Equalizer::Equalizer(const Format& format, const Training& training)
    : format_(format),
      carriers_(format.active().size()),
      data_(places(format.data(), format.active())),
      pilots_(places(format.pilots(), format.active())),
      s1_(carriers_),
      pilot_sequence_(training.pilots),
      basis_(tap_basis(format)),
      time_(format.subcarriers()),
      frequency_(format.subcarriers()),
      forward_(plan(time_, frequency_, LIQUID_FFT_FORWARD)),
      backward_(plan(frequency_, time_, LIQUID_FFT_BACKWARD)),
      turns_(format.subcarriers(), Sample(1.0F, 0.0F)),
      training_(carriers_),
      channel_(carriers_),
      inverse_(data_.size()),
      weights_(carriers_) {
    for (const Modulation& modulation : kModulations) {
        labels_.emplace(modulation.bits, Labels(modulation));
    }
    transform(training.samples.data() + 2 * format.symbol_samples() + format.cyclic_prefix(), 0.0, s1_.data());
    for (const Sample& value : s1_) {
        amplitude_ += std::abs(value) / static_cast<float>(carriers_);
    }
}

bool Equalizer::look(const Sample* samples, std::size_t count, double cfo, double drift, const Modulation& modulation,
                     unsigned fec, std::vector<std::uint8_t>& payload, Result& result) {
    const std::size_t symbols = count / format_.symbol_samples() - kTrainingSymbols;
    hear(samples, cfo, drift, symbols);
    estimate_channel();
    follow_pilots(symbols);
    decide_all(symbols, modulation);
    refine(symbols);
    decide_all(symbols, modulation);
    if (!decode(symbols, modulation, fec, payload)) {
        return false;
    }
    result = measure(symbols);
    return true;
}

// Puts the active subcarriers of a symbol's samples into `carriers`, its carrier offset apart from a common phase gone.
void Equalizer::transform(const Sample* symbol, double phase, Sample* carriers) {
    for (std::size_t i = 0; i < time_.size(); ++i) {
        time_[i] = product(symbol[i], turns_[i]);
    }
    fft_execute(forward_.get());
    const Sample turn(static_cast<float>(std::cos(phase)), static_cast<float>(std::sin(phase)));
    for (std::size_t c = 0; c < carriers_; ++c) {
        carriers[c] = product(frequency_[format_.active()[c]], turn);
    }
}

// Fills `training_` and `heard_`.
void Equalizer::hear(const Sample* samples, double cfo, double drift, std::size_t symbols) {
    const std::size_t step = format_.symbol_samples();
    for (std::size_t i = 0; i < turns_.size(); ++i) {
        const double phase = -cfo * static_cast<double>(i);
        turns_[i] = {static_cast<float>(std::cos(phase)), static_cast<float>(std::sin(phase))};
    }
    const Sample* s1 = samples + (kTrainingSymbols - 1) * step;
    const std::size_t at = format_.cyclic_prefix() - advance(s1 + format_.cyclic_prefix());
    const auto phase = [&](std::size_t symbol) {
        return -cfo * static_cast<double>((kTrainingSymbols - 1 + symbol) * step + at);
    };
    transform(s1 + at, phase(0), training_.data());
    heard_.resize(symbols * carriers_);
    sent_.resize(symbols * carriers_);
    for (std::size_t s = 0; s < symbols; ++s) {
        Sample* row = heard_.data() + s * carriers_;
        const double late = drift * static_cast<double>(s + 1);
        // the samples end with the frame
        const auto most = static_cast<double>((symbols - 1 - s) * step + format_.cyclic_prefix() - at);
        const double moved = std::min(std::rint(late), most);
        const auto cut = static_cast<std::ptrdiff_t>((s + 1) * step + at) + static_cast<std::ptrdiff_t>(moved);
        transform(s1 + cut, phase(s + 1) - cfo * moved, row);
        if (late != 0.0) {
            turn_back(late - moved, row);
        }
        for (std::size_t c = 0; c < carriers_; ++c) {
            row[c] /= amplitude_;
        }
    }
}

// Takes a delay of `late` samples away.
void Equalizer::turn_back(double late, Sample* carriers) const {
    const auto size = static_cast<double>(format_.subcarriers());
    for (std::size_t c = 0; c < carriers_; ++c) {
        const auto carrier = static_cast<double>(format_.active()[c]);
        const double frequency = carrier < size / 2.0 ? carrier : carrier - size;
        carriers[c] = product(carriers[c], phasor(2.0 * M_PI * frequency * late / size));
    }
}

// How long before the strongest path a symbol is best cut, so that all paths' symbols are in. `s1` has no prefix.
std::size_t Equalizer::advance(const Sample* s1) {
    transform(s1, 0.0, training_.data());
    std::fill(frequency_.begin(), frequency_.end(), Sample());
    for (std::size_t c = 0; c < carriers_; ++c) {
        frequency_[format_.active()[c]] = product(training_[c], inverse(s1_[c]));
    }
    fft_execute(backward_.get());
    const std::size_t usable = format_.cyclic_prefix() - format_.taper();
    const std::size_t size = time_.size();
    std::size_t best = 0;
    double most = -1.0;
    for (std::size_t advance = 0; advance < usable; ++advance) {
        double energy = 0.0;
        for (std::size_t tap = 0; tap < usable; ++tap) {
            energy += power(time_[(size - advance + tap) % size]);
        }
        if (energy > most) {
            best = advance;
            most = energy;
        }
    }
    return best;
}

// The channel from S1, as so many taps.
void Equalizer::estimate_channel() {
    std::fill(channel_.begin(), channel_.end(), Sample());
    for (std::size_t c = 0; c < carriers_; ++c) {
        training_[c] = product(training_[c], inverse(s1_[c]));
    }
    for (const auto& direction : basis_) {
        Sample share;
        for (std::size_t c = 0; c < carriers_; ++c) {
            share += product_conjugate(training_[c], direction[c]);
        }
        for (std::size_t c = 0; c < carriers_; ++c) {
            channel_[c] += product(direction[c], share);
        }
    }
}

// The pilots into `sent_`, and each symbol's phase from them.
void Equalizer::follow_pilots(std::size_t symbols) {
    gain_.resize(symbols);
    std::size_t at = 0;
    for (std::size_t s = 0; s < symbols; ++s) {
        const Sample* heard = heard_.data() + s * carriers_;
        Sample gain;
        for (const std::size_t pilot : pilots_) {
            const float value = pilot_sequence_[at];
            at = at + 1 == pilot_sequence_.size() ? 0 : at + 1;
            sent_[s * carriers_ + pilot] = value;
            gain += product_conjugate(heard[pilot] * value, channel_[pilot]);
        }
        gain_[s] = gain / std::max(std::sqrt(power(gain)), 1e-20F);
    }
}

// Symbols as they came through the channel and back, and the points nearest to them, which go into `sent_`.
void Equalizer::decide_all(std::size_t symbols, const Modulation& modulation) {
    const std::size_t columns = data_.size();
    equalised_.resize(symbols * columns);
    decided_.resize(symbols * columns);
    for (std::size_t d = 0; d < columns; ++d) {
        inverse_[d] = inverse(channel_[data_[d]]);
    }
    for (std::size_t s = 0; s < symbols; ++s) {
        const Sample back = inverse(gain_[s]);
        const Sample* heard = heard_.data() + s * carriers_;
        Sample* row = equalised_.data() + s * columns;
        for (std::size_t d = 0; d < columns; ++d) {
            row[d] = product(product(heard[data_[d]], inverse_[d]), back);
        }
    }
    const std::size_t header = format_.header_symbols() * columns;
    decide(header_modulation(), equalised_.data(), header, decided_.data());
    decide(modulation, equalised_.data() + header, symbols * columns - header, decided_.data() + header);
    for (std::size_t s = 0; s < symbols; ++s) {
        for (std::size_t d = 0; d < columns; ++d) {
            sent_[s * carriers_ + data_[d]] = decided_[s * columns + d];
        }
    }
}

// The gain of every symbol, then the channel of every subcarrier, by least squares with the decisions as pilots.
void Equalizer::refine(std::size_t symbols) {
    for (std::size_t c = 0; c < carriers_; ++c) {
        weights_[c] = power(channel_[c]);
    }
    for (std::size_t s = 0; s < symbols; ++s) {
        Sample match;
        float energy = 0.0F;
        for (std::size_t c = 0; c < carriers_; ++c) {
            const Sample sent = sent_[s * carriers_ + c];
            match += product_conjugate(product_conjugate(heard_[s * carriers_ + c], sent), channel_[c]);
            energy += power(sent) * weights_[c];
        }
        gain_[s] = match / floored(energy);
    }
    std::fill(channel_.begin(), channel_.end(), Sample());
    std::fill(weights_.begin(), weights_.end(), 0.0F);
    for (std::size_t s = 0; s < symbols; ++s) {
        const float gain_power = power(gain_[s]);
        for (std::size_t c = 0; c < carriers_; ++c) {
            const Sample sent = sent_[s * carriers_ + c];
            channel_[c] += product_conjugate(product_conjugate(heard_[s * carriers_ + c], sent), gain_[s]);
            weights_[c] += power(sent) * gain_power;
        }
    }
    for (std::size_t c = 0; c < carriers_; ++c) {
        channel_[c] /= floored(weights_[c]);
    }
}

bool Equalizer::decode(std::size_t symbols, const Modulation& modulation, unsigned fec,
                       std::vector<std::uint8_t>& payload) {
    const std::size_t header = format_.header_symbols() * data_.size();
    coded_.resize(encoded_bytes(payload.size(), fec));
    labels_.at(modulation.bits).demap(decided_.data() + header, symbols * data_.size() - header, coded_);
    const Packetizer packetizer = [&] {
        const std::lock_guard<std::mutex> held(global_lock());
        return Packetizer(packetizer_create(static_cast<unsigned>(payload.size()), static_cast<int>(crc32_scheme()),
                                            static_cast<int>(fec), static_cast<int>(fec_named("none").scheme())));
    }();
    std::vector<std::uint8_t> octets(payload.size());
    if (packetizer_decode(packetizer.get(), coded_.data(), octets.data()) == 0) {
        return false;
    }
    payload = octets;
    return true;
}

Equalizer::Result Equalizer::measure(std::size_t symbols) const {
    double signal = 0.0;
    double noise = 0.0;
    for (std::size_t s = 0; s < symbols; ++s) {
        for (std::size_t c = 0; c < carriers_; ++c) {
            const Sample expected = product(product(gain_[s], channel_[c]), sent_[s * carriers_ + c]);
            signal += power(expected);
            noise += power(heard_[s * carriers_ + c] - expected);
        }
    }
    double points = 0.0;
    double errors = 0.0;
    for (std::size_t i = format_.header_symbols() * data_.size(); i < decided_.size(); ++i) {
        points += power(decided_[i]);
        errors += power(equalised_[i] - decided_[i]);
    }
    return {decibels(signal / std::max(noise, 1e-20)), decibels(errors / std::max(points, 1e-20))};
}

}  // namespace gr::fadelab::ofdm
