#include "flaws.hpp"

#include <algorithm>

#include "air.hpp"
#include "medium/random.hpp"

namespace fadelab {
namespace {

std::optional<medium::Rotation> rotation(const medium::Impairments& impairments, bool tx, double rate_sps,
                                         const Origin& origin) {
    const medium::Chain& chain = tx ? impairments.tx : impairments.rx;
    if (!medium::Rotation::needed(impairments, chain)) return std::nullopt;
    return medium::Rotation(impairments, chain, rate_sps, origin.device_seed(), origin.oscillator_seed(tx));
}

}  // namespace

std::uint64_t Origin::device_seed() const { return medium::hash(medium::hash(air_seed, "oscillator"), serial); }

std::uint64_t Origin::oscillator_seed(bool tx) const { return medium::hash(device_seed(), tx ? 1 : 0); }

std::uint64_t Origin::chain_seed(bool tx) const {
    return medium::hash(medium::hash(medium::hash(air_seed, "chain"), port_name(serial, channel)), tx ? 1 : 0);
}

TxFlaws::TxFlaws(const medium::Impairments& impairments, double rate_sps, const Origin& origin)
    : converter_(impairments.tx),
      imbalance_(impairments.tx),
      tones_(impairments.tx, false, rate_sps, origin.chain_seed(true)),
      amplifier_(impairments),
      rotation_(rotation(impairments, true, rate_sps, origin)) {}

std::optional<TxFlaws> TxFlaws::of(const medium::Impairments& impairments, double rate_sps, const Origin& origin) {
    if (impairments == medium::Impairments()) return std::nullopt;
    return TxFlaws(impairments, rate_sps, origin);
}

void TxFlaws::apply(const Grid& grid, std::int64_t tick, std::int64_t start_tick, const Tunings& tunings,
                    std::size_t n, Sample* samples) {
    converter_.apply(n, samples);
    imbalance_.apply(n, samples);
    tones_.add(tick, n, samples);
    amplifier_.ramp(tick - start_tick, grid.rate_sps, n, samples);
    while (n > 0) {
        const Tuned tuned = tuned_at(tunings, grid.ns_of(tick));
        std::size_t piece = n;
        if (tuned.until_ns != kNever) {
            piece = std::min<std::size_t>(n, static_cast<std::size_t>(grid.first_tick_at(tuned.until_ns) - tick));
        }
        amplifier_.apply(tuned.full_scale_dbm, piece, samples);
        if (rotation_) rotation_->turn(tick, piece, tuned.freq_hz, 1.0, samples);
        tick += static_cast<std::int64_t>(piece);
        samples += piece;
        n -= piece;
    }
}

RxFlaws::RxFlaws(const medium::Impairments& impairments, double rate_sps, const Origin& origin)
    : rotation_(rotation(impairments, false, rate_sps, origin)),
      filter_(impairments),
      imbalance_(impairments.rx),
      tones_(impairments.rx, true, rate_sps, origin.chain_seed(false)),
      converter_(impairments.rx) {}

std::optional<RxFlaws> RxFlaws::of(const medium::Impairments& impairments, double rate_sps, const Origin& origin) {
    if (impairments == medium::Impairments()) return std::nullopt;
    return RxFlaws(impairments, rate_sps, origin);
}

void RxFlaws::apply(std::int64_t tick, double freq_hz, std::size_t n, const std::vector<float>& beyond,
                    Sample* samples) {
    const std::size_t around = reach();
    if (rotation_) {
        rotation_->turn(tick - static_cast<std::int64_t>(around), n + 2 * around, freq_hz, -1.0, samples);
    }
    if (around > 0) filter_.apply(samples, n, samples);
    imbalance_.apply(n, samples);
    tones_.add(tick, n, samples);
    if (!beyond.empty()) medium::Converter::clip_below(beyond.data() + around, n, samples);
    converter_.apply(n, samples);
}

}  // namespace fadelab
