#include "levels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "../ofdm/clones.hpp"

namespace gr::fadelab {

namespace {

// Largest values are kept in so many parts, which a processor compares at once.
constexpr std::size_t kParts = 16;

FADELAB_CLONES
float largest(const float* values, std::size_t count) {
    std::array<float, kParts> parts{};
    std::size_t at = 0;
    for (; at + kParts <= count; at += kParts) {
        for (std::size_t part = 0; part < kParts; ++part) {
            const float value = std::fabs(values[at + part]);
            parts[part] = parts[part] < value ? value : parts[part];
        }
    }
    for (; at < count; ++at) {
        parts[0] = std::max(parts[0], std::fabs(values[at]));
    }
    return *std::max_element(parts.begin(), parts.end());
}

}  // namespace

const pmt::pmt_t& rx_time() {
    static const pmt::pmt_t key = pmt::mp("rx_time");
    return key;
}

levels::levels(std::size_t size) : ring_(size) {}

void levels::take(const gr_complex* samples, std::size_t count, std::size_t beginnings) {
    const float peak = largest(reinterpret_cast<const float*>(samples), 2 * count);
    const std::lock_guard<std::mutex> held(lock_);
    peak_ = std::max(peak_, peak);
    beginnings_ += beginnings;
    const std::size_t kept = std::min(count, ring_.size());
    had_ += count - kept;
    const gr_complex* from = samples + count - kept;
    const std::size_t at = had_ % ring_.size();
    const std::size_t first = std::min(kept, ring_.size() - at);
    std::copy_n(from, first, ring_.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy_n(from + first, kept - first, ring_.begin());
    had_ += kept;
}

float levels::take_peak() {
    const std::lock_guard<std::mutex> held(lock_);
    return std::exchange(peak_, 0.0F);
}

std::vector<gr_complex> levels::newest() const {
    const std::lock_guard<std::mutex> held(lock_);
    if (had_ < ring_.size()) {
        return {};
    }
    std::vector<gr_complex> samples(ring_.size());
    std::rotate_copy(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(had_ % ring_.size()), ring_.end(),
                     samples.begin());
    return samples;
}

std::uint64_t levels::beginnings() const {
    const std::lock_guard<std::mutex> held(lock_);
    return beginnings_;
}

}  // namespace gr::fadelab
