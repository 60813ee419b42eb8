// The medium as C functions, for tests and benchmarks (tests/harness/medium.py). Each returns null or a handle's address;
// what was thrown is kept as a line of text.

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "medium/interference.hpp"
#include "medium/noise.hpp"
#include "medium/path.hpp"
#include "medium/random.hpp"

using fadelab::medium::Ends;
using fadelab::medium::Interference;
using fadelab::medium::LinkOptions;
using fadelab::medium::Noise;
using fadelab::medium::Path;
using fadelab::medium::Source;
using Sample = std::complex<float>;

namespace {

std::string last_error;

template <typename Make>
auto made(Make make) -> decltype(make()) {
    try {
        return make();
    } catch (const std::exception& error) {
        last_error = error.what();
        return nullptr;
    }
}

// A transmission: samples from a tick on, silence around them.
class Burst : public Source {
public:
    Burst(const Sample* samples, std::int64_t n, std::int64_t start)
        : samples_(samples, samples + n), start_(start) {}

    const Sample* read(std::int64_t tick, std::size_t n, Sample* scratch) override {
        const std::int64_t from = tick - start_;
        const auto length = static_cast<std::int64_t>(samples_.size());
        const auto count = static_cast<std::int64_t>(n);
        if (from >= length || from + count <= 0) return nullptr;
        if (from >= 0 && from + count <= length) return samples_.data() + from;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t at = from + i;
            scratch[i] = at >= 0 && at < length ? samples_[static_cast<std::size_t>(at)] : Sample();
        }
        return scratch;
    }

private:
    std::vector<Sample> samples_;
    std::int64_t start_;
};

}  // namespace

extern "C" {

const char* medium_error() { return last_error.c_str(); }

std::uint64_t medium_hash(std::uint64_t a, const char* text) {
    return fadelab::medium::hash(a, std::string_view(text));
}

void medium_default_options(LinkOptions* options) { *options = LinkOptions(); }

std::uint64_t medium_options_size() { return sizeof(LinkOptions); }

Source* medium_burst_new(const Sample* samples, std::int64_t n, std::int64_t start) {
    return new Burst(samples, n, start);
}

Source* medium_interference_new(const char* path, std::int64_t start) {
    return made([&]() -> Source* { return new Interference(path, start); });
}

void medium_source_read(Source* source, std::int64_t tick, std::uint64_t n, Sample* out) {
    const Sample* samples = source->read(tick, n, out);
    if (samples == nullptr) {
        std::memset(static_cast<void*>(out), 0, n * sizeof(Sample));
    } else if (samples != out) {
        std::memcpy(static_cast<void*>(out), samples, n * sizeof(Sample));
    }
}

void medium_source_free(Source* source) { delete source; }

Path* medium_path_new(const LinkOptions* options, const Ends* ends, std::uint64_t seed) {
    return made([&] { return new Path(*options, *ends, seed); });
}

void medium_path_mix(Path* path, Source* source, std::int64_t tick, std::uint64_t n, Sample* acc) {
    path->mix(*source, tick, n, acc);
}

void medium_path_needs(const Path* path, std::int64_t tick, std::uint64_t n, std::int64_t* first, std::int64_t* end) {
    const auto range = path->needs(tick, n);
    *first = range.first;
    *end = range.end;
}

void medium_path_free(Path* path) { delete path; }

Noise* medium_noise_new(std::uint64_t seed, std::uint64_t port) { return new Noise(seed, port); }

void medium_noise_add(Noise* noise, std::int64_t tick, std::uint64_t n, float sigma, Sample* acc) {
    noise->add(tick, n, sigma, acc);
}

void medium_noise_free(Noise* noise) { delete noise; }

}  // extern "C"
