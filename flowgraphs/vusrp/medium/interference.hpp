// A recording played as a transmitter, over and over: complex float32 samples without a header (SigMF cf32_le).

#pragma once

#include <string>

#include "medium/mapped_file.hpp"
#include "medium/source.hpp"

namespace fadelab::medium {

class Interference : public Source {
public:
    // The recording's first sample is heard at `start_tick`, and again every length of it, before and after. Throws
    // std::runtime_error, one line naming the file, when it cannot be read, is empty or ends within a sample.
    explicit Interference(const std::string& path, std::int64_t start_tick = 0);

    std::int64_t length() const { return length_; }  // in samples

    const std::complex<float>* read(std::int64_t tick, std::size_t n, std::complex<float>* scratch) override;

private:
    MappedFile file_;
    std::int64_t start_tick_;
    std::int64_t length_;
};

}  // namespace fadelab::medium
