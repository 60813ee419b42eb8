#include "medium/interference.hpp"

#include <algorithm>
#include <stdexcept>

namespace fadelab::medium {

Interference::Interference(const std::string& path, std::int64_t start_tick)
    : file_(path),
      start_tick_(start_tick),
      length_(static_cast<std::int64_t>(file_.size() / sizeof(std::complex<float>))) {
    if (file_.size() % sizeof(std::complex<float>) != 0) {
        throw std::runtime_error(path + ": does not hold complex float32 samples: its " + std::to_string(file_.size()) +
                                 " bytes are no multiple of 8");
    }
}

const std::complex<float>* Interference::read(std::int64_t tick, std::size_t n, std::complex<float>* scratch) {
    const auto* samples = reinterpret_cast<const std::complex<float>*>(file_.data());
    std::int64_t at = (tick - start_tick_) % length_;
    if (at < 0) at += length_;
    const auto count = static_cast<std::int64_t>(n);
    if (count <= length_ - at) return samples + at;
    for (std::int64_t done = 0; done < count; at = 0) {
        const std::int64_t piece = std::min(count - done, length_ - at);
        std::copy_n(samples + at, piece, scratch + done);
        done += piece;
    }
    return scratch;
}

}  // namespace fadelab::medium
