#include "medium/series.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "medium/options.hpp"

namespace fadelab::medium {
namespace {

struct Header {
    char magic[8];
    std::uint32_t n_taps;
    std::uint32_t reserved;
    double interval_ns;
    std::uint64_t n_rows;
};
static_assert(sizeof(Header) == 32);

constexpr double kMostPower = 1e20;  // 200 dB, as of a path

}  // namespace

Series::Series(const std::string& path) : path_(path), file_(path) {
    const auto fail = [&path](const std::string& why) { throw std::runtime_error(path + ": " + why); };
    Header header;
    if (file_.size() < sizeof header) fail("too short for a series of taps");
    std::memcpy(&header, file_.data(), sizeof header);
    if (std::memcmp(header.magic, "FADESER", 7) != 0) fail("not a series of taps (flowgraphs/series.py writes them)");
    if (header.magic[7] != '1') fail(std::string("a series of version ") + header.magic[7] + "; this program reads 1");
    if (header.n_taps < 1 || header.n_taps > kMaxTaps) {
        fail("has " + std::to_string(header.n_taps) + " taps; a series has 1 to " + std::to_string(kMaxTaps));
    }
    if (!(header.interval_ns >= 1.0 && header.interval_ns <= 1e18)) {
        fail("its interval does not lie between 1 and 1e18 ns");
    }
    if (header.n_rows < 1) fail("has no rows");
    const std::size_t gains_at = sizeof header + header.n_taps * sizeof(double);
    const std::size_t row_bytes = header.n_taps * sizeof(std::complex<float>);
    if (file_.size() < gains_at || (file_.size() - gains_at) % row_bytes != 0 ||
        (file_.size() - gains_at) / row_bytes != header.n_rows) {
        fail("is " + std::to_string(file_.size()) + " bytes long, which does not fit " +
             std::to_string(header.n_rows) + " rows of " + std::to_string(header.n_taps) + " taps");
    }
    n_taps_ = header.n_taps;
    n_rows_ = header.n_rows;
    interval_ns_ = header.interval_ns;
    delays_ = reinterpret_cast<const double*>(file_.data() + sizeof header);
    gains_ = reinterpret_cast<const std::complex<float>*>(file_.data() + gains_at);
    for (std::size_t tap = 0; tap < n_taps_; ++tap) {
        if (!(delays_[tap] >= 0.0 && delays_[tap] <= 1e9)) {
            fail("the delay of tap " + std::to_string(tap) + " does not lie between 0 and 1e9 ns");
        }
    }
}

void Series::check_gains() const {
    const std::size_t n_gains = static_cast<std::size_t>(n_rows_) * n_taps_;
    const auto usable = [](std::complex<float> gain) { return std::norm(std::complex<double>(gain)) <= kMostPower; };
    const auto* wrong = std::find_if_not(gains_, gains_ + n_gains, usable);
    if (wrong == gains_ + n_gains) return;
    const auto at = static_cast<std::size_t>(wrong - gains_);
    throw std::runtime_error(path_ + ": the gain of tap " + std::to_string(at % n_taps_) + " in row " +
                             std::to_string(at / n_taps_) + " is no number of magnitude 1e10 at most");
}

std::complex<double> Series::gain(std::size_t tap, double time_ns) const {
    const double position = time_ns / interval_ns_;
    const double whole = std::floor(position);
    const auto rows = static_cast<std::int64_t>(n_rows_);
    auto row = static_cast<std::int64_t>(whole) % rows;
    if (row < 0) row += rows;
    const std::int64_t next = row + 1 == rows ? 0 : row + 1;
    const std::complex<double> from(gains_[static_cast<std::size_t>(row) * n_taps_ + tap]);
    const std::complex<double> to(gains_[static_cast<std::size_t>(next) * n_taps_ + tap]);
    return from + (to - from) * (position - whole);
}

}  // namespace fadelab::medium
