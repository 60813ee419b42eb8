// One mapping of an air for all devices of this process, so that ThreadSanitizer, which goes by addresses, sees that
// they share it: linked with --wrap=mmap,--wrap=munmap. Each device has a mapping of its own outside of this test.

#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <utility>

namespace {

struct Shared {
    void* memory;
    int users;
};

std::mutex lock;
std::map<std::pair<dev_t, ino_t>, Shared>& mapped() {
    static std::map<std::pair<dev_t, ino_t>, Shared> files;
    return files;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names
extern "C" {

void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* address, size_t bytes);

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
    struct stat status {};
    if ((flags & MAP_SHARED) == 0 || file < 0 || fstat(file, &status) != 0) {
        return __real_mmap(address, bytes, protection, flags, file, offset);
    }
    const std::lock_guard held(lock);
    Shared& shared = mapped()[{status.st_dev, status.st_ino}];
    if (shared.users == 0) shared.memory = __real_mmap(address, bytes, protection, flags, file, offset);
    ++shared.users;
    return shared.memory;
}

int __wrap_munmap(void* address, size_t bytes) {
    const std::lock_guard held(lock);
    for (auto at = mapped().begin(); at != mapped().end(); ++at) {
        if (at->second.memory != address) continue;
        if (--at->second.users > 0) return 0;
        mapped().erase(at);
        break;
    }
    return __real_munmap(address, bytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
