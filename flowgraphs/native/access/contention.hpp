// Listen before talk: when a station may send on a carrier that it shares.
//
// Read first: IEEE 802.11-2020, 10.3 (DCF), whose terms these are; ETSI EN 300 328, 4.3.2.6 (adaptive equipment).
//
// Rules kept
// - Time is the index of a sample of the device's clock. The machine has no clock and no samples: it is told what was
//   heard, `hear`, and asked whether to send, `ask`.
// - After the end of whatever was on the carrier, a station waits for `defer` of idle carrier and for 0 to `window` - 1
//   slots, drawn anew each time. The last sender waits for `yield` slots and 0 to `window`: the others' answers go first,
//   also those that are not ready at once, and two stations with much to send take turns, even with a window of 1. When this time is over and the carrier still idle, a burst goes as soon as
//   there is one, at the next slot. So all stations decide at the same times, give or take what one hears later.
// - Between the decision and the first sample on the air lies `lead`, in which a burst cannot be called back. A slot must
//   be longer, else stations that decide in different slots collide.
// - The window is fixed, as EN 300 328 allows: an acknowledgement, from whose absence DCF infers a collision and doubles
//   its window, belongs to the link above.
// - A foreign signal within `lead`, or within `defer` after the own burst, when no other station may have begun, is a
//   collision. Of two stations, the one hears it whose burst ends first.
//
// Left out: a virtual carrier sense by reservations (NAV, RTS and CTS), priorities.

#pragma once

#include <cstdint>
#include <random>

namespace gr::fadelab::access {

// In samples, but for window and yield, which are slots.
struct Rules {
    std::int64_t defer;
    std::int64_t slot;
    std::int64_t lead;
    std::int64_t turnaround;  // the own receiver hears nothing for so long after a burst
    int window;
    int yield;
};

// Since the start.
struct Counts {
    std::uint64_t bursts = 0;
    std::uint64_t deferrals = 0;         // bursts that had to wait for another station
    std::int64_t backoff = 0;            // samples of idle carrier that bursts waited
    std::int64_t airtime = 0;            // samples sent
    std::uint64_t collisions_heard = 0;  // by the rule above
};

class Contention {
public:
    Contention(const Rules& rules, std::uint64_t seed) : rules_(rules), random_(seed) {}

    // Whether the carrier was busy from the last `until` to this one; deaf times count as idle. `waiting`: there is a
    // burst to send.
    void hear(std::int64_t until, bool busy, bool waiting);
    // Nothing is known of the time up to here: samples were lost.
    void miss(std::int64_t until);
    // Whether a burst may go now: what was heard last holds the beginning of a slot.
    bool free() const { return over() && (now_ - free_at_) % rules_.slot < now_ - before_; }
    // A burst of so many samples goes; returns its first one, which is to come. Only while free.
    std::int64_t send(std::int64_t samples);
    // The own receiver is deaf from `deaf_from` to before `deaf_until`: while the newest burst is on the air, and
    // `turnaround` longer.
    std::int64_t deaf_from() const { return begin_; }
    std::int64_t deaf_until() const { return end_ > begin_ ? end_ + rules_.turnaround : begin_; }

    const Counts& counts() const { return counts_; }

private:
    bool over() const { return idle_ && now_ >= free_at_; }
    void rest(std::int64_t since);
    void collide();

    Rules rules_;
    std::mt19937_64 random_;
    Counts counts_;
    std::int64_t before_ = 0;     // what was heard last begins here
    std::int64_t now_ = 0;
    bool idle_ = false;
    bool own_last_ = false;       // the carrier's last user was this station
    bool deferred_ = false;       // the waiting burst had to wait for another station
    bool collided_ = true;        // the newest burst, as far as that is known; before the first there is none
    std::int64_t free_at_ = 0;    // while idle: the first slot in which a burst may go
    // Of the newest burst.
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0;
};

}  // namespace gr::fadelab::access
