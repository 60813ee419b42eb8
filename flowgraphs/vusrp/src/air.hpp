// An air: what devices of one name share. A file in /dev/shm, no daemon.
//
// Read first: shm_overview(7), pthread_mutexattr_setrobust(3); layout.hpp for what lies where.
//
// Rules kept here:
//
// - A process may be killed at any point. Locks are robust, entries become valid after they are written, and owners are
//   checked by process id and start time: their devices become free and the last one to leave removes the file.
// - An air appears under its name whole, or not at all.
// - Errors are AirError with one line for people.
//
// Left out: processes of different users or PID namespaces on one air.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "layout.hpp"

namespace fadelab {

class AirError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// A device that is claimed already.
class InUse : public AirError {
public:
    using AirError::AirError;
};

// What is asked of an air when it is made; an air that exists must agree.
struct AirOptions {
    std::optional<bool> lockstep;
    std::optional<std::uint64_t> seed;
    std::optional<std::uint32_t> wait_streams;
};

// What begins untimed begins so much after now, and lockstep lets receivers run ahead of each other by it.
constexpr std::int64_t kLead_ns = 1'000'000;
// A transmitter checks that samples are in time, then publishes them: it has so long for it.
constexpr std::int64_t kPublishing_ns = 50'000;

enum class Keep { kWhileUsed, kWhileCallerLives, kForGood };

class Air {
public:
    // Opens the air of this name, or makes one.
    static Air open_or_create(const std::string& name, const AirOptions& options, Keep keep);
    // The same, and claims a serial number on it for this process. Throws AirError naming the owner when it has one.
    static Air join(const std::string& name, const AirOptions& options, const std::string& serial);
    // Opens one that exists; nothing when none does.
    static std::optional<Air> open(const std::string& name);
    // Takes the name away; those who have the air open keep it. False when there was none.
    static bool remove(const std::string& name);
    // Whether there is one that nobody uses or keeps; changes nothing.
    static bool abandoned(const std::string& name);

    Air(Air&& other) noexcept;
    Air& operator=(Air&&) = delete;
    ~Air();  // leaves
    // Gives up what it claimed, and removes the air when nothing keeps it. What is still done with it has no effect:
    // other threads may go on sending and receiving.
    void leave();

    const std::string& name() const { return name_; }
    bool lockstep() const { return header_->lockstep != 0; }
    std::uint64_t seed() const { return header_->seed; }
    std::int64_t epoch_ns() const { return header_->epoch_ns; }
    std::int64_t now_ns() const { return lockstep() ? header_->now_ns.load() : monotonic_ns() - header_->epoch_ns; }

    // Sleeps until air time `ns`.
    void sleep_until(std::int64_t ns);
    // CLOCK_MONOTONIC when to look again whether air time `ns` has come; a lockstep air wakes sleepers of its events.
    std::int64_t look_again_ns(std::int64_t ns) const;

    // Air time up to which all that will ever be sent is on the air.
    std::int64_t settled_ns() const;
    // The earliest time at which something may begin that has no time of its own.
    std::int64_t earliest_ns() const { return now_ns() + (lockstep() ? header_->lead_ns.load() : kLead_ns); }
    // Begins a burst; false when it is too late for that time.
    bool begin_burst(std::size_t channel, std::int64_t start_ns);
    // The end of what a burst that goes on has (kNever: none does), and the next sample of a receive stream (kIdle,
    // kNever). Lockstep's time goes by them.
    void set_transmitting(std::size_t channel, std::int64_t until_ns);
    void set_receiving(std::size_t channel, std::int64_t next_ns);
    // Lets receivers run ahead by so much at least.
    void lead_at_least(std::int64_t ns);
    // In lockstep, whether time may go on: a receiver is active, or none has been yet.
    bool receiving() const;

    // The slot that `join` claimed.
    std::size_t slot_index() const { return slot_; }
    Slot& slot() { return header_->slots[slot_]; }
    // The owner of a serial number, pid 0 when it is free.
    Process owner(const std::string& serial);
    // The owner of a slot, pid 0 when it is free, and the serial number that it has or had last.
    struct Occupant {
        Process owner;
        std::string serial;
    };
    Occupant occupant(std::size_t slot);
    // Frees what dead processes own.
    void reap();

    Header& header() { return *header_; }
    const Header& header() const { return *header_; }
    // The ring of a transmitting channel: kRingSamples.
    Sample* samples(std::size_t slot, std::size_t channel);
    // Gives a ring its memory, so that /dev/shm being full is an error here and not a signal later.
    void reserve_samples(std::size_t slot, std::size_t channel);

    // Holds the air's lock, repaired if its last owner died with it.
    class Lock {
    public:
        explicit Lock(Air& air);
        ~Lock();
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

    private:
        Header& header_;
    };

    // The configuration. A port is "*", "V1" or "V1:0". The most exact entry holds, among equals the newest.
    void set_link(const std::string& tx, const std::string& rx, const medium::LinkOptions& options);
    medium::LinkOptions link(const std::string& tx, const std::string& rx);
    void set_noise_dbm_hz(const std::string& rx, double dbm_hz);
    double noise_dbm_hz(const std::string& rx);
    // A receiver hears the interferers of all entries that name it.
    void set_interferer(const std::string& rx, const Interferer& interferer);
    std::vector<Interferer> interferers(const std::string& rx);
    // All that a receiver needs of the configuration, at once.
    struct Surroundings {
        std::optional<double> noise_dbm_hz;  // nothing: it has not been set
        std::vector<Interferer> interferers;
        std::vector<std::string> serials;                        // of the slots
        std::vector<medium::Impairments> impairments;            // none of one that is free
        std::vector<std::vector<medium::LinkOptions>> links;  // from the channels of each
    };
    Surroundings surroundings(const std::string& rx);
    void set_clock_offset_ppm(const std::string& serial, double ppm);
    // What is set, or else what the device's impairments draw, or 0.
    double clock_offset_ppm(const std::string& serial);
    // Those of the device itself, and what holds instead of them; nothing: they hold again.
    void set_own_impairments(const medium::Impairments& impairments);
    void set_impairments(const std::string& serial, const std::optional<medium::Impairments>& impairments);
    medium::Impairments impairments(const std::string& serial);
    // Grows when owners or configuration change.
    std::uint64_t changes() const { return header_->changes.load(std::memory_order_acquire); }

private:
    class Mapping {
    public:
        Mapping(const std::string& name, int file);  // takes the file
        Mapping(Mapping&& other) noexcept;
        Mapping& operator=(Mapping&&) = delete;
        ~Mapping();

        bool whole() const;  // an air, of this version
        // What is written to these pages from now on is this process's own.
        void make_private(std::byte* begin, std::size_t bytes) const;
        int file() const { return file_; }
        ino_t inode() const { return inode_; }
        void* memory() const { return memory_; }

    private:
        int file_;
        ino_t inode_;
        std::size_t bytes_;
        void* memory_;
    };

    Air(std::string name, Mapping mapping);

    // Makes one; nothing when the name has been taken meanwhile.
    static std::optional<Air> create(const std::string& name, const AirOptions& options, Keep keep,
                                     const std::string* serial);
    static Air find(const std::string& name, const AirOptions& options, Keep keep, const std::string* serial);
    void keep_locked(Keep keep);
    void leave_locked();
    bool unused_locked();
    void reap_locked();
    void remove_locked();
    void claim_locked(const std::string& serial);
    void free_locked(std::size_t slot);
    void advance_locked();
    medium::Impairments impairments_locked(const std::string& serial);

    std::string name_;
    Mapping mapping_;
    Header* header_;
    std::size_t slot_ = 0;
    bool claims_ = false;
    bool keeps_ = false;
};

// How long a call waits in lockstep for what others do, before it counts as a timeout. While all receivers are idle
// time stands still, and the call waits for a shorter time from then on.
class Patience {
public:
    explicit Patience(const Air& air) : air_(air) {}

    std::int64_t begun_ns() const { return begun_ns_; }  // CLOCK_MONOTONIC, as all here
    // The end of the wait as things are now; to be asked again whenever they have changed.
    std::int64_t ends_ns();

private:
    const Air& air_;
    const std::int64_t begun_ns_ = monotonic_ns();
    std::int64_t receiving_ns_ = begun_ns_;  // a receiver was last seen active
};

// Throws AirError unless `name` can be that of an air or a device.
void check_name(const std::string& what, const std::string& name);
// "V1:0".
std::string port_name(const std::string& serial, std::size_t channel);

}  // namespace fadelab
