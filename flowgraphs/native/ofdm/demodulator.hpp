// Samples to link frames.
//
// Rules kept: the reports do not depend on the division of samples into calls of `feed`. Frames of another network, and
// those of other programs (their header is of liquid's default length, ours is not), are passed over: behind their
// header the next frame is sought.
//
// Left out: soft decisions, since liquid 1.5's soft decoder of Hamming (7,4) ends the process at some lengths.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "equalizer.hpp"
#include "format.hpp"
#include "frame_decoder.hpp"
#include "history.hpp"
#include "liquid.hpp"
#include "synchronizer.hpp"
#include "training.hpp"

namespace gr::fadelab::ofdm {

// One frame as it was received.
struct Report {
    // With damaged octets when `crc_ok` is false; the header was good then, too.
    std::vector<std::uint8_t> payload;
    bool crc_ok;
    std::uint32_t sequence;
    std::uint64_t sample;    // index in the stream of the frame's first sample
    std::uint64_t nsamples;  // airtime
    double snr_db;           // per sample, over the whole sampled band
    double evm_db;
    double cfo;      // radians per sample
    double rssi_db;  // mean power over the frame, noise included, relative to full scale
    std::string mode;
};

// Equalised payload symbols of one frame; the ideal points have mean power 1.
struct Shown {
    std::vector<Sample> symbols;
    std::string modulation;  // empty before the first frame
};

class Demodulator {
public:
    using Take = std::function<void(const Report&)>;

    // `reach`: carrier offsets of so many whole subcarriers are sought, too.
    Demodulator(const Format& format, std::uint16_t network, std::size_t reach = 0);
    Demodulator(const Demodulator&) = delete;
    Demodulator& operator=(const Demodulator&) = delete;

    // Takes the next samples, and calls `take` for each frame that ended in them or just before. The report is valid
    // during the call.
    void feed(const Sample* samples, std::size_t count, const Take& take);
    // The next samples do not follow the last ones. Takes what ended before; an open frame is given up.
    void gap(const Take& take);
    // The index of the sample at which the frame ends, or its header, that was detected last; 0 before the first.
    std::uint64_t busy_until() const { return busy_until_; }
    // The symbols of the newest frame; for any thread.
    Shown constellation() const;

private:
    void execute(const Take& take, std::size_t lag);
    void report(std::uint64_t decoded_at);
    std::uint64_t find();
    void show();
    void expect(std::uint64_t now, std::size_t symbols);
    double evm_at_0_db() const;

    Format format_;
    // The decoder lags behind by so many samples, so that a frame's last ones are there when it is measured.
    std::size_t lag_;
    History history_;
    Training training_;
    Equalizer equalizer_;
    Synchronizer synchronizer_;
    FrameDecoder decoder_;
    double evm_at_0_db_;
    std::uint64_t busy_until_ = 0;
    Report report_{};
    std::vector<Sample> turned_;

    mutable std::mutex shown_lock_;
    Shown shown_;
};

}  // namespace gr::fadelab::ofdm
