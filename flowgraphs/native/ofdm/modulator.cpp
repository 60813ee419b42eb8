#include "modulator.hpp"

#include <volk/volk.h>

#include <array>
#include <cstdlib>

namespace gr::fadelab::ofdm {

namespace {

Generator make_generator(const Format& format, const Modulation& modulation, const Fec& fec) {
    ofdmflexframegenprops_s properties;
    properties.check = crc32_scheme();
    properties.fec0 = fec.scheme();
    properties.fec1 = fec_named("none").scheme();
    properties.mod_scheme = modulation.scheme();
    const std::lock_guard<std::mutex> held(global_lock());
    Generator generator(ofdmflexframegen_create(static_cast<unsigned>(format.subcarriers()),
                                                static_cast<unsigned>(format.cyclic_prefix()),
                                                static_cast<unsigned>(format.taper()), nullptr, &properties));
    ofdmflexframegen_set_header_len(generator.get(), kHeaderBytes);
    return generator;
}

std::array<unsigned char, kHeaderBytes> header(std::uint32_t sequence, std::uint16_t network) {
    const auto octet = [](std::uint32_t value, unsigned shift) { return static_cast<unsigned char>(value >> shift); };
    return {octet(sequence, 24), octet(sequence, 16), octet(sequence, 8),
            octet(sequence, 0),  octet(network, 8),   octet(network, 0)};
}

}  // namespace

Modulator::Modulator(const Format& format, const Modulation& modulation, const Fec& fec, float rms,
                     std::uint16_t network)
    : format_(format),
      modulation_(modulation),
      fec_(fec.scheme()),
      rms_(rms),
      network_(network),
      generator_(make_generator(format, modulation, fec)) {}

std::size_t Modulator::frame_samples(std::size_t nbytes) const {
    return format_.frame_samples(nbytes, modulation_, fec_);
}

void Modulator::modulate(const std::uint8_t* frame, std::size_t nbytes, std::vector<Sample>& burst) {
    burst.resize(frame_samples(nbytes));
    const auto ours = header(sequence_++, network_);
    ofdmflexframegen_assemble(generator_.get(), ours.data(), frame, static_cast<unsigned>(nbytes));
    {
        const std::lock_guard<std::mutex> held(global_lock());
        std::srand(1);
        ofdmflexframegen_write(generator_.get(), burst.data(), static_cast<unsigned>(burst.size()));
    }
    auto* values = reinterpret_cast<float*>(burst.data());
    volk_32f_s32f_multiply_32f(values, values, rms_, static_cast<unsigned>(2 * burst.size()));
}

}  // namespace gr::fadelab::ofdm
