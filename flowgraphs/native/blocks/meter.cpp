#include "meter.hpp"

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

// Between two values of "rx_time", pairs of whole seconds and a fraction; 0 for other values.
double seconds_between(const pmt::pmt_t& first, const pmt::pmt_t& second) {
    const auto is_time = [](const pmt::pmt_t& value) { return pmt::is_tuple(value) && pmt::length(value) == 2; };
    if (!is_time(first) || !is_time(second)) {
        return 0.0;
    }
    const auto whole = [](const pmt::pmt_t& value) {
        return static_cast<std::int64_t>(pmt::to_uint64(pmt::tuple_ref(value, 0)));
    };
    const auto fraction = [](const pmt::pmt_t& value) { return pmt::to_double(pmt::tuple_ref(value, 1)); };
    return static_cast<double>(whole(second) - whole(first)) + (fraction(second) - fraction(first));
}

}  // namespace

void Meter::take(const Sample* samples, std::size_t count, const std::vector<tag_t>& times) {
    const float peak = largest(reinterpret_cast<const float*>(samples), 2 * count);
    const std::lock_guard<std::mutex> held(lock_);
    peak_ = std::max(peak_, peak);
    for (const tag_t& tag : times) {
        began_ = began_ ? began_ : tag.value;
        beginnings_.push_back({tag.offset, seconds_between(began_, tag.value)});
    }
    taken_ += count;
    const std::size_t kept = std::min(count, newest_.size());
    const std::size_t at = (taken_ - kept) % newest_.size();
    const std::size_t run = std::min(kept, newest_.size() - at);
    const Sample* from = samples + count - kept;
    std::copy_n(from, run, newest_.data() + at);
    std::copy_n(from + run, kept - run, newest_.data());
}

float Meter::take_peak() {
    const std::lock_guard<std::mutex> held(lock_);
    return std::exchange(peak_, 0.0F);
}

std::vector<Meter::Sample> Meter::newest() const {
    const std::lock_guard<std::mutex> held(lock_);
    if (taken_ < newest_.size()) {
        return {};
    }
    const auto oldest = newest_.begin() + static_cast<std::ptrdiff_t>(taken_ % newest_.size());
    std::vector<Sample> samples(oldest, newest_.end());
    samples.insert(samples.end(), newest_.begin(), oldest);
    return samples;
}

std::vector<float> Meter::spectrum_db(int bins) {
    const std::lock_guard<std::mutex> shown(spectrum_lock_);
    if (!spectrum_ || spectrum_->bins() != static_cast<std::size_t>(bins)) {
        spectrum_.emplace(bins);
    }
    // copied, so that the flowgraph does not wait for the transforms
    const std::vector<Sample> samples = newest();
    return samples.empty() ? std::vector<float>() : spectrum_->decibels(samples.data(), samples.size());
}

std::vector<metered::beginning> Meter::beginnings(std::size_t known) const {
    const std::lock_guard<std::mutex> held(lock_);
    const std::size_t first = std::min(known, beginnings_.size());
    return {beginnings_.begin() + static_cast<std::ptrdiff_t>(first), beginnings_.end()};
}

}  // namespace gr::fadelab
