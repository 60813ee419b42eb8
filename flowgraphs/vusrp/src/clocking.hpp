// The master clock and the sample rates that a family of devices makes of what a program asks for: pure functions.
//
// Read first: profiles/profile.hpp; of UHD cores/rx_dsp_core_3000.cpp, b200/b200_io_impl.cpp and common/ad936x_manager.cpp.

#pragma once

#include <uhd/types/ranges.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/profile.hpp"

namespace fadelab {

uhd::meta_range_t meta_range(const Range& range);

// All that the master clock may be.
uhd::meta_range_t master_clocks(const MasterClock& clock);

// The rates that a direction has at a master clock, from low to high.
uhd::meta_range_t rates(const Direction& direction, double master_clock_hz);

// The factor between the master clock and the rate that a request gets.
int factor(const Profile& profile, const Direction& direction, double master_clock_hz, double rate_sps);

// What UHD warns of at a factor; nothing for a good one.
std::optional<std::string> warning(const Direction& direction, bool tx, int factor);

// The master clock that a request gets. Throws uhd::value_error where the family refuses it.
double master_clock(const MasterClock& clock, double asked_hz);

// The highest master clock for streamers of so many channels.
double highest_master_clock(const MasterClock& clock, std::size_t channels);

// The master clock that is chosen by itself for these rates; nothing when there is none. Throws uhd::value_error for a
// rate that no clock of so many channels allows.
std::optional<double> automatic_master_clock(const MasterClock& clock, const std::vector<double>& rates_sps,
                                             std::size_t channels);

}  // namespace fadelab
