#include "clocking.hpp"

#include <uhd/exception.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fadelab {
namespace {

constexpr double kSameRate_hz = 0.1;  // include/uhd/utils/math.hpp:FREQ_COMPARISON_DELTA_HZ

std::string megahertz(double hz) {
    std::string text = std::to_string(hz / 1e6);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " MHz";
}

}  // namespace

uhd::meta_range_t meta_range(const Range& range) { return {range.first, range.last, range.step}; }

uhd::meta_range_t master_clocks(const MasterClock& clock) {
    if (clock.choices_hz.empty()) return meta_range(clock.range_hz);
    uhd::meta_range_t found;
    for (const double hz : clock.choices_hz) found.push_back(uhd::range_t(hz));
    return found;
}

uhd::meta_range_t rates(const Direction& direction, double master_clock_hz) {
    uhd::meta_range_t found;
    for (const Factors& factors : direction.factors) {
        for (int factor = factors.most; factor >= factors.least; factor -= factors.step) {
            found.push_back(uhd::range_t(master_clock_hz / factor));
        }
    }
    return found;
}

int factor(const Profile& profile, const Direction& direction, double master_clock_hz, double rate_sps) {
    if (profile.nearest == Nearest::kRate) {
        return static_cast<int>(std::lround(master_clock_hz / rates(direction, master_clock_hz).clip(rate_sps, true)));
    }
    const double wanted = master_clock_hz / rate_sps;
    int nearest = direction.factors.front().most;
    double least_error = std::abs(nearest - wanted);
    for (const Factors& factors : direction.factors) {
        for (int one = factors.most; one >= factors.least; one -= factors.step) {
            const double error = std::abs(one - wanted);
            const bool tie = error == least_error && profile.nearest == Nearest::kLowerFactor;
            if (error < least_error || tie) nearest = one;
            least_error = std::min(error, least_error);
        }
    }
    return nearest;
}

std::optional<std::string> warning(const Direction& direction, bool tx, int factor) {
    int left = factor;
    for (int i = 0; i < direction.halfbands && left % 2 == 0; ++i) left /= 2;
    if (direction.halfbands == 0 || left == 1 || left != factor) return std::nullopt;
    const std::string what = tx ? "interpolation" : "decimation";
    return "The " + what + " of " + std::to_string(factor) +
           " is odd: expect CIC rolloff in the passband. An even one uses a halfband filter";
}

double master_clock(const MasterClock& clock, double asked_hz) {
    if (!clock.choices_hz.empty()) {
        return *std::min_element(clock.choices_hz.begin(), clock.choices_hz.end(), [asked_hz](double one, double other) {
            return std::abs(one - asked_hz) < std::abs(other - asked_hz);
        });
    }
    return meta_range(clock.range_hz).clip(asked_hz, true);
}

double highest_master_clock(const MasterClock& clock, std::size_t channels) {
    return clock.range_hz.last / (clock.halved_by_two && channels > 1 ? 2.0 : 1.0);
}

// b200_io_impl.cpp:set_auto_tick_rate, ad936x_manager.cpp:get_auto_tick_rate.
std::optional<double> automatic_master_clock(const MasterClock& clock, const std::vector<double>& rates_sps,
                                             std::size_t channels) {
    const double highest_hz = highest_master_clock(clock, channels);
    std::uint64_t common = 1;
    for (const double rate_sps : rates_sps) {
        if (rate_sps > highest_hz + kSameRate_hz) {
            throw uhd::value_error("a sample rate of " + megahertz(rate_sps) + " exceeds the highest master clock of " +
                                   megahertz(highest_hz));
        }
        common = std::lcm(common, static_cast<std::uint64_t>(std::max(1.0, std::round(rate_sps))));
    }
    const auto base_hz = static_cast<double>(common);
    if (base_hz > highest_hz + kSameRate_hz) return std::nullopt;
    double multiplier = std::exp2(std::floor(std::log2(highest_hz / base_hz)));
    if (multiplier == 2.0 && base_hz >= clock.range_hz.first) multiplier = 1.0;
    return base_hz * std::max(multiplier, 1.0);
}

}  // namespace fadelab
