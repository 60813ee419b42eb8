// The signal processing at work in several threads, for the sanitizers: clean frames, damaged ones, two paths, samples
// that are no numbers, and every mode. Exit status 0: nothing was lost that should have come through.

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "../ofdm/demodulator.hpp"
#include "../ofdm/modulator.hpp"

namespace ofdm = gr::fadelab::ofdm;
using ofdm::Sample;

namespace {

constexpr int kThreads = 3;
constexpr std::size_t kGap = 300;
constexpr std::size_t kSubcarriers = 64;
constexpr std::size_t kReach = 2;
constexpr float kRms = 0.25F;

using Octets = std::vector<std::uint8_t>;

Octets octets(std::mt19937& random, std::size_t count) {
    Octets made(count);
    for (auto& octet : made) {
        octet = static_cast<std::uint8_t>(random());
    }
    return made;
}

// The bursts of frames with silence around them, over two paths, in noise.
std::vector<Sample> heard(ofdm::Modulator& modulator, const std::vector<Octets>& frames, std::mt19937& random,
                          float noise, std::size_t echo) {
    std::vector<Sample> sent(kGap);
    std::vector<Sample> burst;
    for (const auto& frame : frames) {
        modulator.modulate(frame.data(), frame.size(), burst);
        sent.insert(sent.end(), burst.begin(), burst.end());
        sent.insert(sent.end(), kGap, Sample());
    }
    std::normal_distribution<float> normal(0.0F, noise * kRms);
    std::vector<Sample> samples(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const Sample late = i < echo ? Sample() : sent[i - echo] * 0.3F;
        samples[i] = sent[i] + late + Sample(normal(random), normal(random));
    }
    return samples;
}

// The same with a carrier that is off by so many subcarriers.
std::vector<Sample> turned(std::vector<Sample> samples, double subcarriers) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double phase = 2.0 * M_PI * subcarriers / kSubcarriers * static_cast<double>(i);
        samples[i] *= Sample(static_cast<float>(std::cos(phase)), static_cast<float>(std::sin(phase)));
    }
    return samples;
}

// Feeds samples in pieces of changing size; returns how many frames came through undamaged.
std::size_t good_frames(ofdm::Demodulator& demodulator, const std::vector<Sample>& samples, std::mt19937& random) {
    std::size_t good = 0;
    const auto take = [&](const ofdm::Report& report) { good += report.crc_ok ? 1 : 0; };
    for (std::size_t at = 0; at < samples.size();) {
        const std::size_t piece = std::min<std::size_t>(1 + random() % 5000, samples.size() - at);
        demodulator.feed(samples.data() + at, piece, take);
        at += piece;
    }
    demodulator.gap(take);
    return good;
}

bool work(unsigned seed) {
    std::mt19937 random(seed);
    bool right = true;
    const ofdm::Format format(kSubcarriers, 16, 4);
    for (const auto& modulation : ofdm::kModulations) {
        for (const auto& fec : ofdm::kFecs) {
            ofdm::Modulator modulator(format, modulation, fec, kRms, 7);
            ofdm::Demodulator demodulator(format, 7);
            ofdm::Demodulator reaching(format, 7, kReach);
            std::atomic<bool> done{false};
            std::thread watcher([&] {
                while (!done) {
                    static_cast<void>(demodulator.constellation());
                }
            });
            const std::vector<Octets> frames{octets(random, 1), octets(random, 300), octets(random, 60)};
            right &= good_frames(demodulator, heard(modulator, frames, random, 0.01F, 0), random) == frames.size();
            const std::vector<Sample> off = turned(heard(modulator, frames, random, 0.01F, 0), -1.6);
            right &= good_frames(reaching, off, random) == frames.size();
            // the second look repairs some of these, or none
            good_frames(demodulator, heard(modulator, frames, random, 0.01F, 5), random);
            good_frames(demodulator, heard(modulator, frames, random, 0.3F, 0), random);
            std::vector<Sample> wrong = heard(modulator, frames, random, 0.01F, 0);
            for (std::size_t i = wrong.size() / 2; i < wrong.size(); i += 97) {
                wrong[i] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
            }
            good_frames(demodulator, wrong, random);
            good_frames(reaching, wrong, random);
            done = true;
            watcher.join();
        }
    }
    return right;
}

}  // namespace

int main() {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&wrong, i] { wrong += work(static_cast<unsigned>(i) + 1) ? 0 : 1; });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    if (wrong != 0) {
        std::puts("frames were lost without noise");
        return 1;
    }
    return 0;
}
