// What a receiver knows beforehand: the training symbols S0 and S1, and the pilots.
//
// Read first: format.hpp; liquid's ofdmframegen (release 1.5), whose symbols these are, sample by sample.
//
// Rules kept: the sequences are our own. liquid's default m-sequences are others from release 1.6 on, and a station with
// those would be deaf to this one.

#pragma once

#include <vector>

#include "format.hpp"
#include "liquid.hpp"

namespace gr::fadelab::ofdm {

struct Training {
    explicit Training(const Format& format);

    // S0, S0 and S1 with their prefixes, mean power 1, as they begin a burst.
    std::vector<Sample> samples;
    // What overlaps the next symbol: the first samples of S1, as many as the taper has.
    std::vector<Sample> postfix;
    // A symbol's rise at its beginning.
    std::vector<float> taper;
    // 1, -1, or 0 for an empty subcarrier: S0 by even subcarriers, the odd ones being empty; S1 by subcarriers.
    std::vector<float> s0;
    std::vector<float> s1;
    // 1 or -1, by pilots, over and over.
    std::vector<float> pilots;
};

}  // namespace gr::fadelab::ofdm
