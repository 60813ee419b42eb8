#include "spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>

namespace gr::fadelab {

namespace {

constexpr double kLeastPower = 1e-20;

}  // namespace

Spectrum::Spectrum(int bins) {
    if (bins < 2) {
        throw std::invalid_argument("bins is " + std::to_string(bins) + ": must be 2 or more");
    }
    const auto count = static_cast<std::size_t>(bins);
    double energy = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
        const double value = 0.5 - 0.5 * std::cos(2.0 * M_PI * static_cast<double>(i) / static_cast<double>(count - 1));
        window_.push_back(static_cast<float>(value));
        energy += value * value;
    }
    scale_ = 1.0 / (static_cast<double>(count) * energy);
    time_.resize(count);
    frequency_.resize(count);
    powers_.resize(count);
    const std::lock_guard<std::mutex> held(ofdm::global_lock());
    fft_.reset(fft_create_plan(static_cast<unsigned>(bins), time_.data(), frequency_.data(), LIQUID_FFT_FORWARD, 0));
}

std::vector<float> Spectrum::decibels(const Sample* samples, std::size_t count) {
    const std::size_t segments = count / bins();
    if (segments == 0) {
        throw std::invalid_argument(std::to_string(count) + " samples are too few for " + std::to_string(bins()) +
                                    " bins");
    }
    std::fill(powers_.begin(), powers_.end(), 0.0);
    for (std::size_t segment = 0; segment < segments; ++segment) {
        std::transform(window_.begin(), window_.end(), samples + segment * bins(), time_.begin(),
                       [](float weight, const Sample& sample) { return weight * sample; });
        fft_execute(fft_.get());
        for (std::size_t i = 0; i < bins(); ++i) {
            powers_[i] += static_cast<double>(std::norm(frequency_[i]));
        }
    }
    // frequency 0 comes first from the transform, and in the middle here
    std::vector<float> levels(bins());
    const std::size_t middle = bins() / 2;
    for (std::size_t i = 0; i < bins(); ++i) {
        const double power = powers_[i] * scale_ / static_cast<double>(segments);
        levels[(i + middle) % bins()] = static_cast<float>(10.0 * std::log10(std::max(power, kLeastPower)));
    }
    return levels;
}

}  // namespace gr::fadelab
