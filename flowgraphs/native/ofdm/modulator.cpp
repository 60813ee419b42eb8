#include "modulator.hpp"

#include <volk/volk.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "arithmetic.hpp"

namespace gr::fadelab::ofdm {

namespace {

void scale(Sample* samples, std::size_t count, float by) {
    auto* values = reinterpret_cast<float*>(samples);
    volk_32f_s32f_multiply_32f(values, values, by, static_cast<unsigned>(2 * count));
}

// What liquid draws from rand() for a frame: as much as the last symbols of header and payload can need.
std::vector<unsigned> draws(std::size_t count) {
    const std::lock_guard<std::mutex> held(global_lock());
    std::srand(1);
    std::vector<unsigned> values(count);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the lock is held
    std::generate(values.begin(), values.end(), [] { return static_cast<unsigned>(std::rand()); });
    return values;
}

}  // namespace

Modulator::Modulator(const Format& format, const Modulation& modulation, const Fec& fec, float rms,
                     std::uint16_t network)
    : format_(format),
      modulation_(modulation),
      header_modulation_(modulation_named("bpsk")),
      fec_(fec.scheme()),
      header_fec_(header_fec()),
      rms_(rms),
      network_(network),
      training_(format),
      amplitude_(1.0F / std::sqrt(static_cast<float>(format.active().size()))),
      points_(points_of(modulation_)),
      header_points_(points_of(header_modulation_)),
      fill_(draws(2 * format.data().size())),
      fft_(format.subcarriers(), Fft::Direction::backward),
      postfix_(format.taper()) {
    scale(training_.samples.data(), training_.samples.size(), rms_);
}

void Modulator::set_mode(const Modulation& modulation, const Fec& fec) {
    if (modulation.scheme() != modulation_.scheme()) {
        modulation_ = modulation;
        points_ = points_of(modulation_);
    }
    fec_ = fec.scheme();
}

std::size_t Modulator::frame_samples(std::size_t nbytes) const {
    return format_.frame_samples(nbytes, modulation_, fec_);
}

void Modulator::modulate(const std::uint8_t* frame, std::size_t nbytes, std::vector<Sample>& burst) {
    burst.resize(frame_samples(nbytes));
    filled_ = 0;
    pilot_ = 0;
    Sample* to = std::copy(training_.samples.begin(), training_.samples.end(), burst.data());
    std::copy(training_.postfix.begin(), training_.postfix.end(), postfix_.begin());

    const Header header{sequence_++, network_, nbytes, modulation_.scheme(), fec_};
    const auto octets = header.octets();
    header_coder_.encode(octets.data(), octets.size(), header_fec_, coded_);
    scramble_data(coded_.data(), static_cast<unsigned>(coded_.size()));
    label(header_modulation_);
    write(header_points_, to);

    coder_.encode(frame, nbytes, fec_, coded_);
    label(modulation_);
    write(points_, to);

    const std::vector<float>& taper = training_.taper;
    for (std::size_t i = 0; i < taper.size(); ++i) {
        to[i] = postfix_[i] * taper[taper.size() - 1 - i];
    }
    scale(to, taper.size(), rms_);
}

Modulator::Points Modulator::points_of(const Modulation& modulation) const {
    const Modem modem = [&] {
        const std::lock_guard<std::mutex> held(global_lock());
        return Modem(modemcf_create(static_cast<modulation_scheme>(modulation.scheme())));
    }();
    Points points{};
    for (unsigned bits = 0; bits < 1U << modulation.bits; ++bits) {
        modemcf_modulate(modem.get(), bits, &points[bits]);
        points[bits] *= amplitude_;
    }
    return points;
}

// Divides coded octets among subcarriers, the first bit highest, and fills the last symbol.
void Modulator::label(const Modulation& modulation) {
    const std::size_t columns = format_.data().size();
    const std::size_t count = (8 * coded_.size() + modulation.bits - 1) / modulation.bits;
    labels_.resize((count + columns - 1) / columns * columns);
    const unsigned width = modulation.bits;
    const unsigned mask = (1U << width) - 1;
    // kept here: an octet that is written may be a part of any object, so that members would be read again each time
    const std::uint8_t* const coded = coded_.data();
    const std::size_t octets = coded_.size();
    std::uint8_t* const labels = labels_.data();
    std::uint32_t held = 0;
    unsigned bits = 0;
    std::size_t octet = 0;
    for (std::size_t at = 0; at < count; ++at) {
        if (bits < width) {
            held = held << 8 | (octet < octets ? coded[octet] : 0U);
            ++octet;
            bits += 8;
        }
        bits -= width;
        labels[at] = static_cast<std::uint8_t>(held >> bits & mask);
    }
    for (std::size_t at = count; at < labels_.size(); ++at) {
        labels_[at] = static_cast<std::uint8_t>(fill_[filled_++] & mask);
    }
}

// Writes the symbols of `labels_`, and moves `to` behind them.
void Modulator::write(const Points& points, Sample*& to) {
    const std::vector<std::size_t>& data = format_.data();
    Sample* carriers = fft_.in();
    for (std::size_t at = 0; at < labels_.size(); at += data.size()) {
        for (std::size_t column = 0; column < data.size(); ++column) {
            carriers[data[column]] = points[labels_[at + column]];
        }
        for (const std::size_t pilot : format_.pilots()) {
            carriers[pilot] = training_.pilots[pilot_] * amplitude_;
            pilot_ = pilot_ + 1 == training_.pilots.size() ? 0 : pilot_ + 1;
        }
        write_symbol(to);
        to += format_.symbol_samples();
    }
}

// Writes what stands in the FFT's input, with its prefix and the end of the symbol before.
void Modulator::write_symbol(Sample* to) {
    fft_.execute();
    const std::size_t prefix = format_.cyclic_prefix();
    const Sample* symbol = fft_.out();
    std::copy_n(symbol + fft_.size() - prefix, prefix, to);
    std::copy_n(symbol, fft_.size(), to + prefix);
    const std::vector<float>& taper = training_.taper;
    for (std::size_t i = 0; i < taper.size(); ++i) {
        to[i] = to[i] * taper[i] + postfix_[i] * taper[taper.size() - 1 - i];
    }
    std::copy_n(symbol, taper.size(), postfix_.begin());
    scale(to, format_.symbol_samples(), rms_);
}

}  // namespace gr::fadelab::ofdm
