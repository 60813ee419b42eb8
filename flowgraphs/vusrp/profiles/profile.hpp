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
    // Level at the connector of a sample of amplitude 1, with all gains 0. A transmitter's rises with its gain, a
    // receiver's falls with it.
    double full_scale_dbm;

    Range freq_hz;
    double default_freq_hz;
    // The frequency that the local oscillator gets for one within the range; null: the range's step says it.
    double (*oscillator_hz)(double hz);
    bool shared_oscillator;  // one for all channels of the direction
    Range bandwidth_hz;      // accepted; what it does to a signal is an impairment's business
    double default_bandwidth_hz;
    std::vector<std::string> sensors;      // of a front end
    std::vector<std::string> corrections;  // accepted: paths below the front end that take true or false

    std::vector<Factors> factors;
    int halfbands;      // filters that each take a factor of 2; a factor that is left odd is warned of. 0: no warning
    std::string codec;       // its name
    unsigned board_id;       // of the daughterboard; 0: none
    std::size_t packet_octets;   // of samples in a packet
    std::size_t packet_samples;  // at most, whatever the wire format
};

struct MasterClock {
    double default_hz;
    Range range_hz;                 // all that it may be
    std::vector<double> choices_hz;  // not empty: only these within the range; others become the nearest
    // Follows the sample rates that have been set, as long as no program has chosen one: the largest 2^n times their
    // least common multiple.
    bool automatic;
    bool fixed;                // set when the device is opened, and then no more
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
};

// Left for the flaws of a signal; all zero is a perfect device.
struct Impairments {};

struct Profile {
    std::string name;     // profile=...
    std::string product;  // in a found address; empty: no such entry
    std::string device;
    std::string board;
    std::string codename;
    std::vector<std::pair<std::string, std::string>> eeprom;    // of the mainboard, besides name and serial number
    std::vector<std::pair<std::string, std::string>> versions;  // nodes of the mainboard
    std::vector<Port> ports;
    Direction rx;
    Direction tx;
    MasterClock master_clock;
    double default_rate_sps;
    // A request becomes the rate with the nearest factor; otherwise the nearest rate, which favours lower ones.
    bool nearest_factor;
    int dsp_bits;  // of the frequency word; 0: any frequency
    std::vector<std::string> board_sensors;
    std::vector<std::string> clock_sources;
    std::vector<std::string> time_sources;
    std::vector<std::string> not_fitted;  // sources that are on offer and refused
    bool heeds_clock_source;  // the device arguments clock_source and time_source
    std::vector<Link> links;  // the first is the default
    std::vector<std::string> wires;
    bool quantises;        // to the wire format
    bool pairs_of_chains;  // two channels of one direction and one of the other are refused
    std::size_t tx_buffer_samples;
    Impairments impairments;
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
