// PHY wifi's own parts at work in several threads, for the sanitizers: MAC frames of all lengths and octets that are none,
// preambles in noise, and samples that are no numbers. Exit status 0: all that was whole came through.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "../wifi/mac.hpp"
#include "../wifi/synchronizer.hpp"

namespace wifi = gr::fadelab::wifi;
using wifi::Sample;

namespace {

constexpr unsigned kThreads = 3;
constexpr int kFrames = 40;
constexpr float kNoise = 0.05F;
constexpr std::size_t kGap = 700;

using Octets = std::vector<std::uint8_t>;

bool round_trips(std::mt19937& random) {
    bool right = true;
    for (const auto& encoding : wifi::kEncodings) {
        for (std::size_t count = 0; count <= wifi::kMaxFrameBytes; count += 1 + count / 7) {
            Octets frame(count);
            std::generate(frame.begin(), frame.end(), [&] { return static_cast<std::uint8_t>(random()); });
            const auto sequence = static_cast<std::uint32_t>(random());
            Octets psdu = wifi::mac_frame(frame.data(), count, sequence, 3, encoding);
            psdu.resize(psdu.size() - 4);
            const auto found = wifi::link_frame(psdu.data(), psdu.size(), 3);
            right &= found && found->sequence == sequence && found->payload == frame;
            // octets that are none: cut short, and changed anywhere
            for (int i = 0; i < 20; ++i) {
                Octets wrong(psdu.begin(), psdu.begin() + static_cast<std::ptrdiff_t>(random() % psdu.size()));
                if (!wrong.empty()) {
                    wrong[random() % wrong.size()] ^= static_cast<std::uint8_t>(random());
                }
                static_cast<void>(wifi::link_frame(wrong.data(), wrong.size(), 3));
            }
        }
    }
    return right;
}

// A preamble by the standard's equations, of mean amplitude 1 or so.
std::vector<Sample> preamble() {
    const auto wave = [](std::size_t i, auto value_of) {
        std::complex<double> sum;
        for (int carrier = -26; carrier <= 26; ++carrier) {
            sum += value_of(carrier) * std::polar(1.0, 2.0 * M_PI * carrier * static_cast<double>(i) / 64.0);
        }
        return Sample(sum / std::sqrt(52.0));
    };
    const auto short_training = [](int carrier) {
        const bool minus = carrier == -20 || carrier == -12 || carrier == -8 || carrier == 4 || carrier == 8;
        return carrier % 4 != 0 || carrier == 0 ? 0.0 : (minus ? -1.0 : 1.0) * std::sqrt(13.0 / 3.0);
    };
    const auto long_training = [](int carrier) {
        const int at = carrier + 32;
        return static_cast<double>(wifi::long_training()[static_cast<std::size_t>(at)]);
    };
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < 160; ++i) {
        samples.push_back(wave(i, short_training));
    }
    for (std::size_t i = 0; i < 160; ++i) {
        samples.push_back(wave(i + 32, long_training));
    }
    return samples;
}

bool finds_preambles(std::mt19937& random) {
    const std::vector<Sample> sent = preamble();
    std::normal_distribution<float> normal(0.0F, kNoise);
    std::vector<Sample> samples;
    for (int i = 0; i < kFrames; ++i) {
        samples.insert(samples.end(), kGap + random() % 100, Sample());
        samples.insert(samples.end(), sent.begin(), sent.end());
    }
    samples.insert(samples.end(), 5000, Sample());
    for (auto& sample : samples) {
        sample += Sample(normal(random), normal(random));
    }
    wifi::Synchronizer synchronizer;
    wifi::Symbols found;
    const auto feed = [&](const std::vector<Sample>& all) {
        for (std::size_t at = 0; at < all.size();) {
            const std::size_t piece = std::min<std::size_t>(1 + random() % 5000, all.size() - at);
            synchronizer.feed(all.data() + at, piece, found);
            at += piece;
        }
    };
    feed(samples);
    const bool right = found.beginnings.size() == kFrames;
    for (std::size_t i = samples.size() / 2; i < samples.size(); i += 97) {
        samples[i] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
    }
    feed(samples);
    return right;
}

}  // namespace

int main() {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 1; i <= kThreads; ++i) {
        threads.emplace_back([&wrong, i] {
            std::mt19937 random(i);
            const bool frames = round_trips(random);
            wrong += frames && finds_preambles(random) ? 0 : 1;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    if (wrong != 0) {
        std::puts("frames or preambles were lost");
        return 1;
    }
    return 0;
}
