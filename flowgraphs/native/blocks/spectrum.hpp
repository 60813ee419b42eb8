// The power spectrum of samples, for display.

#pragma once

#include <complex>
#include <cstddef>
#include <vector>

#include "../ofdm/liquid.hpp"

namespace gr::fadelab {

class Spectrum {
public:
    using Sample = std::complex<float>;

    // Throws std::invalid_argument unless there are two bins or more.
    explicit Spectrum(int bins);

    std::size_t bins() const { return window_.size(); }

    // The mean power in each bin, lowest frequency first, in dB of full scale (amplitude 1), -200 at least. Welch's method
    // without overlap, Hann window; the bins' powers add up to that of the samples. Throws std::invalid_argument for fewer
    // samples than bins.
    std::vector<float> decibels(const Sample* samples, std::size_t count);

private:
    std::vector<float> window_;
    double scale_ = 0.0;
    std::vector<Sample> time_;
    std::vector<Sample> frequency_;
    std::vector<double> powers_;
    ofdm::Owned<fftplan, fft_destroy_plan> fft_;
};

}  // namespace gr::fadelab
