// A second look at damaged frames, with an equaliser for paths of any delay within the cyclic prefix.
//
// Read first: format.hpp; J.-J. van de Beek et al., "On channel estimation in OFDM systems", VTC 1995 (the channel as
// so many taps); README.md, "Several paths".
//
// liquid's equaliser is a polynomial of order 4 over frequency: little noise, but no fit of a channel longer than a
// sample. Here the channel is estimated from S1 as `cyclic_prefix` taps, the frame is decided with that, and then the
// decisions are the pilots for the channel of every subcarrier and the gain of every symbol, with which it is decided
// again.
//
// Rules kept: a frame is good only if its CRC says so, so a second look loses none.
//
// Left out: a channel that changes its shape within a frame, and clocks so far apart that the symbols' timing moves.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "constellation.hpp"
#include "format.hpp"
#include "liquid.hpp"
#include "training.hpp"

namespace gr::fadelab::ofdm {

class Equalizer {
public:
    struct Result {
        double snr_db;  // signal to noise in the active subcarriers
        double evm_db;
    };

    Equalizer(const Format& format, const Training& training);

    // Decodes a frame of `count` samples into `payload`, whose size says its length; false leaves it as it is. `cfo` in
    // radians per sample; every symbol comes `drift` samples later than the sender's samples count; `fec` is liquid's
    // number of the code.
    bool look(const Sample* samples, std::size_t count, double cfo, double drift, const Modulation& modulation,
              unsigned fec, std::vector<std::uint8_t>& payload, Result& result);

private:
    std::size_t advance(const Sample* s1);
    void transform(const Sample* symbol, double cfo, Sample* carriers);
    void hear(const Sample* samples, double cfo, double drift, std::size_t symbols);
    void turn_back(double late, Sample* carriers) const;
    void estimate_channel();
    void follow_pilots(std::size_t symbols);
    void refine(std::size_t symbols);
    void decide_all(std::size_t symbols, const Modulation& modulation);
    bool decode(std::size_t symbols, const Modulation& modulation, unsigned fec, std::vector<std::uint8_t>& payload);
    Result measure(std::size_t symbols) const;

    Format format_;
    std::size_t carriers_;  // active ones
    // Places of the data and of the pilots among the active subcarriers.
    std::vector<std::size_t> data_;
    std::vector<std::size_t> pilots_;
    std::vector<Sample> s1_;
    float amplitude_ = 0.0F;
    std::vector<float> pilot_sequence_;
    // An orthonormal basis of what `cyclic_prefix` taps can be, as seen by the active subcarriers: column by column.
    std::vector<std::vector<Sample>> basis_;
    std::map<unsigned, Labels> labels_;  // by bits of a symbol

    std::vector<Sample> time_;
    std::vector<Sample> frequency_;
    FftPlan forward_;
    FftPlan backward_;

    // Of the frame that is looked at. Rows of matrices are symbols, S1 left out.
    std::vector<Sample> turns_;      // the carrier's, over a symbol
    std::vector<Sample> training_;   // S1's subcarriers
    std::vector<Sample> heard_;      // by active subcarriers
    std::vector<Sample> sent_;       // likewise: pilots and decisions
    std::vector<Sample> channel_;    // of the active subcarriers
    std::vector<Sample> gain_;       // of the symbols
    std::vector<Sample> equalised_;  // by data subcarriers
    std::vector<Sample> decided_;    // likewise
    std::vector<Sample> inverse_;    // of the channel of the data subcarriers
    std::vector<float> weights_;
    std::vector<std::uint8_t> coded_;
};

}  // namespace gr::fadelab::ofdm
