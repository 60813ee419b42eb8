// The newest samples of a stream, found again by their index.
//
// While nothing happens, `forget` keeps what is in use within the processor's caches.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "liquid.hpp"

namespace gr::fadelab::ofdm {

class History {
public:
    // Keeps at least the `size` newest samples.
    explicit History(std::size_t size);

    // The number of samples so far.
    std::uint64_t end() const { return end_; }
    void append(const Sample* samples, std::size_t count);
    // Keeps no more than the `count` newest samples, which is cheap to call often.
    void forget(std::size_t count);
    // The samples from index `at`, as many of `count` as lie in one piece; `piece` becomes their number.
    Sample* piece(std::uint64_t at, std::size_t count, std::size_t& piece);
    // Samples in one piece, valid until the next call of anything.
    const Sample* read(std::uint64_t start, std::size_t count);

private:
    std::vector<Sample> ring_;
    std::vector<Sample> joined_;
    std::uint64_t begin_ = 0;  // of the sample in the first place, or of one whose place that would be
    std::uint64_t end_ = 0;
};

}  // namespace gr::fadelab::ofdm
