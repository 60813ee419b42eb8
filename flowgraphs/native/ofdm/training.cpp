#include "training.hpp"

#include <algorithm>

#include "fft.hpp"

namespace gr::fadelab::ofdm {

namespace {

using FrameGenerator = Owned<ofdmframegen, ofdmframegen_destroy>;

// The pilot sequence: an m-sequence of so many bits.
constexpr unsigned kPilotBits = 8;

FrameGenerator make_generator(const Format& format) {
    const std::lock_guard<std::mutex> held(global_lock());
    return FrameGenerator(ofdmframegen_create(static_cast<unsigned>(format.subcarriers()),
                                              static_cast<unsigned>(format.cyclic_prefix()),
                                              static_cast<unsigned>(format.taper()), nullptr));
}

std::vector<float> pilot_sequence() {
    const MSequence generator = [] {
        const std::lock_guard<std::mutex> held(global_lock());
        return MSequence(msequence_create_default(kPilotBits));
    }();
    std::vector<float> values((1U << kPilotBits) - 1);
    for (float& value : values) {
        value = msequence_advance(generator.get()) != 0 ? 1.0F : -1.0F;
    }
    return values;
}

// The signs of a symbol's active subcarriers, every `step`-th of them.
std::vector<float> signs(const Format& format, const Sample* symbol, std::size_t step) {
    Fft fft(format.subcarriers(), Fft::Direction::forward);
    std::copy_n(symbol, fft.size(), fft.in());
    fft.execute();
    std::vector<float> values(format.subcarriers() / step);
    for (const std::size_t carrier : format.active()) {
        if (carrier % step == 0) {
            values[carrier / step] = fft.out()[carrier].real() > 0.0F ? 1.0F : -1.0F;
        }
    }
    return values;
}

}  // namespace

Training::Training(const Format& format)
    : samples(kTrainingSymbols * format.symbol_samples()), pilots(pilot_sequence()) {
    const FrameGenerator generator = make_generator(format);
    Sample* second = samples.data() + format.symbol_samples();
    Sample* third = second + format.symbol_samples();
    ofdmframegen_write_S0a(generator.get(), samples.data());
    ofdmframegen_write_S0b(generator.get(), second);
    ofdmframegen_write_S1(generator.get(), third);
    s0 = signs(format, second + format.cyclic_prefix(), 2);
    s1 = signs(format, third + format.cyclic_prefix(), 1);
    const Sample* whole = third + format.cyclic_prefix();
    postfix.assign(whole, whole + format.taper());
}

}  // namespace gr::fadelab::ofdm
