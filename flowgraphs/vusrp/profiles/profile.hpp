// A family of devices as a program sees it through UHD: what its property tree says, what it makes of a request, and what
// its link carries. One file of this folder declares one family.
//
// Facts name their place in UHD's sources (release 4.3) as file:function, below host/lib/usrp where nothing else is said.
// What no source says is marked "ours" with a reason. Hz, samples, octets, dB and dBm throughout.

#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "medium/impairments.hpp"

namespace fadelab {

struct Range {
    double first = 0.0;
    double last = 0.0;
    double step = 0.0;  // 0: continuous
};

enum class Rounding { kNearest, kDown, kUp };

struct GainElement {
    std::string name;
    Range db;
    Rounding rounding = Rounding::kNearest;  // of a request between two steps
};

// Factors between the master clock and a sample rate: `most`, `most - step`, ... down to `least`.
struct Factors {
    int most;
    int least;
    int step;
};

// Receiving or transmitting. All front ends of one direction are alike.
struct Direction {
    std::vector<std::string> antennas;
    std::string antenna;  // until another is chosen
    std::vector<GainElement> gains;
    std::vector<GainElement> codec_gains;  // of the converter, lower in priority
    // Level at the connector of a sample of amplitude 1, with all gains 0. A transmitter's rises with its gain, a
    // receiver's falls with it.
    double full_scale_dbm;

    Range freq_hz;
    double default_freq_hz;
    // The frequency that the local oscillator gets for one within the range; null: the range's step says it.
    double (*oscillator_hz)(double hz, double master_clock_hz);
    bool shared_oscillator;  // one for all channels of a daughterboard
    std::string connection = "IQ";
    Range bandwidth_hz;      // accepted; what it does to a signal is an impairment's business
    double default_bandwidth_hz;
    std::vector<std::string> sensors;      // of a front end
    std::vector<std::string> corrections;  // accepted: paths below the front end that take true or false
    bool corrected = false;  // balance and offset of I and Q can be set, for each board

    std::vector<Factors> factors;
    int halfbands;      // filters that each take a factor of 2; a factor that is left odd is warned of. 0: no warning
    std::string codec;       // its name
    unsigned board_id;       // of the daughterboard; 0: none
    int dsp_spans = 1;       // how many master clocks wide the range of its frequency is
    std::size_t packet_octets;   // of samples in a packet
    std::size_t packet_samples;  // at most, whatever the wire format
};

// What a requested rate becomes. The nearest rate favours lower ones; between two factors, the nearest is the higher or
// the lower one.
enum class Nearest { kRate, kHigherFactor, kLowerFactor };

struct MasterClock {
    double default_hz;
    Range range_hz;                 // all that it may be
    std::vector<double> choices_hz;  // not empty: only these within the range; others become the nearest
    // Follows the sample rates that have been set, as long as no program has chosen one: the largest 2^n times their
    // least common multiple.
    bool automatic;
    bool fixed;                // what the device was opened with, for good
    bool halved_by_two;        // a streamer of two channels halves the highest master clock
};

// A front end of each direction, in the order of the channels.
struct Port {
    std::string board;
    std::string front_end;
    std::string rx_name;
    std::string tx_name;
};

struct Link {
    std::string name;
    double octets_per_second;  // each way; 0: no limit
    int usb_version;           // 0: not USB
    std::size_t packet_octets = 0;  // of samples in a packet, where the link and not the direction limits them
};

struct Profile {
    std::string name;     // profile=...
    std::string product;  // in a found address; empty: no such entry
    std::string device;
    std::string board;     // its name; one that ends with '-' goes on with the serial number
    std::string codename;  // empty: no such node
    std::vector<std::pair<std::string, std::string>> eeprom;    // of the mainboard, besides name and serial number
    std::vector<std::pair<std::string, std::string>> versions;  // nodes of the mainboard
    std::vector<std::string> gpio_banks;
    std::vector<Port> ports;
    Direction rx;
    Direction tx;
    MasterClock master_clock;
    double default_rate_sps;
    Nearest nearest;
    int dsp_bits;  // of the frequency word; 0: any frequency
    std::vector<std::string> board_sensors;
    std::vector<std::string> clock_sources;
    std::vector<std::string> time_sources;
    std::string default_time_source = "internal";
    std::vector<std::string> not_fitted;  // sources that are on offer and refused
    bool heeds_clock_source;  // the device arguments clock_source and time_source
    std::vector<Link> links;  // the first is the default
    std::vector<std::string> wires;
    bool quantises;        // to the wire format
    bool pairs_of_chains;  // two channels of one direction and one of the other are refused
    std::size_t tx_buffer_samples;
    medium::Impairments impairments;  // typical ones, each with its source; none on a family without flaws
};

// All that are declared, by name. Throws std::out_of_range for a name there is not.
const Profile& profile(const std::string& name);
std::vector<std::string> profile_names();

// Declares a family: one static object of a profile's file.
class Declared {
public:
    explicit Declared(Profile profile);
};

}  // namespace fadelab
