// The signal at a receiving channel: all transmitters of its air, interference and noise, by README.md's power model.
//
// Read first: medium/path.hpp.
//
// Rules kept here:
//
// - A sample depends on the transmitted samples, the configuration and its tick, never on the lengths of the requests.
// - Mixing works in units of the square root of a milliwatt; the result is in units of the receiver's full scale.
// - A transmitter that cannot be heard, for a reason that the user can remove, is named once in a warning.
//
// Left out: resampling between unequal rates; the selectivity of a real front end: a transmitter tuned within half the
// sample rate is rotated by the difference, and the part of its spectrum beyond one edge of the band appears at the
// other.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flaws.hpp"
#include "medium/impairments.hpp"
#include "medium/interference.hpp"
#include "medium/noise.hpp"
#include "medium/path.hpp"
#include "power.hpp"
#include "radio.hpp"

namespace fadelab {

// Samples behind a request that must be on the air before it can be mixed, with clocks that do not wander: more than half
// an interpolator.
constexpr std::int64_t kLookahead = 32;

class Antenna {
public:
    Antenna(Radio& radio, std::size_t channel, std::function<void(const std::string&)> warn);

    // Samples behind a request that must be on the air before it can be mixed.
    std::int64_t lookahead(double rate_sps);

    // Fills out[0 ... n) with the signal at ticks [tick, tick + n), clipped at +-1.
    void hear(const Grid& grid, std::int64_t tick, std::size_t n, Sample* out);

private:
    // Samples of one transmitter that lie in a stretch of time, at one frequency.
    class Stretch : public medium::Source {
    public:
        struct Span {
            std::int64_t begin, end;  // ticks
            std::uint64_t first;      // position of `begin` in the ring
            float amplitude;
            Sample balance;
            Sample leakage;
        };

        double freq_hz = 0.0;
        double ppm = 0.0;
        const Sample* ring = nullptr;  // null: the leakage of the carrier
        medium::Rotation* rotation = nullptr;
        bool outside = false;  // of the receiver's band
        std::vector<Span> spans;

        const Sample* read(std::int64_t tick, std::size_t n, Sample* scratch) override;
    };

    struct KnownPath {
        double tx_hz, rx_hz, tx_ppm;
        Grid rx_grid;
        std::optional<medium::Path> path;  // empty: it cannot be built
    };

    struct Transmitter {
        bool own = false;  // of the receiver's device
        std::string name;
        medium::LinkOptions link{};
        std::vector<KnownPath> paths;
        std::vector<Stretch> stretches;
        medium::Impairments flaws;
        Sample leakage;
        double rotation_rate_sps = 0.0;
        std::optional<medium::Rotation> rotation;  // of its carrier's leakage
        std::optional<medium::Drift> drift;        // of its clock, which is not this receiver's
    };

    struct Interferer {
        fadelab::Interferer settings;
        std::unique_ptr<medium::Interference> recording;
        std::vector<KnownPath> paths;
    };

    // A stretch of time with one frequency and one gain of this receiver.
    struct Hearing {
        Grid grid;
        double freq_hz;
        std::int64_t tick;
        std::size_t n;
    };

    void configure();
    void scale(const Hearing& hearing, const Tuned& tuned, Sample* samples);
    void follow_flaws(double rate_sps);
    double noise_dbm(const Tuned& tuned, double rate_sps) const;
    Stretch& stretch_of(Transmitter& transmitter, std::size_t& stretches, double freq_hz, double ppm,
                        const Sample* ring);
    void add_transmitter(std::size_t slot, std::size_t channel, const Hearing& hearing, Sample* sum);
    void collect(std::size_t slot, std::size_t channel, const Hearing& hearing, std::size_t& stretches);
    void collect_leakage(std::size_t slot, std::size_t channel, const Hearing& hearing, std::size_t& stretches);
    void add_interferer(Interferer& interferer, const Hearing& hearing, Sample* sum);
    medium::Path* path(std::vector<KnownPath>& paths, const std::string& from, const medium::LinkOptions& link,
                       double tx_hz, double tx_ppm, const Hearing& hearing, double scale,
                       const std::optional<medium::Drift>& tx_drift, const std::optional<medium::Drift>& rx_drift);
    medium::Path* path(Transmitter& transmitter, double tx_hz, double tx_ppm, const Hearing& hearing);
    bool near(const std::string& from, double tx_hz, const Hearing& hearing);
    void warn_once(const std::string& from, const std::string& why);

    Radio& radio_;
    std::size_t channel_;
    std::string name_;
    std::function<void(const std::string&)> warn_;
    std::set<std::string> warned_;
    medium::Noise noise_;
    std::uint64_t configured_ = 0;
    medium::Impairments wandering_;         // for which drift_ was made
    std::optional<medium::Drift> drift_;    // of the own clock
    bool wanders_ = false;                  // any clock on the air
    double noise_dbm_hz_ = kDefaultNoise_dbm_hz;  // at the highest gain
    medium::Impairments impairments_;
    std::uint64_t impairment_changes_ = UINT64_MAX;
    double flaws_rate_sps_ = 0.0;
    std::optional<RxFlaws> flaws_;
    std::vector<float> beyond_;  // power of what lies outside the band, where the converter sees it
    std::vector<Sample> outside_;
    std::vector<Sample> around_;  // of a piece: it, and the samples on either side that its filter looks at
    Transmitter transmitters_[kDevices][kChannels];
    std::vector<Interferer> interferers_;
};

}  // namespace fadelab
