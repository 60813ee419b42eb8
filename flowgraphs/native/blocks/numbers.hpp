// The numbers that Python and GNU Radio Companion give, checked. Everything here throws std::invalid_argument, one
// line.

#pragma once

#include <cstddef>
#include <cstdint>

#include "../ofdm/format.hpp"

namespace gr::fadelab {

ofdm::Format format_of(int subcarriers, int cyclic_prefix, int taper);
float checked_rms(float rms);
std::uint16_t checked_network(int network);
double checked_rate(double rate_sps);
int checked_lot(int lot);
int checked_silence(const char* name, int samples);
// A time in samples, rounded up.
std::int64_t samples_of(const char* name, double us, double rate_sps);
int checked_slots(const char* name, int slots, int least);
void check_slot(double slot_us, double lead_us);
// Of a receiver, in subcarriers.
std::size_t checked_reach(int reach, const ofdm::Format& format);

}  // namespace gr::fadelab
