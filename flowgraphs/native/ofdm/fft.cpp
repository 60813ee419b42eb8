#include "fft.hpp"

#include <algorithm>

namespace gr::fadelab::ofdm {

namespace {

Sample* allocated(std::size_t size) {
    auto* samples = static_cast<Sample*>(fftwf_malloc(size * sizeof(Sample)));
    std::fill_n(samples, size, Sample());
    return samples;
}

fftwf_complex* fftws(Sample* samples) {
    return reinterpret_cast<fftwf_complex*>(samples);
}

}  // namespace

Fft::Fft(std::size_t size, Direction direction) : size_(size), in_(allocated(size)), out_(allocated(size)) {
    const std::lock_guard<std::mutex> held(global_lock());
    plan_.reset(fftwf_plan_dft_1d(static_cast<int>(size), fftws(in_.get()), fftws(out_.get()),
                                  static_cast<int>(direction), FFTW_ESTIMATE));
}

}  // namespace gr::fadelab::ofdm
