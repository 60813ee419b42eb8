#include "demodulator.hpp"

#include <volk/volk.h>

#include <algorithm>
#include <cmath>

#include "arithmetic.hpp"
#include "rotation.hpp"

namespace gr::fadelab::ofdm {

namespace {

// Symbols of a payload from which its EVM says more than that of the header.
constexpr std::size_t kManySymbols = 256;
// Symbols of a payload that are kept to be looked at.
constexpr std::size_t kShownSymbols = 256;
// Amplitude and phase over frequency are polynomials of order 4.
constexpr double kPolynomial = 5.0;
// Symbols that may be asked for when a frame has just been detected: its training, and what may be taken for it.
constexpr std::size_t kBeforeFrame = 2 * kTrainingSymbols + 4;
// Samples worked on at a time.
constexpr std::size_t kStep = 1U << 14;
// Samples whose powers are added as floats before they go to a double.
constexpr std::size_t kRun = 4096;

std::size_t history_of(const Format& format) {
    const std::size_t longest = format.symbols(kMaxFrameBytes, modulation_named("bpsk"), fec_named("rep5").scheme());
    return (longest + 1) * format.symbol_samples() + kStep;
}

double mean_power(const Sample* samples, std::size_t count) {
    double sum = 0.0;
    for (std::size_t at = 0; at < count; at += kRun) {
        const std::size_t run = std::min(kRun, count - at);
        const auto* values = reinterpret_cast<const float*>(samples + at);
        float part = 0.0F;
        volk_32f_x2_dot_prod_32f(&part, values, values, static_cast<unsigned>(2 * run));
        sum += part;
    }
    return sum / static_cast<double>(count);
}

}  // namespace

Demodulator::Demodulator(const Format& format, std::uint16_t network, std::size_t reach)
    : format_(format),
      lag_(format.cyclic_prefix()),
      history_(history_of(format)),
      training_(format),
      equalizer_(format, training_),
      synchronizer_(format, training_, reach),
      decoder_(format, network),
      evm_at_0_db_(evm_at_0_db()),
      turned_(training_.samples.size()) {}

void Demodulator::feed(const Sample* samples, std::size_t count, const Take& take) {
    for (std::size_t at = 0; at < count; at += kStep) {
        history_.append(samples + at, std::min(kStep, count - at));
        execute(take, lag_);
        if (synchronizer_.seeking()) {
            history_.forget(kBeforeFrame * format_.symbol_samples());
        }
    }
}

void Demodulator::gap(const Take& take) {
    execute(take, 0);
    synchronizer_.seek_from(history_.end());
}

Shown Demodulator::constellation() const {
    const std::lock_guard<std::mutex> held(shown_lock_);
    return shown_;
}

void Demodulator::execute(const Take& take, std::size_t lag) {
    while (history_.end() >= synchronizer_.due() + lag) {
        const std::uint64_t now = synchronizer_.due();
        switch (synchronizer_.step(history_, decoder_.place())) {
            case Synchronizer::Found::nothing:
                break;
            case Synchronizer::Found::training:
                decoder_.begin();
                expect(now, format_.header_symbols());
                break;
            case Synchronizer::Found::symbol:
                const bool in_header = decoder_.in_header();
                const FrameDecoder::Progress progress = decoder_.take();
                if (in_header && !decoder_.in_header() && progress == FrameDecoder::Progress::more) {
                    expect(now, decoder_.symbols_left());
                }
                if (progress == FrameDecoder::Progress::decoded) {
                    report(now);
                    take(report_);
                }
                if (progress != FrameDecoder::Progress::more) {
                    synchronizer_.release();
                }
        }
    }
}

// So many symbols of the open frame are to come after sample `now`.
void Demodulator::expect(std::uint64_t now, std::size_t symbols) {
    busy_until_ = now + symbols * format_.symbol_samples();
}

// Fills `report_` for the frame that is decoded, the stream's first `decoded_at` samples being known.
void Demodulator::report(std::uint64_t decoded_at) {
    const Header& header = decoder_.header();
    const Modulation& modulation = decoder_.modulation();
    report_.payload = decoder_.payload();
    report_.crc_ok = decoder_.crc_ok();
    report_.sequence = header.sequence;
    report_.evm_db = decibels(decoder_.error());
    report_.cfo = synchronizer_.cfo();
    report_.mode = mode_name(modulation, header.fec);
    // else the header's, whose BPSK is decided rightly for sure
    const bool enough = report_.crc_ok && decoder_.count() >= kManySymbols;
    report_.snr_db = evm_at_0_db_ - (enough ? report_.evm_db : decibels(decoder_.header_error()));
    show();

    const std::size_t nsamples =
        format_.symbols(report_.payload.size(), modulation, header.fec) * format_.symbol_samples();
    report_.nsamples = nsamples + format_.taper();
    report_.sample = find();
    // fewer of a frame that had begun before the first sample
    const std::uint64_t known = std::min<std::uint64_t>(decoded_at + lag_, history_.end());
    const std::size_t there = std::min<std::uint64_t>(nsamples, known - report_.sample);
    const Sample* samples = history_.read(report_.sample, there);
    report_.rssi_db = decibels(mean_power(samples, there));
    Equalizer::Result better{};
    if (!report_.crc_ok && there == nsamples &&
        equalizer_.look(samples, nsamples, report_.cfo, synchronizer_.drift(), modulation, header.fec, report_.payload,
                        better)) {
        report_.crc_ok = true;
        report_.evm_db = better.evm_db;
        report_.snr_db = better.snr_db + decibels(static_cast<double>(format_.active().size()) /
                                                  static_cast<double>(format_.subcarriers()));
    }
}

void Demodulator::show() {
    const std::lock_guard<std::mutex> held(shown_lock_);
    shown_.symbols.assign(decoder_.symbols(), decoder_.symbols() + std::min(decoder_.count(), kShownSymbols));
    shown_.modulation = decoder_.modulation().name;
}

// Where the training fits best, no more than a cyclic prefix from where the synchronizer has it.
std::uint64_t Demodulator::find() {
    const std::vector<Sample>& training = training_.samples;
    const auto slack = static_cast<std::int64_t>(format_.cyclic_prefix());
    const std::int64_t first = std::max<std::int64_t>(synchronizer_.start() - slack, 0);
    const std::int64_t last = std::max(synchronizer_.start() + slack, first);
    const std::size_t size = training.size();
    rotate(training.data(), size, Sample(1.0F, 0.0F), phasor(report_.cfo), turned_.data());
    const Sample* samples = history_.read(first, static_cast<std::size_t>(last - first) + size);
    double energy = 0.0;
    for (std::size_t i = 0; i + 1 < size; ++i) {
        energy += power(samples[i]);
    }
    std::int64_t best = 0;
    double most = -1.0;
    for (std::int64_t at = 0; at <= last - first; ++at) {
        energy += power(samples[at + size - 1]);
        Sample match;
        volk_32fc_x2_conjugate_dot_prod_32fc(&match, samples + at, turned_.data(), static_cast<unsigned>(size));
        const double likeness = power(match) / std::max(energy, 1e-20);
        if (likeness > most) {
            best = at;
            most = likeness;
        }
        energy -= power(samples[at]);
    }
    return first + best;
}

// EVM (dB) that an SNR per sample of 0 dB makes.
//
// Noise is in all subcarriers, the signal in the active ones; the equaliser, of so many parameters, is as noisy as what
// it is taken from, one symbol, and so is the phase that the pilots give every symbol.
double Demodulator::evm_at_0_db() const {
    const auto active = static_cast<double>(format_.active().size());
    const auto pilots = static_cast<double>(format_.pilots().size());
    return decibels(active / static_cast<double>(format_.subcarriers()) *
                    (1.0 + kPolynomial / active + 1.0 / (2.0 * pilots)));
}

}  // namespace gr::fadelab::ofdm
