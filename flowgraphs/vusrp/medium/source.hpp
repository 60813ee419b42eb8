// Where a path gets a transmitter's samples from.

#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

namespace fadelab::medium {

class Source {
public:
    virtual ~Source() = default;

    // Returns the `n` samples at transmitter ticks [tick, tick + n), zeros where nothing is sent: memory of its own, or
    // `scratch` (room for `n`) after filling it. Null when all of them are zero, which saves the path its work. What is
    // returned need not outlive the next call. A tick has one value, however often and in whatever pieces it is read.
    virtual const std::complex<float>* read(std::int64_t tick, std::size_t n, std::complex<float>* scratch) = 0;
};

}  // namespace fadelab::medium
