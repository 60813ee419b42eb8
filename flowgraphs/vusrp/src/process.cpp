#include "process.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace fadelab {
namespace {

// Returns 0 when there is no such process.
std::uint64_t start_time(std::int32_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    // The command name, in brackets, may hold anything; field 3 follows its end.
    const auto end = stat.rfind(')');
    if (end == std::string::npos) return 0;
    std::istringstream fields(stat.substr(end + 1));
    std::string state;
    fields >> state;
    if (state == "Z" || state == "X") return 0;
    std::string skipped;
    for (int field = 4; field < 22; ++field) fields >> skipped;
    std::uint64_t ticks = 0;
    fields >> ticks;
    return ticks;
}

}  // namespace

Process Process::self() { return {getpid(), start_time(getpid())}; }

bool Process::is_self() const { return pid == getpid(); }

bool Process::alive() const { return pid != 0 && start_time(pid) == started; }

}  // namespace fadelab
