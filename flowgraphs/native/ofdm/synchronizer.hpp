// Finds frames in a stream of samples, and gives their data subcarriers, symbol by symbol.
//
// Read first: format.hpp; T. M. Schmidl and D. C. Cox, "Robust Frequency and Timing Synchronization for OFDM", IEEE
// Transactions on Communications 45(12), 1997; liquid's ofdmframesync, whose methods and constants these are, so that
// the same frames are found:
//
// - detection: the even subcarriers of the newest samples, once per so many as there are subcarriers. S0's signs taken
//   away, neighbours are alike, and the phase between them is the timing. A carrier that is off by whole subcarriers
//   shifts the signs: with a reach, odd subcarriers and shifted signs are tried as well, two neighbouring shifts
//   together, between which an offset lies;
// - two looks at S0, half a symbol apart, give the timing; the phase from one half of S0 to the other the carrier
// offset;
// - S1, sought half a symbol at a time, gives the channel: amplitude and phase over frequency as polynomials;
// - of every symbol, the pilots' phases give its phase and its delay, which is smoothed, and follow the carrier. Once
//   the delay is most of a sample, as it becomes when sample clocks differ, symbols are cut a sample later or earlier.
//
// Rules kept: each step depends on samples at fixed distances alone, never on how many there are yet. Samples that are
// no numbers, or too large to be squared, find nothing and spoil no later frame.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fft.hpp"
#include "format.hpp"
#include "history.hpp"
#include "liquid.hpp"
#include "polynomial.hpp"
#include "training.hpp"

namespace gr::fadelab::ofdm {

class Synchronizer {
public:
    enum class Found { nothing, training, symbol };

    // `reach`: carrier offsets of so many whole subcarriers are sought, too; without it, of 0.45 of one.
    Synchronizer(const Format& format, const Training& training, std::size_t reach);

    // The next step needs so many samples of the stream.
    std::uint64_t due() const { return due_; }
    // No frame is open, nor may be.
    bool seeking() const { return state_ == State::seek; }
    // Takes the step that is due. Data subcarriers of a symbol go to `data`, the ideal points having mean power 1.
    Found step(History& history, Sample* data);
    // The frame is over: the next one is sought behind it.
    void release();

    // The samples from index `start` on do not follow those before it: an open frame is given up.
    void seek_from(std::uint64_t start);

    // Of the open frame: carrier offset in radians per sample, and the index of its first sample, to a few samples.
    double cfo() const { return cfo_; }
    std::int64_t start() const { return start_; }
    // By how many samples each symbol comes later than the one before has it; 0 unless they add up to half a sample, and
    // to no more than clocks can differ by.
    double drift() const;

private:
    enum class State { seek, short_training, long_training, symbols };

    void seek(History& history);
    void look_at_short(History& history);
    bool look_at_long(History& history);
    void track(History& history, Sample* data);
    void seek_again(std::size_t later);

    Sample short_likeness(const Sample* window);
    void seek_shifts(const Sample* window);
    std::size_t best_shift() const;
    Sample best_likeness() const;
    Sample neighbours(std::size_t count);
    void follow_delay();
    double subcarriers_turn(std::size_t samples) const;
    void transform(History& history, std::uint64_t start);
    void hear_long(History& history);
    void refine_cfo(History& history);
    void estimate_channel();
    void follow_pilots();
    void tune(double cfo);

    Format format_;
    Training training_;
    std::size_t size_;  // subcarriers
    std::size_t half_;  // half as many: S0's period
    std::size_t step_;  // samples of a symbol
    double detect_;     // likenesses from which something is S0, and S1
    double accept_;
    std::size_t reach_;
    double detect_shift_;                    // likeness from which something is S0 between two shifts
    std::vector<std::size_t> ordered_;       // active subcarriers, from the lowest frequency
    std::vector<double> pilot_frequencies_;  // in subcarriers
    Polynomial channel_fit_;
    Fft half_fft_;
    Fft fft_;
    std::vector<Sample> gains_;  // subcarriers with the training's signs taken away
    std::vector<Sample> half_turn_;   // a subcarrier's, over half a symbol: makes odd ones even
    std::vector<float> neighbours_;   // products of S0's neighbouring signs, twice
    std::vector<Sample> likenesses_;  // by shift, from -reach_ on

    State state_ = State::seek;
    std::uint64_t due_;

    // Of the open frame.
    double scale_ = 0.0;  // a likeness of 1, where it was detected
    bool shifted_ = false;  // S0 was found between two shifts of the carrier
    unsigned looks_ = 0;    // for S1
    std::int64_t start_ = 0;
    double cfo_ = 0.0;
    double phase_ = 0.0;  // of the carrier at sample `tuned_at_`
    std::uint64_t tuned_at_ = 0;
    bool first_symbol_ = true;
    double offset_ = 0.0;          // the newest symbol's phase
    double slope_ = 0.0;           // its delay, smoothed: radians per subcarrier
    int moved_ = 0;                // samples by which symbols are cut later than at first
    std::size_t symbols_ = 0;      // so far
    std::size_t pilot_ = 0;        // pilots so far, modulo their sequence
    std::vector<Sample> inverse_;  // of the channel, by subcarriers
    std::vector<Sample> turned_;   // the same, for the newest symbol
    std::vector<double> amplitudes_;
    std::vector<double> angles_;
    std::vector<Sample> pilot_matches_;  // the channel's conjugate
    double pilot_middle_ = 0.0;          // the pilots' mean frequency, and their spread, by strength
    double pilot_spread_ = 0.0;
    std::vector<Sample> pilot_gains_;  // the newest symbol's, matched
};

}  // namespace gr::fadelab::ofdm
