#include "demodulator.hpp"

#include <volk/volk.h>

#include <algorithm>
#include <cmath>

#include "arithmetic.hpp"
#include "constellation.hpp"
#include "modulator.hpp"

namespace gr::fadelab::ofdm {

namespace {

// Symbols of a payload from which its EVM says more than that of the header.
constexpr unsigned kManySymbols = 256;
// Symbols of a payload that are kept to be looked at.
constexpr unsigned kShownSymbols = 256;
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

std::vector<Sample> training_of(const Format& format) {
    std::vector<Sample> burst;
    const std::uint8_t octet = 0;
    Modulator(format, modulation_named("qpsk"), fec_named("none"), 1.0F, 0).modulate(&octet, 1, burst);
    burst.resize(kTrainingSymbols * format.symbol_samples());
    return burst;
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

Demodulator::Demodulator(const Format& format, std::uint16_t network)
    : format_(format),
      network_(network),
      block_(format.symbol_samples()),
      lag_(format.cyclic_prefix()),
      history_(history_of(format)),
      training_(training_of(format)),
      equalizer_(format, training_),
      evm_at_0_db_(evm_at_0_db()),
      turned_(training_.size()) {
    const std::lock_guard<std::mutex> held(global_lock());
    synchronizer_.reset(ofdmflexframesync_create(
        static_cast<unsigned>(format.subcarriers()), static_cast<unsigned>(format.cyclic_prefix()),
        static_cast<unsigned>(format.taper()), nullptr, &Demodulator::decoded, this));
    ofdmflexframesync_set_header_len(synchronizer_.get(), kHeaderBytes);
}

void Demodulator::feed(const Sample* samples, std::size_t count, const Take& take) {
    for (std::size_t at = 0; at < count; at += kStep) {
        history_.append(samples + at, std::min(kStep, count - at));
        execute(take);
        if (ofdmflexframesync_is_frame_open(synchronizer_.get()) == 0) {
            history_.forget(kBeforeFrame * format_.symbol_samples());
        }
    }
}

Shown Demodulator::constellation() const {
    const std::lock_guard<std::mutex> held(shown_lock_);
    return shown_;
}

// Gives liquid what it has not seen yet, block by block.
void Demodulator::execute(const Take& take) {
    while (history_.end() > seen_ + lag_) {
        const std::uint64_t block_start = seen_ / block_ * block_;
        const std::uint64_t stop = std::min(block_start + block_, history_.end() - lag_);
        while (seen_ < stop) {
            std::size_t piece = 0;
            Sample* samples = history_.piece(seen_, stop - seen_, piece);
            ofdmflexframesync_execute(synchronizer_.get(), samples, static_cast<unsigned>(piece));
            seen_ += piece;
        }
        if (waiting_) {
            waiting_ = false;
            measure(block_start);
            take(report_);
        }
    }
}

int Demodulator::decoded(unsigned char* header, int header_ok, unsigned char* payload, unsigned nbytes, int crc_ok,
                         framesyncstats_s stats, void* self) {
    if (header_ok != 0 && nbytes >= 1 && nbytes <= kMaxFrameBytes) {
        static_cast<Demodulator*>(self)->handle(header, payload, nbytes, crc_ok != 0, stats);
    }
    return 0;
}

// Takes over what liquid keeps only during its call.
void Demodulator::handle(const unsigned char* header, const unsigned char* payload, std::size_t nbytes, bool crc_ok,
                         const framesyncstats_s& stats) {
    const Modulation* modulation = modulation_numbered(stats.mod_scheme);
    const auto octet = [header](std::size_t at, unsigned shift) { return std::uint32_t{header[at]} << shift; };
    if (modulation == nullptr || (octet(4, 8) | octet(5, 0)) != network_) {
        return;
    }
    report_.payload.assign(payload, payload + nbytes);
    report_.crc_ok = crc_ok;
    report_.sequence = octet(0, 24) | octet(1, 16) | octet(2, 8) | octet(3, 0);
    report_.evm_db = decibels(error_power(*modulation, stats.framesyms, stats.num_framesyms));
    report_.cfo = stats.cfo;
    report_.mode = mode_name(*modulation, stats.fec0);
    // else the header's, whose BPSK is decided rightly for sure
    const bool enough = crc_ok && stats.num_framesyms >= kManySymbols;
    decoded_ = {modulation, stats.fec0, enough ? report_.evm_db : double{stats.evm}};
    waiting_ = true;
    const std::lock_guard<std::mutex> held(shown_lock_);
    shown_.symbols.assign(stats.framesyms, stats.framesyms + std::min(stats.num_framesyms, kShownSymbols));
    shown_.modulation = modulation->name;
}

// Adds sample index, levels and SNR to the report of a frame that ended in the block that starts at `block_start`.
void Demodulator::measure(std::uint64_t block_start) {
    const std::size_t nsamples =
        format_.symbols(report_.payload.size(), *decoded_.modulation, decoded_.fec) * format_.symbol_samples();
    report_.sample = find(static_cast<std::int64_t>(block_start) - static_cast<std::int64_t>(nsamples));
    report_.nsamples = nsamples + format_.taper();
    report_.snr_db = evm_at_0_db_ - decoded_.noise_db;
    const Sample* samples = history_.read(report_.sample, nsamples);
    report_.rssi_db = decibels(mean_power(samples, nsamples));
    Equalizer::Result better{};
    if (!report_.crc_ok &&
        equalizer_.look(samples, nsamples, report_.cfo, *decoded_.modulation, decoded_.fec, report_.payload, better)) {
        report_.crc_ok = true;
        report_.evm_db = better.evm_db;
        report_.snr_db = better.snr_db + decibels(static_cast<double>(format_.active().size()) /
                                                  static_cast<double>(format_.subcarriers()));
    }
}

// Where the training that starts in the block at `earliest` fits best.
std::uint64_t Demodulator::find(std::int64_t earliest) {
    const auto slack = static_cast<std::int64_t>(format_.cyclic_prefix());
    const std::int64_t first = std::max<std::int64_t>(earliest - slack, 0);
    const auto count = static_cast<std::size_t>(earliest + static_cast<std::int64_t>(block_) + slack - first);
    const std::size_t size = training_.size();
    for (std::size_t i = 0; i < size; ++i) {
        const double phase = report_.cfo * static_cast<double>(i);
        turned_[i] = product(training_[i], {static_cast<float>(std::cos(phase)), static_cast<float>(std::sin(phase))});
    }
    const Sample* samples = history_.read(first, count - 1 + size);
    double energy = 0.0;
    for (std::size_t i = 0; i + 1 < size; ++i) {
        energy += power(samples[i]);
    }
    std::size_t best = 0;
    double most = -1.0;
    for (std::size_t at = 0; at < count; ++at) {
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
