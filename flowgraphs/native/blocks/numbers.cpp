#include "numbers.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

namespace gr::fadelab {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& rule) {
    throw std::invalid_argument(name + " is " + value + ": must be " + rule);
}

std::size_t count(const char* name, int value) {
    if (value < 0) {
        refuse(name, std::to_string(value), "0 or more");
    }
    return static_cast<std::size_t>(value);
}

}  // namespace

ofdm::Format format_of(int subcarriers, int cyclic_prefix, int taper) {
    return {count("subcarriers", subcarriers), count("cyclic_prefix", cyclic_prefix), count("taper", taper)};
}

float checked_rms(float rms) {
    if (!(rms > 0.0F && rms <= 1.0F)) {
        refuse("rms", std::to_string(rms), "more than 0 and 1 at most");
    }
    return rms;
}

std::uint16_t checked_network(int network) {
    if (network < 0 || network > 0xFFFF) {
        refuse("network", std::to_string(network), "0 to 65535");
    }
    return static_cast<std::uint16_t>(network);
}

double checked_rate(double rate_sps) {
    if (!(rate_sps > 0.0)) {
        refuse("rate_sps", std::to_string(rate_sps), "positive");
    }
    return rate_sps;
}

int checked_lot(int lot) {
    if (lot < 1) {
        refuse("lot", std::to_string(lot), "1 or more");
    }
    return lot;
}

int checked_silence(const char* name, int samples) {
    return static_cast<int>(count(name, samples));
}

std::int64_t samples_of(const char* name, double us, double rate_sps) {
    if (!(us >= 0.0)) {
        refuse(name, std::to_string(us), "0 or more");
    }
    return std::llround(std::ceil(us * rate_sps / 1e6));
}

int checked_slots(const char* name, int slots, int least) {
    if (slots < least) {
        refuse(name, std::to_string(slots), std::to_string(least) + " or more");
    }
    return slots;
}

void check_slot(double slot_us, double lead_us) {
    if (!(slot_us > lead_us)) {
        refuse("slot_us", std::to_string(slot_us), "more than lead_us, " + std::to_string(lead_us));
    }
}

std::size_t checked_reach(int reach, const ofdm::Format& format) {
    const auto most = static_cast<int>(format.subcarriers() / 4);
    if (reach < 0 || reach > most) {
        refuse("reach", std::to_string(reach), "0 to " + std::to_string(most));
    }
    return static_cast<std::size_t>(reach);
}

}  // namespace gr::fadelab
