#include "contention.hpp"

#include <algorithm>

namespace gr::fadelab::access {

void Contention::hear(std::int64_t until, bool busy, bool waiting) {
    const std::int64_t from = before_ = now_;
    now_ = std::max(now_, until);
    if (busy && (now_ <= begin_ || (from >= deaf_until() && from < end_ + rules_.defer))) {
        collide();
    }
    if (from < deaf_until()) {
        // the own signal says nothing of the carrier
        if (now_ >= deaf_until()) {
            own_last_ = true;
            rest(end_);
        }
        return;
    }
    if (busy) {
        idle_ = own_last_ = false;
    } else if (!idle_) {
        rest(from);
    }
    if (waiting && busy && !deferred_) {
        deferred_ = true;
        counts_.deferrals += 1;
    }
    if (waiting && !busy && !over()) {
        counts_.backoff += now_ - from;
    }
}

void Contention::miss(std::int64_t until) {
    now_ = std::max(now_, until);
    idle_ = false;
    collided_ = true;
}

std::int64_t Contention::send(std::int64_t samples) {
    begin_ = now_ - (now_ - free_at_) % rules_.slot + rules_.lead;
    end_ = begin_ + samples;
    idle_ = deferred_ = collided_ = false;
    counts_.bursts += 1;
    counts_.airtime += samples;
    return begin_;
}

// The carrier is idle: when may a burst go?
void Contention::rest(std::int64_t since) {
    idle_ = true;
    const auto choices = static_cast<std::uint64_t>(rules_.window) + (own_last_ ? 1U : 0U);
    const auto drawn = static_cast<std::int64_t>(random_() % choices);
    free_at_ = since + rules_.defer + rules_.slot * (drawn + (own_last_ ? rules_.yield : 0));
}

void Contention::collide() {
    counts_.collisions_heard += collided_ ? 0 : 1;
    collided_ = true;
}

}  // namespace gr::fadelab::access
