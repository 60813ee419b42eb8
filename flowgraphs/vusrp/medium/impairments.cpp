#include "medium/impairments.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <tuple>

#include "medium/random.hpp"

namespace fadelab::medium {
namespace {

void check(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

bool within(double value, double lowest, double highest) { return value >= lowest && value <= highest; }

void validate(const Chain& chain) {
    check(within(chain.iq_gain_db, -6.0, 6.0), "iq_gain_db must lie within 6 dB");
    check(within(chain.iq_phase_deg, -30.0, 30.0), "iq_phase_deg must lie within 30 degrees");
    check(chain.leakage_dbfs <= 0.0, "leakage_dbfs must be at most 0");
    check(chain.bits == 0.0 || (within(chain.bits, 2.0, 24.0) && chain.bits == std::floor(chain.bits)),
          "bits must be whole, 2 to 24, or 0 for none");
    check(std::isfinite(chain.spur_hz), "spur_hz must be a finite number");
    check(chain.spur_dbfs <= 0.0, "spur_dbfs must be at most 0");
    for (std::size_t i = 0; i < kMaskPoints; ++i) {
        const MaskPoint& point = chain.mask[i];
        if (point.hz == 0.0) continue;
        check(within(point.hz, 1.0, 1e9), "offsets of a mask lie within 1 Hz and 1 GHz");
        check(within(point.dbc_hz, -200.0, -20.0), "levels of a mask lie within -200 and -20 dBc/Hz");
        if (i == 0) continue;
        const MaskPoint& before = chain.mask[i - 1];
        check(before.hz > 0.0 && point.hz > before.hz && point.dbc_hz <= before.dbc_hz,
              "the points of a mask have rising offsets and falling levels");
    }
}

// All members but the mask; a member too few or too many does not compile.
auto members(const Chain& chain) {
    const auto& [iq_gain, iq_phase, leakage, bits, spur_hz, spur, mask] = chain;
    static_cast<void>(mask);
    return std::tie(iq_gain, iq_phase, leakage, bits, spur_hz, spur);
}

auto members(const Impairments& impairments) {
    const auto& [rx, tx, tolerance, warm_up_ppm, warm_up_s, walk, p1db, smoothness, ramp, lowest, highest, settling, slope,
                 edge, wideband, isolation, hiccups_hz, hiccup_ms, unplug] = impairments;
    return std::tie(rx, tx, tolerance, warm_up_ppm, warm_up_s, walk, p1db, smoothness, ramp, lowest, highest, settling,
                    slope, edge, wideband, isolation, hiccups_hz, hiccup_ms, unplug);
}

}  // namespace

void validate(const Impairments& impairments) {
    const Impairments& one = impairments;
    validate(one.rx);
    validate(one.tx);
    check(within(one.tolerance_ppm, 0.0, 100.0), "tolerance_ppm must lie within 0 and 100");
    check(within(one.warm_up_ppm, -100.0, 100.0), "warm_up_ppm must lie within 100 ppm");
    check(within(one.warm_up_s, 1e-3, 1e6), "warm_up_s must lie within 1 ms and 1e6 s");
    check(within(one.walk_ppm, 0.0, 10.0), "walk_ppm must lie within 0 and 10");
    check(!std::isnan(one.p1db_dbm), "p1db_dbm must be a number");
    check(within(one.smoothness, 0.5, 20.0), "smoothness must lie within 0.5 and 20");
    check(within(one.ramp_us, 0.0, 1000.0), "ramp_us must lie within 0 and 1000");
    check(within(one.noise_figure_lowest_db, 0.0, 100.0) && within(one.noise_figure_highest_db, 0.0, 100.0),
          "noise figures must lie within 0 and 100 dB");
    check((one.noise_figure_lowest_db == 0.0) == (one.noise_figure_highest_db == 0.0) &&
              one.noise_figure_lowest_db >= one.noise_figure_highest_db,
          "noise figures are both 0, or that at the lowest gain is the greater one");
    check(within(one.settling_us, 0.0, 10000.0), "settling_us must lie within 0 and 10000");
    check(within(one.slope_db, -6.0, 6.0), "slope_db must lie within 6 dB");
    check(within(one.edge_db, 0.0, 20.0), "edge_db must lie within 0 and 20");
    check(one.wideband == 0.0 || one.wideband == 1.0, "wideband must be 0 or 1");
    check(within(one.isolation_db, 0.0, 200.0), "isolation_db must lie within 0 and 200");
    check(within(one.hiccups_hz, 0.0, 10.0), "hiccups_hz must lie within 0 and 10");
    check(within(one.hiccup_ms, 0.0, 1000.0), "hiccup_ms must lie within 0 and 1000");
    check(std::isfinite(one.unplug_s), "unplug_s must be a finite number");
}

bool operator==(const MaskPoint& a, const MaskPoint& b) { return a.hz == b.hz && a.dbc_hz == b.dbc_hz; }

bool operator==(const Chain& a, const Chain& b) {
    return members(a) == members(b) && std::equal(std::begin(a.mask), std::end(a.mask), std::begin(b.mask));
}

bool operator==(const Impairments& a, const Impairments& b) { return members(a) == members(b); }

double noise_figure_db(const Impairments& impairments, double gain_db, double lowest_db, double highest_db) {
    const double range_db = highest_db - lowest_db;
    if (!(range_db > 0.0)) return impairments.noise_figure_highest_db;
    const double lowest = std::pow(10.0, impairments.noise_figure_lowest_db / 10.0);
    const double highest = std::pow(10.0, impairments.noise_figure_highest_db / 10.0);
    const double behind = (lowest - highest) / (1.0 - std::pow(10.0, -range_db / 10.0));
    const double above_db = std::clamp(gain_db - lowest_db, 0.0, range_db);
    return 10.0 * std::log10(lowest - behind * (1.0 - std::pow(10.0, -above_db / 10.0)));
}

double drawn_ppm(const Impairments& impairments, std::uint64_t seed) {
    return impairments.tolerance_ppm * (2.0 * Generator(seed).uniform() - 1.0);
}

}  // namespace fadelab::medium
