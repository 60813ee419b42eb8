// Sample formats of the host: fc64, fc32, sc16 and sc8, with full scale at +-1 or at the integers' largest value.

#pragma once

#include <uhd/exception.hpp>
#include <uhd/stream.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "layout.hpp"
#include "profiles/profile.hpp"

namespace fadelab {

class HostFormat {
public:
    // Throws uhd::value_error for stream arguments there is no format for.
    HostFormat(const uhd::stream_args_t& args, const std::vector<std::string>& wires)
        : full_scale_(args.args.cast<double>("fullscale", 1.0)) {
        const std::string& cpu = args.cpu_format.empty() ? std::string("fc32") : args.cpu_format;
        if (cpu == "fc32") {
            set<float>();
        } else if (cpu == "fc64") {
            set<double>();
        } else if (cpu == "sc16") {
            set<std::int16_t>();
        } else if (cpu == "sc8") {
            set<std::int8_t>();
        } else {
            throw uhd::value_error("vusrp has no host sample format " + cpu + ": take fc32, fc64, sc16 or sc8");
        }
        const std::string& wire = args.otw_format;
        if (!wire.empty() && std::find(wires.begin(), wires.end(), wire) == wires.end()) {
            std::string all;
            for (const std::string& one : wires) all += (all.empty() ? "" : ", ") + one;
            throw uhd::value_error("vusrp has no wire sample format " + wire + ": take one of " + all);
        }
    }

    // `offset` counts samples of the host's buffer.
    void to_air(const void* host, std::size_t offset, std::size_t n, Sample* air) const {
        to_air_(host, offset, n, air, static_cast<float>(1.0 / full_scale_));
    }
    void to_host(const Sample* air, std::size_t n, void* host, std::size_t offset) const {
        to_host_(air, n, host, offset, static_cast<float>(full_scale_));
    }

private:
    template <typename Part>
    static constexpr bool kWhole = std::is_integral_v<Part>;
    template <typename Part>
    static constexpr float kLargest = static_cast<float>(std::numeric_limits<Part>::max());

    template <typename Part>
    void set() {
        to_air_ = [](const void* host, std::size_t offset, std::size_t n, Sample* air, float scale) {
            const auto* from = static_cast<const Part*>(host) + 2 * offset;
            auto* to = reinterpret_cast<float*>(air);
            const float factor = kWhole<Part> ? 1.0f / kLargest<Part> : scale;
            for (std::size_t i = 0; i < 2 * n; ++i) {
                to[i] = std::clamp(static_cast<float>(from[i]) * factor, -1.0f, 1.0f);
            }
        };
        to_host_ = [](const Sample* air, std::size_t n, void* host, std::size_t offset, float scale) {
            const auto* from = reinterpret_cast<const float*>(air);
            auto* to = static_cast<Part*>(host) + 2 * offset;
            for (std::size_t i = 0; i < 2 * n; ++i) {
                if constexpr (kWhole<Part>) {
                    to[i] = static_cast<Part>(std::lrintf(from[i] * kLargest<Part>));
                } else {
                    to[i] = static_cast<Part>(from[i] * scale);
                }
            }
        };
    }

    double full_scale_;
    void (*to_air_)(const void*, std::size_t, std::size_t, Sample*, float);
    void (*to_host_)(const Sample*, std::size_t, void*, std::size_t, float);
};

// What a link's sample format leaves of samples (cores/rx_dsp_core_3000.cpp:setup, tx_dsp_core_3000.cpp:setup): 16, 12 or
// 8 bits of each part, with the stream argument `peak` as the largest value of the shorter ones.
class Quantiser {
public:
    // None: samples stay as they are.
    Quantiser() = default;
    explicit Quantiser(const uhd::stream_args_t& args) {
        const int bits = args.otw_format == "sc8" ? 8 : args.otw_format == "sc12" ? 12 : 16;
        if (args.otw_format == "fc32") return;
        const double least_peak = std::ldexp(1.0, bits - 16);
        const double peak = bits == 16 ? 1.0 : std::max(args.args.cast<double>("peak", 1.0), least_peak);
        step_ = static_cast<float>(std::ldexp(peak, 16 - bits) / 32767.0);
        lowest_ = -std::ldexp(1.0F, bits - 1);
    }

    void apply(Sample* samples, std::size_t n) const {
        if (step_ == 0.0F) return;
        constexpr float kWhole = 12582912.0F;  // 1.5 * 2^23: what is added to it loses its fraction
        const float steps = 1.0F / step_;
        auto* parts = reinterpret_cast<float*>(samples);
        for (std::size_t i = 0; i < 2 * n; ++i) {
            const float level = std::clamp(parts[i] * steps, lowest_, -1.0F - lowest_);
            parts[i] = ((level + kWhole) - kWhole) * step_;
        }
    }

private:
    float step_ = 0.0F;  // 0: none
    float lowest_ = 0.0F;
};

// Octets of a sample in a wire format.
inline std::size_t wire_octets(const std::string& wire) {
    if (wire == "fc32") return 8;
    if (wire == "sc12") return 3;
    return wire == "sc8" ? 2 : 4;
}

// The most samples of a packet.
inline std::size_t packet_samples(const Direction& direction, const Link& link, const std::string& wire) {
    const std::size_t octets = link.packet_octets > 0 ? link.packet_octets : direction.packet_octets;
    return std::min(octets / wire_octets(wire), direction.packet_samples);
}

}  // namespace fadelab
