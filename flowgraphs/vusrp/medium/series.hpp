// A file of taps to follow: gains over time, linear in between, from its beginning again at its end.
//
// Format, little-endian, written by flowgraphs/series.py:
//
//     char     magic[8]          "FADESER1"; the digit is the version
//     uint32   n_taps            1 ... 24
//     uint32   reserved          0
//     double   interval_ns       between rows, 1 ... 1e18
//     uint64   n_rows            >= 1
//     double   delay_ns[n_taps]  >= 0
//     float32  gain[n_rows][n_taps][2]   real, imaginary, of magnitude 1e10 at most; row 0 is when
//                                the air began
//
// The last row leads over to the first one. A file is replaced, never rewritten in place, while an air follows it.

#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

#include "medium/mapped_file.hpp"

namespace fadelab::medium {

class Series {
public:
    // Throws std::runtime_error, one line naming the file, when it cannot be read or does not fit the format.
    explicit Series(const std::string& path);

    // Throws std::runtime_error, one line, unless all gains are numbers of that magnitude. Reads the whole file.
    void check_gains() const;

    std::size_t n_taps() const { return n_taps_; }
    double interval_ns() const { return interval_ns_; }
    double delay_ns(std::size_t tap) const { return delays_[tap]; }

    // Returns the gain of a tap at an air time, which may be negative.
    std::complex<double> gain(std::size_t tap, double time_ns) const;

private:
    std::string path_;
    MappedFile file_;
    std::size_t n_taps_ = 0;
    std::uint64_t n_rows_ = 0;
    double interval_ns_ = 0.0;
    const double* delays_ = nullptr;
    const std::complex<float>* gains_ = nullptr;
};

}  // namespace fadelab::medium
