// Which process owns something in shared memory, and whether it still lives.

#pragma once

#include <cstdint>

namespace fadelab {

// A process by its id and start time: ids come back, the pair does not. Of one PID namespace.
struct Process {
    std::int32_t pid = 0;       // 0: nobody
    std::uint64_t started = 0;  // clock ticks since boot, field 22 of /proc/PID/stat

    static Process self();
    bool is_self() const;
    bool alive() const;
};

}  // namespace fadelab
