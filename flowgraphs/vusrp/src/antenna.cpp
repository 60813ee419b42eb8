#include "antenna.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "medium/random.hpp"
#include "power.hpp"

namespace fadelab {
namespace {

constexpr std::size_t kPiece = 4096;           // samples mixed at a time
constexpr double kSettled = 16.0;              // time constants until nothing is left of a change
constexpr std::size_t kKnownPaths = 32;        // kept per transmitter; one more clears them
constexpr std::uint64_t kBeingWritten = 8192;  // samples of a ring that may be overwritten while they are read

std::string engineering(double value, const char* unit) {
    char text[48];
    const bool giga = std::abs(value) >= 1e9;
    static_cast<void>(std::snprintf(text, sizeof text, "%.10g %c%s", value / (giga ? 1e9 : 1e6), giga ? 'G' : 'M', unit));
    return text;
}

std::optional<medium::Drift> drift_of(const medium::Impairments& impairments, const Origin& origin) {
    const medium::Drift drift(impairments, origin.device_seed());
    return drift.still() ? std::nullopt : std::optional(drift);
}

}  // namespace

Antenna::Antenna(Radio& radio, std::size_t channel, std::function<void(const std::string&)> warn)
    : radio_(radio),
      channel_(channel),
      name_(port_name(radio.serial(), channel)),
      warn_(std::move(warn)),
      noise_(radio.air().seed(), medium::hash(0, name_)) {}

std::int64_t Antenna::lookahead(double rate_sps) {
    if (configured_ != radio_.air().changes()) configure();
    if (!wanders_) return kLookahead;
    return kLookahead + static_cast<std::int64_t>(std::ceil(2.0 * medium::kMostWander_s * rate_sps));
}

void Antenna::hear(const Grid& grid, std::int64_t tick, std::size_t n, Sample* out) {
    if (configured_ != radio_.air().changes()) configure();
    follow_flaws(grid.rate_sps);
    const Tunings& tunings = radio_.air().slot().rx[channel_].tunings;
    while (n > 0) {
        const Tuned tuned = tuned_at(tunings, grid.ns_of(tick));
        std::size_t piece = std::min(n, kPiece);
        if (tuned.until_ns != kNever) {
            piece = std::min<std::size_t>(piece, static_cast<std::size_t>(grid.first_tick_at(tuned.until_ns) - tick));
        }
        const std::size_t around = flaws_ ? flaws_->reach() : 0;
        const std::size_t mixed = piece + 2 * around;
        const std::int64_t first = tick - static_cast<std::int64_t>(around);
        Sample* heard = around > 0 ? around_.data() : out;
        const Hearing hearing{grid, tuned.freq_hz, first, mixed};
        std::fill_n(heard, mixed, Sample());
        std::fill(beyond_.begin(), beyond_.end(), 0.0F);
        for (std::size_t slot = 0; slot < kDevices; ++slot) {
            for (std::size_t channel = 0; channel < kChannels; ++channel) add_transmitter(slot, channel, hearing, heard);
        }
        for (Interferer& interferer : interferers_) add_interferer(interferer, hearing, heard);
        noise_.add(first, mixed, static_cast<float>(amplitude(noise_dbm(tuned, grid.rate_sps))), heard);

        auto* parts = reinterpret_cast<float*>(out);
        if (flaws_) {
            scale(hearing, tuned, heard);
            flaws_->apply(tick, tuned.freq_hz, piece, beyond_, heard);
            if (around > 0) std::copy_n(heard, piece, out);
            for (std::size_t i = 0; i < 2 * piece; ++i) parts[i] = std::clamp(parts[i], -1.0f, 1.0f);
        } else {
            const auto scale = static_cast<float>(amplitude(-tuned.full_scale_dbm));
            for (std::size_t i = 0; i < 2 * piece; ++i) parts[i] = std::clamp(parts[i] * scale, -1.0f, 1.0f);
        }
        if (tuned.offset != Sample()) {
            for (std::size_t i = 0; i < piece; ++i) out[i] -= tuned.offset;
        }
        balance(tuned.balance, piece, out);
        tick += static_cast<std::int64_t>(piece);
        out += piece;
        n -= piece;
    }
}

// Brings samples, and the power beyond the band, to units of full scale.
void Antenna::scale(const Hearing& hearing, const Tuned& tuned, Sample* samples) {
    auto factor = static_cast<float>(amplitude(-tuned.full_scale_dbm));
    const double constant_ns = impairments_.settling_us * 1e3;
    std::optional<GainStep> step;
    if (constant_ns > 0.0) {
        const auto inside = hearing.tick + static_cast<std::int64_t>(flaws_->reach());
        step = gain_step_at(radio_.air().slot().rx[channel_].tunings, hearing.grid.ns_of(inside));
    }
    for (std::size_t i = 0; i < hearing.n; ++i) {
        if (step) {
            const std::int64_t ns = hearing.grid.ns_of(hearing.tick + static_cast<std::int64_t>(i));
            const double since = static_cast<double>(ns - step->at_ns) / constant_ns;
            const double left = std::max(since, 0.0) < kSettled ? std::exp(-std::max(since, 0.0)) : 0.0;
            const double apart_db = step->full_scale_before_dbm - tuned.full_scale_dbm;
            factor = static_cast<float>(amplitude(-tuned.full_scale_dbm - left * apart_db));
            if (left == 0.0) step.reset();
        }
        samples[i] *= factor;
        if (!beyond_.empty()) beyond_[i] *= factor * factor;
    }
}

void Antenna::configure() {
    Air& air = radio_.air();
    configured_ = air.changes();
    radio_.follow_clock();
    const medium::Impairments own = radio_.impairments();
    const Air::Surroundings found = air.surroundings(name_);
    if (!(wandering_ == own)) {
        wandering_ = own;
        drift_ = drift_of(own, Origin{air.seed(), radio_.serial(), channel_});
        for (auto& channels : transmitters_) {
            for (Transmitter& transmitter : channels) transmitter.paths.clear();
        }
    }
    wanders_ = drift_.has_value();
    const double figure_db = own.noise_figure_highest_db;
    noise_dbm_hz_ =
        found.noise_dbm_hz.value_or(figure_db > 0.0 ? kThermalNoise_dbm_hz + figure_db : kDefaultNoise_dbm_hz);
    for (std::size_t slot = 0; slot < kDevices; ++slot) {
        for (std::size_t channel = 0; channel < found.links[slot].size(); ++channel) {
            Transmitter& transmitter = transmitters_[slot][channel];
            const Origin origin{air.seed(), found.serials[slot], channel};
            const std::string name = port_name(origin.serial, channel);
            medium::LinkOptions link = found.links[slot][channel];
            if (slot == air.slot_index() && own.isolation_db > 0.0) link.gain_db = -own.isolation_db;
            transmitter.own = slot == air.slot_index();
            medium::Impairments flaws = found.impairments[slot];
            if (air.header().slots[slot].disciplined != 0) flaws.warm_up_ppm = flaws.walk_ppm = 0.0;
            if (!(transmitter.flaws == flaws) || name != transmitter.name) {
                transmitter.flaws = flaws;
                transmitter.drift = drift_of(flaws, origin);
                transmitter.paths.clear();
                transmitter.leakage = medium::leakage(transmitter.flaws.tx, origin.chain_seed(true));
                transmitter.rotation.reset();
                transmitter.rotation_rate_sps = 0.0;
            }
            wanders_ = wanders_ || transmitter.drift.has_value();
            // a series may have been written anew
            if (name == transmitter.name && link.series_path[0] == '\0' && link == transmitter.link) continue;
            transmitter.name = name;
            transmitter.link = link;
            transmitter.paths.clear();
        }
    }
    interferers_.clear();
    for (const auto& settings : found.interferers) {
        Interferer& interferer = interferers_.emplace_back();
        interferer.settings = settings;
        try {
            interferer.recording = std::make_unique<medium::Interference>(settings.path);
        } catch (const std::runtime_error& error) {
            warn_once(settings.path, error.what());
        }
    }
}

void Antenna::add_transmitter(std::size_t slot, std::size_t channel, const Hearing& hearing, Sample* sum) {
    if (radio_.air().header().slots[slot].tx[channel].segments == 0) return;
    std::size_t stretches = 0;
    collect(slot, channel, hearing, stretches);
    collect_leakage(slot, channel, hearing, stretches);
    Transmitter& transmitter = transmitters_[slot][channel];
    for (std::size_t i = 0; i < stretches; ++i) {
        Stretch& stretch = transmitter.stretches[i];
        Hearing there = hearing;
        if (stretch.outside) there.freq_hz = stretch.freq_hz;
        medium::Path* way =
            path(transmitter, stretch.freq_hz, stretch.ppm, there);
        if (way == nullptr) continue;
        if (!stretch.outside) {
            way->mix(stretch, hearing.tick, hearing.n, sum);
            continue;
        }
        std::fill_n(outside_.begin(), hearing.n, Sample());
        way->mix(stretch, hearing.tick, hearing.n, outside_.data());
        for (std::size_t k = 0; k < hearing.n; ++k) beyond_[k] += std::norm(outside_[k]);
    }
}

Antenna::Stretch& Antenna::stretch_of(Transmitter& transmitter, std::size_t& stretches, double freq_hz, double ppm,
                                      const Sample* ring) {
    for (std::size_t i = 0; i < stretches; ++i) {
        Stretch& stretch = transmitter.stretches[i];
        if (stretch.freq_hz == freq_hz && stretch.ppm == ppm && stretch.ring == ring) return stretch;
    }
    if (transmitter.stretches.size() == stretches) transmitter.stretches.emplace_back();
    Stretch& stretch = transmitter.stretches[stretches++];
    stretch.freq_hz = freq_hz;
    stretch.ppm = ppm;
    stretch.ring = ring;
    stretch.outside = false;
    stretch.spans.clear();
    return stretch;
}

// A carrier leaks, and an offset is sent, since the device's first burst, at any sample rate.
void Antenna::collect_leakage(std::size_t slot, std::size_t channel, const Hearing& hearing, std::size_t& stretches) {
    Transmitter& transmitter = transmitters_[slot][channel];
    const Slot& other = radio_.air().header().slots[slot];
    const TxChannel& tx = other.tx[channel];
    if (tx.first_ns == kNever) return;
    const Tuned tuned = tuned_at(tx.tunings, hearing.grid.ns_of(hearing.tick));
    if (transmitter.leakage == Sample() && tuned.offset == Sample()) return;
    const Grid grid{hearing.grid.rate_sps, other.ppm};
    const medium::Path* way =
        path(transmitter, tuned.freq_hz, grid.ppm, hearing);
    if (way == nullptr) return;
    const medium::TickRange needs = way->needs(hearing.tick, hearing.n);
    if (transmitter.rotation_rate_sps != grid.rate_sps && medium::Rotation::needed(transmitter.flaws, transmitter.flaws.tx)) {
        const Origin origin{radio_.air().seed(), radio_.air().occupant(slot).serial, channel};
        transmitter.rotation.emplace(transmitter.flaws, transmitter.flaws.tx, grid.rate_sps, origin.device_seed(),
                                     origin.oscillator_seed(true));
        transmitter.rotation_rate_sps = grid.rate_sps;
    }
    for (std::int64_t first = std::max(needs.first, grid.first_tick_at(tx.first_ns)); first < needs.end;) {
        const Tuned at = tuned_at(tx.tunings, grid.ns_of(first));
        const std::int64_t until =
            at.until_ns == kNever ? needs.end : std::min(needs.end, grid.first_tick_at(at.until_ns));
        if (std::abs(at.freq_hz - hearing.freq_hz) <= hearing.grid.rate_sps / 2) {
            Stretch& stretch = stretch_of(transmitter, stretches, at.freq_hz, grid.ppm, nullptr);
            stretch.rotation = transmitter.rotation ? &*transmitter.rotation : nullptr;
            stretch.spans.push_back({first, until, 0, static_cast<float>(amplitude(at.full_scale_dbm)), {},
                                     transmitter.leakage + at.offset});
        }
        first = until;
    }
}

// The flaws at this rate, made anew when they are others.
void Antenna::follow_flaws(double rate_sps) {
    const std::uint64_t changes = radio_.impairment_changes();
    if (impairment_changes_ == changes && flaws_rate_sps_ == rate_sps) return;
    impairment_changes_ = changes;
    flaws_rate_sps_ = rate_sps;
    impairments_ = radio_.impairments();
    flaws_ = RxFlaws::of(impairments_, rate_sps, {radio_.air().seed(), radio_.serial(), channel_});
    const std::size_t most = kPiece + 2 * (flaws_ ? flaws_->reach() : 0);
    beyond_.assign(impairments_.wideband != 0.0 ? most : 0, 0.0F);
    outside_.resize(beyond_.size());
    around_.resize(most);
}

double Antenna::noise_dbm(const Tuned& tuned, double rate_sps) const {
    const double dbm = noise_dbm_hz_ + 10.0 * std::log10(rate_sps);
    if (impairments_.noise_figure_highest_db == 0.0) return dbm;
    double lowest_db = 0.0;
    double highest_db = 0.0;
    const Direction& direction = radio_.direction(false);
    for (const auto* elements : {&direction.gains, &direction.codec_gains}) {
        for (const GainElement& element : *elements) {
            lowest_db += element.db.first;
            highest_db += element.db.last;
        }
    }
    return dbm + medium::noise_figure_db(impairments_, tuned.gain_db, lowest_db, highest_db) -
           impairments_.noise_figure_highest_db;
}

// Finds the samples of a transmitter that can be heard, one stretch per frequency.
void Antenna::collect(std::size_t slot, std::size_t channel, const Hearing& hearing, std::size_t& stretches) {
    Transmitter& transmitter = transmitters_[slot][channel];
    const TxChannel& tx = radio_.air().header().slots[slot].tx[channel];
    const std::int64_t begins_ns = hearing.grid.ns_of(hearing.tick);
    const std::uint64_t count = tx.segments.load(std::memory_order_acquire);
    const std::uint64_t oldest = count > kSegments ? count - kSegments + 1 : 0;
    for (std::uint64_t i = count; i-- > oldest;) {
        const Segment& segment = tx.ring[i % kSegments];
        const Grid grid{segment.rate_sps, segment.ppm};
        const std::int64_t end = segment.start_tick + segment.length.load(std::memory_order_acquire);
        if (end == segment.start_tick) continue;
        if (grid.rate_sps != hearing.grid.rate_sps) {
            if (grid.ns_of(end) <= begins_ns) break;
            if (slot != radio_.air().slot_index()) {
                warn_once(transmitter.name, "transmits at " + engineering(grid.rate_sps, "sps") +
                                                ", this one receives at " + engineering(hearing.grid.rate_sps, "sps") +
                                                ": set both to one rate");
            }
            continue;
        }
        // A link's delays, and so the ticks it needs, are the same for every frequency.
        const Tuned tuned = tuned_at(tx.tunings, begins_ns);
        const medium::Path* way =
            path(transmitter, tuned.freq_hz, grid.ppm, hearing);
        if (way == nullptr) return;
        const medium::TickRange needs = way->needs(hearing.tick, hearing.n);
        if (end <= needs.first) break;
        const std::uint64_t written = tx.written.load(std::memory_order_acquire) + kBeingWritten;
        const std::uint64_t kept = written > kRingSamples ? written - kRingSamples : 0;
        std::int64_t first = std::max(segment.start_tick, needs.first);
        if (segment.first + static_cast<std::uint64_t>(first - segment.start_tick) < kept) {
            warn_once(transmitter.name,
                      "was heard later than its samples are kept: shorten the link's delay, or read faster");
            first = segment.start_tick + static_cast<std::int64_t>(kept - segment.first);
        }
        const std::int64_t last = std::min(end, needs.end);
        while (first < last) {
            const Tuned at = tuned_at(tx.tunings, grid.ns_of(first));
            const std::int64_t until = at.until_ns == kNever ? last : std::min(last, grid.first_tick_at(at.until_ns));
            const bool within = slot == radio_.air().slot_index()
                                    ? std::abs(at.freq_hz - hearing.freq_hz) <= hearing.grid.rate_sps / 2
                                    : near(transmitter.name, at.freq_hz, hearing);
            if (within || !beyond_.empty()) {
                const std::uint64_t position = segment.first + static_cast<std::uint64_t>(first - segment.start_tick);
                Stretch& stretch = stretch_of(transmitter, stretches, at.freq_hz, grid.ppm,
                                              radio_.air().samples(slot, channel));
                stretch.outside = !within;
                stretch.spans.push_back({first, until, position, static_cast<float>(amplitude(at.full_scale_dbm)),
                                          at.balance, {}});
            }
            first = until;
        }
        if (segment.start_tick <= needs.first) break;
    }
}

void Antenna::add_interferer(Interferer& interferer, const Hearing& hearing, Sample* sum) {
    if (!interferer.recording) return;
    const auto& settings = interferer.settings;
    if (settings.rate_sps != hearing.grid.rate_sps) {
        warn_once(settings.path, "is interference at " + engineering(settings.rate_sps, "sps") +
                                     ", this one receives at " + engineering(hearing.grid.rate_sps, "sps") +
                                     ": record it at that rate");
        return;
    }
    if (!near(settings.path, settings.freq_hz, hearing)) return;
    medium::LinkOptions direct;
    direct.gain_db = 0.0;
    medium::Path* way =
        path(interferer.paths, settings.path, direct, settings.freq_hz, 0.0, hearing, amplitude(settings.level_dbm),
             std::nullopt, drift_);
    if (way != nullptr) way->mix(*interferer.recording, hearing.tick, hearing.n, sum);
}

medium::Path* Antenna::path(std::vector<KnownPath>& paths, const std::string& from, const medium::LinkOptions& link,
                            double tx_hz, double tx_ppm, const Hearing& hearing, double scale,
                            const std::optional<medium::Drift>& tx_drift,
                            const std::optional<medium::Drift>& rx_drift) {
    for (KnownPath& known : paths) {
        if (known.tx_hz == tx_hz && known.rx_hz == hearing.freq_hz && known.tx_ppm == tx_ppm &&
            known.rx_grid == hearing.grid) {
            return known.path ? &*known.path : nullptr;
        }
    }
    if (paths.size() == kKnownPaths) paths.clear();
    KnownPath& made = paths.emplace_back(KnownPath{tx_hz, hearing.freq_hz, tx_ppm, hearing.grid, std::nullopt});
    medium::Ends ends;
    ends.rate_sps = hearing.grid.rate_sps;
    ends.tx_ppm = tx_ppm;
    ends.rx_ppm = hearing.grid.ppm;
    ends.freq_offset_hz = tx_hz * (1.0 + tx_ppm * 1e-6) - hearing.freq_hz * (1.0 + hearing.grid.ppm * 1e-6);
    ends.scale = scale;
    try {
        made.path.emplace(link, ends, medium::hash(medium::hash(radio_.air().seed(), from), name_),
                          medium::Wander(tx_drift, rx_drift, hearing.grid.rate_sps));
    } catch (const std::exception& error) {
        warn_once(from, std::string("has a link that cannot be: ") + error.what());
        return nullptr;
    }
    return &*made.path;
}

// A device's own clock is the same at both ends.
medium::Path* Antenna::path(Transmitter& transmitter, double tx_hz, double tx_ppm, const Hearing& hearing) {
    const std::optional<medium::Drift> none;
    return path(transmitter.paths, transmitter.name, transmitter.link, tx_hz, tx_ppm, hearing, 1.0,
                transmitter.own ? none : transmitter.drift, transmitter.own ? none : drift_);
}

bool Antenna::near(const std::string& from, double tx_hz, const Hearing& hearing) {
    if (std::abs(tx_hz - hearing.freq_hz) <= hearing.grid.rate_sps / 2) return true;
    warn_once(from, "transmits at " + engineering(tx_hz, "Hz") + ", this one receives at " +
                        engineering(hearing.freq_hz, "Hz") +
                        ", more than half the sample rate away: tune both to one frequency");
    return false;
}

void Antenna::warn_once(const std::string& from, const std::string& why) {
    if (warned_.insert(from).second) warn_(name_ + " does not hear " + from + ": it " + why);
}

const Sample* Antenna::Stretch::read(std::int64_t tick, std::size_t n, Sample* scratch) {
    const std::int64_t end = tick + static_cast<std::int64_t>(n);
    bool silent = true;
    for (const Span& span : spans) {
        const std::int64_t first = std::max(span.begin, tick);
        const std::int64_t last = std::min(span.end, end);
        if (first >= last) continue;
        if (silent) std::fill_n(scratch, n, Sample());
        silent = false;
        if (ring == nullptr) {
            std::fill(scratch + (first - tick), scratch + (last - tick), span.leakage * span.amplitude);
            if (rotation != nullptr) {
                rotation->turn(first, static_cast<std::size_t>(last - first), freq_hz, 1.0, scratch + (first - tick));
            }
            continue;
        }
        std::uint64_t position = span.first + static_cast<std::uint64_t>(first - span.begin);
        Sample* to = scratch + (first - tick);
        for (auto left = static_cast<std::size_t>(last - first); left > 0;) {
            const Sample* from = ring + position % kRingSamples;
            const std::size_t run = std::min(left, kRingSamples - position % kRingSamples);
            for (std::size_t i = 0; i < run; ++i) to[i] = from[i] * span.amplitude;
            balance(span.balance, run, to);
            to += run;
            position += run;
            left -= run;
        }
    }
    return silent ? nullptr : scratch;
}

}  // namespace fadelab
