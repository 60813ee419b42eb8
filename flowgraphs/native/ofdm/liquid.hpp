// liquid-dsp's objects, owned.
//
// Read first: liquid.h, "packetizer" and "modemcf".
//
// Rules kept: objects are made and ended under `global_lock`, because FFTW's planner, which they call, is not
// thread-safe. Schemes are looked up by liquid's own names, whose numbers are not part of its interface.

#pragma once

#include <complex>  // before liquid.h, which then takes its complex samples from here

#include <liquid/liquid.h>

#include <memory>
#include <mutex>
#include <type_traits>

namespace gr::fadelab::ofdm {

using Sample = std::complex<float>;

// Held while liquid's objects are made or ended, and while something global in C (rand) is used.
std::mutex& global_lock();

template <auto End>
struct Ended {
    template <typename Object>
    void operator()(Object* object) const {
        const std::lock_guard<std::mutex> held(global_lock());
        End(object);
    }
};

// An object of liquid's, such as a packetizer, which is ended by the function End.
template <typename Handle, auto End>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Ended<End>>;

using Packetizer = Owned<packetizer, packetizer_destroy>;
using FftPlan = Owned<fftplan, fft_destroy_plan>;
using Modem = Owned<modemcf, modemcf_destroy>;

}  // namespace gr::fadelab::ofdm
