#include "history.hpp"

#include <algorithm>

namespace gr::fadelab::ofdm {

namespace {

constexpr std::size_t kMovedAfter = 10;

std::size_t power_of_two(std::size_t size) {
    std::size_t power = 1;
    while (power < size) {
        power *= 2;
    }
    return power;
}

}  // namespace

History::History(std::size_t size) : ring_(power_of_two(size)) {}

void History::append(const Sample* samples, std::size_t count) {
    while (count > 0) {
        std::size_t part = 0;
        Sample* to = piece(end_, count, part);
        std::copy_n(samples, part, to);
        samples += part;
        count -= part;
        end_ += part;
    }
}

void History::forget(std::size_t count) {
    // moved no more often than some ten times as many have come
    if (end_ - begin_ > kMovedAfter * count) {
        const Sample* kept = read(end_ - count, count);
        std::copy_n(kept, count, ring_.data());
        begin_ = end_ - count;
    }
}

Sample* History::piece(std::uint64_t at, std::size_t count, std::size_t& piece) {
    const std::size_t offset = (at - begin_) & (ring_.size() - 1);
    piece = std::min(count, ring_.size() - offset);
    return ring_.data() + offset;
}

const Sample* History::read(std::uint64_t start, std::size_t count) {
    std::size_t first = 0;
    const Sample* samples = piece(start, count, first);
    if (first == count) {
        return samples;
    }
    joined_.resize(count);
    std::copy_n(samples, first, joined_.data());
    std::copy_n(ring_.data(), count - first, joined_.data() + first);
    return joined_.data();
}

}  // namespace gr::fadelab::ofdm
